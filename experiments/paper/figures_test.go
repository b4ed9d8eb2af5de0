package paper

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/model"
)

// measuredLab returns a lab after an experiment with made-up rows.
func measuredLab(x *kind, rows []*measurement) *lab {
	l := &lab{kind: x, seeds: 2, modalities: []string{"image", "text"}, grid: map[string][]float64{},
		rows: rows}
	for _, a := range x.axes {
		l.grid[a.name] = a.values
	}
	for i, pair := range [][2]string{{"image", "text"}, {"text", "an exceedingly long name of a modality"}} {
		name := pair[0] + "->" + pair[1]
		l.pairs, l.directions = append(l.pairs, name),
			append(l.directions, chart.DirectionOf(pair[0], pair[1]))
		for j, m := range rows {
			if m.Retrieval == nil {
				m.Retrieval = map[string]retrieval{}
			}
			f := .3 + .4*float64(i) + .01*float64(j%7)
			m.Retrieval[name] = retrieval{MAP: f, MAPStd: .004, MAPAsym: f + .02, MAPAsymStd: .003}
		}
	}
	return l
}

func TestExperimentPlots(t *testing.T) {
	clitest.OneGoroutine(t)
	figures := map[string]func() *lab{
		"ablation": func() *lab {
			var rows []*measurement
			for _, name := range []string{"full", "joint", "FDDH", "FDDH_NR"} {
				rows = append(rows, &measurement{Row: name})
			}
			return measuredLab(ablation(), rows)
		},
		"convergence": func() *lab {
			var rows []*measurement
			for _, m := range methods {
				for s := 1; s <= 20; s++ {
					rows = append(rows, &measurement{Row: m.String(), Sweeps: s,
						Objective: 1e6 + 100/float64(s)})
				}
			}
			return measuredLab(convergence(), rows)
		},
		"sensitivity": func() *lab {
			var rows []*measurement
			l := measuredLab(sensitivity(), nil)
			for range len(l.grid["mu"]) * len(l.grid["theta"]) * len(l.grid["delta"]) {
				rows = append(rows, &measurement{Row: "paper"})
			}
			return measuredLab(sensitivity(), rows)
		},
	}
	wanted := map[string][]string{
		"ablation":    {"image → text", "text → an exceed…", "FDDH_NR", "Hamming", "asymmetric", "mAP"},
		"convergence": {"objective", "sweeps", "labels", "joint", "paper", "mAP"},
		"sensitivity": {"image → text, delta 1e4", "text → an exceed…, delta 0.01", "mu", "theta", "1e-5",
			"10", ".300", ".760"},
	}
	for name, measured := range figures {
		draw := func() []byte {
			l := measured()
			f, err := l.kind.draw(l)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := f.Write(&b); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		svg := draw()
		if !bytes.Equal(svg, draw()) {
			t.Errorf("%s: equal measurements, other bytes", name)
		}
		list, x, y := clitest.Texts(t, svg)
		clitest.CheckApart(t, list, x, y)
		all := "\n" + strings.Join(list, "\n") + "\n"
		for _, text := range wanted[name] {
			if !strings.Contains(all, "\n"+text+"\n") {
				t.Errorf("%s: %q does not stand there", name, text)
			}
		}
	}
}

// One row, one modality and one seed are figures, too.
func TestExperimentPlotsOfLittle(t *testing.T) {
	for _, x := range kinds() {
		m := &measurement{Row: "labels", Method: model.MethodLabels, Bits: 16, Sweeps: 1, TrainItems: 10,
			Retrieval: map[string]retrieval{"a->a": {}}}
		l := &lab{kind: x, seeds: 1, modalities: []string{"a"}, grid: map[string][]float64{},
			rows: []*measurement{m}}
		for _, a := range x.axes {
			l.grid[a.name] = []float64{1}
		}
		l.pairs, l.directions = []string{"a->a"}, []string{chart.DirectionOf("a", "a")}
		f, err := x.draw(l)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.Write(&b); err != nil {
			t.Fatal(err)
		}
		if list, _, _ := clitest.Texts(t, b.Bytes()); len(list) == 0 || strings.Contains(b.String(), "NaN") {
			t.Errorf("%s: %s", x.name, b.String())
		}
	}
}
