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
		for i := range queries.Len() {
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
		if len(g.PRRadius) != 17 || len(g.PrecisionTop) != 6 {
			t.Errorf("%s->%s: %d radii, %d K", pair.from, pair.to, len(g.PRRadius), len(g.PrecisionTop))
		}
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
