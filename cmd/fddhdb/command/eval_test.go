package command

import (
	"math"
	"math/bits"
	"sort"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/files/npy"
)

// TestEvalAgainstFiles computes the figures of eval again from files of export and
// encode, as a script in another language would.
func TestEvalAgainstFiles(t *testing.T) {
	clitest.OneGoroutine(t)
	f := newFixture(t, 150, true)
	// Items without labels, and one of a single modality.
	must(t, "import", f.db, "--vectors", "image="+f.image, "--vectors", "text="+f.text)
	must(t, "put", f.db, "only-image", "--vector", "image=1,2,3,4,5,6,7,8", "--labels", "label1")
	q := newFixture(t, 60, false)
	const top = 20
	var got map[string]evalJSON
	mustJSON(t, &got, "eval", f.db, "--vectors", "image="+q.image, "--vectors", "text="+q.text, "--labels",
		q.labels, "--top", "20", "--plot", f.path("curves.svg"))

	codes, labels, names := f.path("codes.npy"), f.path("labels.npy"), f.path("names.txt")
	must(t, "export", f.db, "--codes", codes, "--labels", labels, "--label-names", names)
	items := clitest.Must(npy.ReadCodes(codes))(t)
	itemLabels := clitest.Must(source.OpenLabels(labels, names))(t)
	queryLabels := clitest.Must(source.OpenLabels(q.labels, ""))(t)
	for _, pair := range []struct{ from, to, file string }{{"image", "text", q.image},
		{"text", "image", q.text}} {
		out := f.path(pair.from + ".npy")
		must(t, "encode", f.db, "--from", pair.from, "--vectors", pair.file, "--out", out)
		queries := clitest.Must(npy.ReadCodes(out))(t)
		var rows []int // rows that have the target
		for row := range items.Len() {
			if pair.to == "image" || row < items.Len()-1 {
				rows = append(rows, row)
			}
		}
		var wantMAP, wantAt, wantPrecision float64
		var curves curveCounts
		for i := range queries.Len() {
			curves.add(items, queries.At(i), rows, func(row int) bool {
				return share(itemLabels.At(row), queryLabels.At(i))
			})
			ap, at, precision := judge(items, queries.At(i), rows, top, func(row int) bool {
				return share(itemLabels.At(row), queryLabels.At(i))
			})
			wantMAP += ap / float64(queries.Len())
			wantAt += at / float64(queries.Len())
			wantPrecision += precision / float64(queries.Len())
		}
		g := got[pair.from+"->"+pair.to]
		for _, c := range []struct {
			name      string
			got, want float64
		}{{"map", g.MAP, wantMAP}, {"map_at", g.MAPAt, wantAt},
			{"precision_at", g.PrecisionAt, wantPrecision}} {
			if math.Abs(c.got-c.want) > 1e-9 {
				t.Errorf("%s->%s: %s = %v, want %v", pair.from, pair.to, c.name, c.got, c.want)
			}
		}
		curves.check(t, pair.from+"->"+pair.to, &g, 60)
		if g.Queries != 60 || g.Database != len(rows) || g.Top != top {
			t.Errorf("%s->%s: %d queries, %d items, top %d", pair.from, pair.to, g.Queries, g.Database, g.Top)
		}
		if wantMAP < .3 || wantMAP > .999 {
			t.Errorf("%s->%s: map %v tests little", pair.from, pair.to, wantMAP)
		}
	}
}

// judge ranks rows by (distance, row). It returns the average precision of
// all rows (ap) and of the first top rows (at), and the precision of the first top rows.
func judge(items codec.Codes, query codec.Code, rows []int, top int,
	relevant func(row int) bool) (ap, at, precision float64) {
	distance := func(row int) int {
		d := 0
		for w, x := range items.At(row) {
			d += bits.OnesCount64(x ^ query[w])
		}
		return d
	}
	ranked := append([]int(nil), rows...)
	sort.SliceStable(ranked, func(i, j int) bool { return distance(ranked[i]) < distance(ranked[j]) })
	found, inTop := 0, 0
	for i, row := range ranked {
		if !relevant(row) {
			continue
		}
		found++
		ap += float64(found) / float64(i+1)
		if i < top {
			inTop++
			at += float64(found) / float64(i+1)
		}
	}
	if found == 0 {
		return 0, 0, 0
	}
	if inTop > 0 {
		at /= float64(inTop)
	}
	return ap / float64(found), at, float64(inTop) / float64(top)
}

// curveCounts are the pairs behind the curves.
type curveCounts struct {
	all, relevant [17]float64 // by distance
	top           [17][2]float64
}

// add counts one query. Of each distance, the first 10 and 100 are expected to hold as
// large a share of relevant items as the distance has.
func (c *curveCounts) add(items codec.Codes, query codec.Code, rows []int, relevant func(row int) bool) {
	var all, good [17]float64
	for _, row := range rows {
		d := bits.OnesCount64(items.At(row)[0] ^ query[0])
		all[d]++
		if relevant(row) {
			good[d]++
		}
	}
	var left [2]float64
	left[0], left[1] = 10, 100
	for d := range all {
		c.all[d] += all[d]
		c.relevant[d] += good[d]
		for k := range left {
			taken := min(left[k], all[d])
			if taken > 0 {
				c.top[d][k] += taken * good[d] / all[d]
				left[k] -= taken
			}
		}
	}
}

func (c *curveCounts) check(t *testing.T, pair string, got *evalJSON, queries float64) {
	t.Helper()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %s = %v, want %v", pair, what, got, want)
		}
	}
	if len(got.PRRadius) != 17 || len(got.PrecisionTop) != 6 {
		t.Fatalf("%s: %d radii, %d K", pair, len(got.PRRadius), len(got.PrecisionTop))
	}
	var all, good, relevant float64
	for _, x := range c.relevant {
		relevant += x
	}
	var top [2]float64
	for r, p := range got.PRRadius {
		all += c.all[r]
		good += c.relevant[r]
		near("radius", float64(p.Radius), float64(r))
		near("precision", p.Precision, good/max(all, 1))
		near("recall", p.Recall, good/relevant)
		near("retrieved", p.Retrieved, all/queries)
		top[0] += c.top[r][0] / 10 / queries
		top[1] += c.top[r][1] / 100 / queries
	}
	for i, k := range []int{1, 10, 20, 50, 100, 200} {
		near("k", float64(got.PrecisionTop[i].K), float64(k))
		if a := got.PrecisionTop[i].Asymmetric; a < .1 || a > 1 {
			t.Errorf("%s: asymmetric precision of the first %d: %v", pair, k, a)
		}
	}
	near("precision of the first 10", got.PrecisionTop[1].Hamming, top[0])
	near("precision of the first 100", got.PrecisionTop[4].Hamming, top[1])
}

func share(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}
