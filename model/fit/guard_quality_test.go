package fit

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

var guardSeeds = flag.Int("seeds", 1, "seeds of each set that TestGuardQuality tries")

// A guardTrial is a data set. A share of it is labelled and trains; the rest comes
// without labels.
type guardTrial struct {
	set       string
	share     float64
	published bool // settings of the authors, or else chosen ones

	data    *synth.Data // without the queries
	queries *synth.Data
}

// guardTrials are the sets on which the guard is measured.
func guardTrials(t *testing.T) (trials []guardTrial) {
	t.Helper()
	add := func(set string, share float64, data, queries *synth.Data, published ...bool) {
		for _, p := range published {
			trials = append(trials, guardTrial{set, share, p, data, queries})
		}
	}
	split := func(d *synth.Data) (data, queries *synth.Data) { return d.Slice(0, 2000), d.Slice(2000, 2500) }
	for _, noise := range []float64{1, 2} {
		for _, labels := range []int{1, 3} {
			data, queries := split(synth.Pairs(synth.Config{Items: 2500, Classes: 12, Dims: []int{24, 16},
				LabelsPerItem: labels, Noise: noise, Seed: 3}))
			add(fmt.Sprintf("pairs, noise %g, %d labels", noise, labels), .15, data, queries, true, false)
		}
	}
	g := need(synth.NewNUSWide(1, synth.DefaultNUSWideNoise))(t)
	data, queries := split(g.Data(0, 2500))
	add("nuswide", .15, data, queries, true, false)
	data, queries = split(synth.ManyLabels{Items: 2500, Labels: 40, PerItem: 3, Seed: 2}.Make())
	add("families of labels", .25, data, queries, true, false)
	for _, name := range []string{"wiki", "ucidigits"} {
		if _, err := os.Stat(filepath.Join(shared, name)); os.IsNotExist(err) {
			t.Logf("%s is not here, and left out", name)
			continue
		}
		d := readDataset(t, name)
		add(name, .1, d.train, d.query, true, false)
		add(name, .3, d.train, d.query, true, false)
	}
	if !*allFigures {
		for i := range len(trials) / 2 { // each set, with alternating settings
			trials[i] = trials[2*i+i%2]
		}
		trials = trials[:effort.Of(len(trials)/2, 4)]
	}
	return trials
}

// A guardOutcome has the verdict of a guard and the truth.
type guardOutcome struct {
	verdict model.Verdict
	gain    float64 // of the mAP of new queries, mean over the modalities
}

// run lets a guard judge the update, and does the update, in chunks of 200 with a
// revision after each. An item is stored under the code that it gets when it comes.
func (g *guardTrial) run(t *testing.T, seed uint64) guardOutcome {
	t.Helper()
	mixed := picked(g.data, rand.New(rand.NewPCG(seed, 77)).Perm(g.data.Items()))
	n := int(g.share * float64(mixed.Items()))
	opt := Options{Bits: 64}
	if g.published {
		opt = authors(64)
		opt.Anchors = 0
	}
	opt.Seed = seed
	o, guard, rest := guarded(t, mixed, opt, n, min(100, n/2))
	out := guardOutcome{verdict: need(guard.Verdict())(t)}
	first := need(o.Revision())(t) // as o has learned nothing yet, the model of the training
	before, stream := codesOf(first, mixed.Labels[:n]), codesOf(first, mixed.Labels[:n])
	m := first
	for len(rest) > 0 {
		chunk := rest[:min(200, len(rest))]
		rest = rest[len(chunk):]
		for _, item := range chunk {
			before.Append(storedCode(t, first, item))
			stream.Append(storedCode(t, m, item))
		}
		need(o.Learn(t.Context(), chunk, model.TeacherModality, guard.Lead()))(t)
		m = need(o.Revision())(t)
	}
	for from := range g.data.Vectors {
		was := asked(t, first, from, g.queries, before, mixed.Labels)
		is := asked(t, m, from, g.queries, stream, mixed.Labels)
		out.gain += (is.MAPTie - was.MAPTie) / float64(len(g.data.Vectors))
	}
	return out
}

// storedCode returns the code of an item without labels.
func storedCode(t *testing.T, m *model.Model, item model.Example) codec.Code {
	t.Helper()
	e, z, fused := m.NewEncoder(), make([][]float64, len(item.Vectors)), make([]float64, m.Bits())
	for mod := range z {
		z[mod] = make([]float64, m.Bits())
		must(t, e.ProjectVectors(z[mod], mod, item.Vectors[mod:mod+1]))
	}
	m.Fuse(fused, z)
	return codec.PackSigns(codec.NewCode(m.Bits()), fused)
}

// TestGuardQuality compares the verdict of a guard with the results of new queries, and
// prints both:
//
//	go test ./model/fit -run TestGuardQuality -v -figures -seeds 12
func TestGuardQuality(t *testing.T) {
	effort.Slow(t)
	effort.WithoutRace(t)
	const even = .003 // a smaller difference is neither gain nor loss
	var table [3][2]int
	adopted, all := 0.0, 0.0
	for _, g := range guardTrials(t) {
		settings := map[bool]string{true: "published", false: "chosen"}[g.published]
		taken, gain, said, stderr, worst := 0, 0.0, 0.0, 0.0, 0.0
		for seed := range *guardSeeds {
			out := g.run(t, uint64(seed))
			v := out.verdict
			row := 1
			switch {
			case out.gain > even:
				row = 0
			case out.gain < -even:
				row = 2
			}
			column := 1
			if v.Adopt {
				column = 0
				taken++
				adopted += out.gain
				worst = min(worst, out.gain)
			}
			table[row][column]++
			all += out.gain
			gain += out.gain / float64(*guardSeeds)
			said += v.Gain / float64(*guardSeeds)
			stderr += v.StdErr / float64(*guardSeeds)
		}
		t.Logf("| %s | %.0f %% | %s | %+.3f | %+.3f (%.3f) | %d of %d | %+.3f |", g.set, 100*g.share,
			settings, gain, said, stderr, taken, *guardSeeds, worst)
		failIf(t, gain < -.02 && 4*taken > *guardSeeds, "%s, %s: %d of %d updates adopted that lose %.3f",
			g.set, settings, taken, *guardSeeds, -gain)
		failIf(t, worst < -.03, "%s, %s: an update adopted that loses %.3f", g.set, settings, -worst)
		// With as many anchors as items, projections without the held items differ from
		// those with them, so a gain can be missed.
		failIf(t, gain > .02 && !g.published && 4*taken < 3**guardSeeds,
			"%s, %s: only %d of %d updates adopted that gain %.3f", g.set, settings, taken, *guardSeeds, gain)
	}
	t.Logf("adopted or not: gain %d, %d; even %d, %d; loss %d, %d; mAP of all %+.3f, of the adopted %+.3f",
		table[0][0], table[0][1], table[1][0], table[1][1], table[2][0], table[2][1], all, adopted)
	failIf(t, adopted < all, "to adopt everything would be better")
}

// guarded trains on the first items of d, holds back some of them, and lets a model.Guard
// learn the rest without their labels.
func guarded(t testing.TB, d *synth.Data, opt Options, first,
	hold int) (*model.Online, *model.Guard, []model.Example) {
	t.Helper()
	r := trained(t, d.Slice(0, first), opt)
	o := need(model.NewOnline(r.Model, r.Statistics))(t)
	held := examples(d.Slice(0, hold), never)
	var lessons []model.Lesson
	for i, item := range held {
		lessons = append(lessons, r.Lesson(i, item.Labels))
	}
	g := need(o.Guard(t.Context(), held, lessons))(t)
	rest := examples(d.Slice(first, d.Items()), func(int) bool { return true })
	must(t, g.Learn(t.Context(), rest))
	return o, g, rest
}
