package command

import (
	"math"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

func TestChart(t *testing.T) {
	for _, c := range []struct {
		values    []float64
		low, high float64
		want      string
	}{
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, 0, 7, "▁▂▃▄▅▆▇█"},
		{[]float64{-5, 50, math.Inf(1)}, 0, 10, "▁██"},
		{[]float64{0, 0}, 0, 0, "▁▁"},
		{nil, 0, 1, ""},
	} {
		if got := chart(c.values, c.low, c.high); got != c.want {
			t.Errorf("%v: %s, want %s", c.values, got, c.want)
		}
	}
}

// inTable begins a table, on a terminal with or without charts.
func inTable(t *testing.T, e *env, charts bool) {
	t.Helper()
	e.Charts = charts
	if err := e.BeginOutput(&cobra.Command{}, term.ModeTable); err != nil {
		t.Fatal(err)
	}
}

// Charts stand on terminals only, and there only in tables.
func TestCharts(t *testing.T) {
	spaces := clitest.Spaces()
	last := spaces[0].Revisions[2]
	drift := *last.Drift
	drift.Modalities = map[string]db.ModalityDrift{"image": drift.Modalities["image"]}
	half := .35
	d := drift.Modalities["image"]
	d.Residual = &half
	drift.Modalities["image"] = d
	spaces[0].Revisions[1].Drift = &drift
	found := []db.Retrieval{{From: "image", To: "text", Hamming: model.Metrics{ByTop: []model.TopPoint{{K: 1, Precision: 1}, {K: 20, Precision: 0}}}}}
	for _, charts := range []bool{true, false} {
		got := printed(func(e *env) {
			inTable(t, e, charts)
			e.printSpaces("main", spaces, 2200)
		})
		if strings.Contains(got, "image that came: residual ▅█ 0.350 to 0.700, nearest p50 ██ 9 to 9\n") != charts {
			t.Error(got)
		}
		got = printed(func(e *env) {
			inTable(t, e, charts)
			e.printEvaluation(found, 50)
		})
		if strings.Contains(got, "precision@1..20\n") != charts || strings.Contains(got, "█▁") != charts {
			t.Error(got)
		}
	}
	e := newTestEnv()
	e.Charts = true
	root := rootCommand(e)
	cmd, _, err := root.Find([]string{"models"})
	if err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[term.Mode]bool{term.ModeTable: true, term.ModeCSV: false, term.ModeMarkdown: false, term.ModeLine: false, term.ModeJSON: false} {
		err := e.Scope(func() error {
			if err := e.BeginOutput(cmd, mode); err != nil {
				return err
			}
			if e.ChartsShown() != want {
				t.Errorf("%s: charts %v", mode, e.ChartsShown())
			}
			return nil
		})
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
