package labels

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/internal/synth"

	"github.com/fddhdb/fddhdb/experiments/common"
)

// generated returns a set of clusters, with queries of its own.
func generated() *sets.Set {
	const items, queries = 300, 60
	data := synth.Pairs(synth.Config{Items: items + queries, Classes: 6, Noise: 1, Seed: 1})
	part := func(from, to int) sets.Part {
		var p sets.Part
		of := data.Slice(from, to)
		p.Vectors = append(p.Vectors, of.Vectors...)
		for _, set := range of.Labels {
			var names []string
			for _, l := range set {
				names = append(names, string(rune('a'+l)))
			}
			p.Labels = append(p.Labels, names)
		}
		return p
	}
	q := part(items, items+queries)
	s := &sets.Set{Modalities: []string{"image", "text"}, Items: part(0, items), Queries: &q}
	for _, x := range s.Items.Vectors {
		s.Dims = append(s.Dims, len(x[0]))
	}
	return s
}

// All labels find more items of a label than few, and than none.
func TestEvaluate(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
	rows, err := evaluate(t.Context(), generated(), 1, 32, []int{20, 100})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range rows[0].figures {
		names = append(names, f.name)
	}
	if want := []string{"mAP image to text", "mAP text to image", "mAP image to image", "mAP text to text",
		"neighbours, image", "neighbours, text"}; !slices.Equal(names, want) {
		t.Errorf("%v", names)
	}
	if len(rows) != 3 || rows[1].labelled != 60 || rows[2].labelled != 300 ||
		!strings.HasPrefix(rows[0].codes, "cca-itq, ") || rows[1].codes != "labels, 32 bits" {
		t.Fatalf("%+v %+v %+v", rows[0], rows[1], rows[2])
	}
	for i, f := range rows[0].figures {
		if few, all := rows[1].figures[i].value, rows[2].figures[i].value; f.value < .15 || f.value > 1 ||
			i < 4 && !(all > f.value && all > few) {
			t.Errorf("%s: %.3f without labels, %.3f, %.3f", f.name, f.value, few, all)
		}
	}
}

func TestAveragePrecision(t *testing.T) {
	if got, want := averagePrecision([]bool{true, false, false, true}),
		(1+2./4)/2; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got := averagePrecision(make([]bool, 5)); got != 0 {
		t.Errorf("%v", got)
	}
}

func TestCommand(t *testing.T) {
	var out strings.Builder
	printRuns(&out, "a set", [][]*row{
		{{"0 %", 0, "itq, 64 bits", []figure{{"A", .25}}}},
		{{"0 %", 0, "itq, 64 bits", []figure{{"A", .75}}}},
	})
	if want := "| a set | labelled | codes | A | +- |\n| --- | --- | --- | ---: | ---: |\n| 0 % | 0 | itq, 64 bits | .500 | .354 |\n\n"; out.String() != want {
		t.Errorf("%s", &out)
	}
	for _, bad := range [][]string{{}, {t.TempDir()}, {"--seeds", "0", "x"}} {
		if err := common.Execute(t.Context(), Command(), bad, &out, &out); err == nil {
			t.Errorf("%v passes", bad)
		}
	}
}
