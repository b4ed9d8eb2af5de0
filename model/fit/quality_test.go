package fit

import (
	"flag"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/model"
)

// allFigures asks for tests that take minutes.
var allFigures = flag.Bool("figures", false,
	"compare all figures of retrieval, over several seeds, not a few of one")

// authors are the settings of the paper's authors, with nothing to choose but a fusion.
func authors(bits int) Options {
	return Options{
		Bits: bits, Anchors: 800, Aim: model.AimCodes,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Width:    map[string]float64{"image": 1, "text": 1},
		Gamma:    map[string]float64{"image": 1e-4, "text": 1e-4},
	}
}

// TestQuality compares means over seeds. The results of the authors' settings are
// compared with those of a reference implementation in numpy. The results of the
// defaults, which choose features, map, width, gamma and prior, are compared with goals.
func TestQuality(t *testing.T) {
	effort.WithoutRace(t)
	type figures struct{ i2t, t2i float64 }
	for _, c := range []struct {
		set             string
		bits            int
		reference, goal figures // goal: what the mean of 5 seeds must reach
		few             figures // what one seed must reach with 800 anchors
		long            bool
	}{
		{"wiki", 64, figures{.365, .753}, figures{.410, .763}, figures{.386, .754}, false},
		{"wiki", 32, figures{.358, .748}, figures{.395, .757}, figures{}, true},
		{"wiki", 128, figures{.371, .754}, figures{.415, .766}, figures{}, true},
		{"ucidigits", 64, figures{.867, .981}, figures{.882, .980}, figures{.874, .970}, false},
	} {
		if c.long && !*allFigures {
			continue
		}
		data := readDataset(t, c.set)
		seeds := 1
		if *allFigures {
			seeds = 5
		}
		mean := func(opt Options) (f figures) {
			for seed := range seeds {
				opt.Seed = uint64(seed)
				result := trained(t, data.train, opt)
				db := codesOf(result.Model, data.train.Labels)
				a, _ := data.evaluate(t, result.Model, db, 0)
				b, _ := data.evaluate(t, result.Model, db, 1)
				f.i2t += a.MAP / float64(seeds)
				f.t2i += b.MAP / float64(seeds)
				for _, m := range data.modalities {
					if choice := result.Report.Choices[m.Name]; choice != nil {
						t.Logf("%s, %d bits, seed %d, %s: %+v, %.4f (+-%.4f)", c.set, c.bits, seed, m.Name,
							result.Report.Chosen[m.Name], choice.MAP, choice.StdErr)
					}
				}
				t.Logf("%s, %d bits, seed %d: %.3f / %.3f, seconds %.2v", c.set, c.bits, seed, a.MAP, b.MAP,
					result.Report.Seconds)
			}
			return f
		}
		got := mean(authors(c.bits))
		t.Logf("%s, %d bits, authors' settings: %.3f / %.3f, reference %.3f / %.3f", c.set, c.bits, got.i2t,
			got.t2i, c.reference.i2t, c.reference.t2i)
		failIf(t, !approx(got.i2t, c.reference.i2t, .02) || !approx(got.t2i, c.reference.t2i, .02),
			"%s, %d bits: not within .02 of the reference", c.set, c.bits)
		if !effort.Long() && !*allFigures { // choosing takes seconds
			continue
		}
		opt := Options{Bits: c.bits}
		if !*allFigures { // with as many anchors as the defaults ask for, choosing takes 20 seconds
			opt.Anchors, c.goal = 800, c.few
		}
		got = mean(opt)
		t.Logf("%s, %d bits, defaults: %.3f / %.3f, goal %.3f / %.3f", c.set, c.bits, got.i2t, got.t2i,
			c.goal.i2t, c.goal.t2i)
		failIf(t, got.i2t < c.goal.i2t || got.t2i < c.goal.t2i, "%s, %d bits: below the goal", c.set, c.bits)
	}
}
