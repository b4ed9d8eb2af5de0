package experiment

import (
	"bytes"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/model"
)

// measuredLab returns a lab after an experiment with made-up rows.
func measuredLab(x *Kind, rows []*Measurement) *Lab {
	l := &Lab{experiment: x, seeds: 2, modalities: []string{"image", "text"}, grid: map[string][]float64{}, rows: rows}
	for _, a := range x.Axes {
		l.grid[a.Name] = a.Values
	}
	for i, pair := range [][2]string{{"image", "text"}, {"text", "an exceedingly long name of a modality"}} {
		name := pair[0] + "->" + pair[1]
		l.pairs, l.directions = append(l.pairs, name), append(l.directions, chart.DirectionOf(pair[0], pair[1]))
		for j, m := range rows {
			if m.Retrieval == nil {
				m.Retrieval = map[string]Retrieval{}
			}
			f := .3 + .4*float64(i) + .01*float64(j%7)
			m.Retrieval[name] = Retrieval{MAP: f, MAPStd: .004, MAPAsym: f + .02, MAPAsymStd: .003}
		}
	}
	return l
}

func TestExperimentPlots(t *testing.T) {
	clitest.OneGoroutine(t)
	figures := map[string]func() *Lab{
		"ablation": func() *Lab {
			var rows []*Measurement
			for _, name := range []string{"full", "joint", "FDDH", "FDDH_NR"} {
				rows = append(rows, &Measurement{Row: name})
			}
			return measuredLab(ablation(), rows)
		},
		"convergence": func() *Lab {
			var rows []*Measurement
			for _, m := range methods {
				for s := 1; s <= 20; s++ {
					rows = append(rows, &Measurement{Row: m.String(), Sweeps: s, Objective: 1e6 + 100/float64(s)})
				}
			}
			return measuredLab(convergence(), rows)
		},
		"sensitivity": func() *Lab {
			var rows []*Measurement
			l := measuredLab(sensitivity(), nil)
			for range len(l.grid["mu"]) * len(l.grid["theta"]) * len(l.grid["delta"]) {
				rows = append(rows, &Measurement{Row: "paper"})
			}
			return measuredLab(sensitivity(), rows)
		},
		"bits": func() *Lab {
			var rows []*Measurement
			for _, bits := range []int{16, 32, 48, 64, 96, 128} {
				for _, name := range []string{"labels", "joint", "paper", "FDDH"} {
					rows = append(rows, &Measurement{Row: name, Bits: bits})
				}
			}
			return measuredLab(codeLengths(), rows)
		},
		"size": func() *Lab {
			var rows []*Measurement
			for _, n := range []int{67, 135, 271, 543, 1086, 2173} {
				rows = append(rows, &Measurement{Row: "labels", TrainItems: n, Seconds: float64(n) / 1000, SecondsStd: .1})
			}
			return measuredLab(trainingSizes(), rows)
		},
	}
	wanted := map[string][]string{
		"ablation":    {"image → text", "text → an exceed…", "FDDH_NR", "Hamming", "asymmetric", "mAP"},
		"convergence": {"objective", "sweeps", "labels", "joint", "paper", "mAP"},
		"sensitivity": {"image → text, delta 1e4", "text → an exceed…, delta 0.01", "mu", "theta", "1e-5", "10", ".300", ".760"},
		"bits":        {"bits", "128", "FDDH", "mAP"},
		"size":        {"labelled items", "2173", "training", "seconds", "asymmetric"},
	}
	for name, measured := range figures {
		draw := func(path string) []byte {
			l := measured()
			f, err := l.experiment.draw(l)
			if err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := f.Write(&b, path); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		svg := draw("a.svg")
		if !bytes.Equal(svg, draw("a.svg")) || !bytes.HasPrefix(draw("a.png"), []byte("\x89PNG")) {
			t.Errorf("%s: equal measurements, other bytes, or no PNG", name)
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
	for _, x := range Kinds() {
		m := &Measurement{Row: "labels", Method: model.MethodLabels, Bits: 16, Sweeps: 1, TrainItems: 10, Retrieval: map[string]Retrieval{"a->a": {}}}
		l := &Lab{experiment: x, seeds: 1, modalities: []string{"a"}, grid: map[string][]float64{}, rows: []*Measurement{m}}
		for _, a := range x.Axes {
			l.grid[a.Name] = []float64{1}
		}
		l.pairs, l.directions = []string{"a->a"}, []string{chart.DirectionOf("a", "a")}
		f, err := x.draw(l)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := f.Write(&b, "a.svg"); err != nil {
			t.Fatal(err)
		}
		if list, _, _ := clitest.Texts(t, b.Bytes()); len(list) == 0 || strings.Contains(b.String(), "NaN") {
			t.Errorf("%s: %s", x.Name, b.String())
		}
	}
}
