package command

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/model/eval"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// inTable begins a table, on a terminal with or without charts.
func inTable(t *testing.T, e *env, charts bool) {
	t.Helper()
	e.Charts = charts
	if err := e.BeginOutput(&cobra.Command{}, term.ModeTable); err != nil {
		t.Fatal(err)
	}
}

// Charts appear only on terminals, and there only in tables.
func TestCharts(t *testing.T) {
	spaces := clitest.Spaces()
	found := []db.Retrieval{{From: "image", To: "text",
		Hamming: eval.Metrics{Database: 9, ByTop: []eval.TopPoint{{K: 1, Precision: 1},
			{K: 20, Precision: 0}}}}}
	for _, charts := range []bool{true, false} {
		got := printed(func(e *env) {
			inTable(t, e, charts)
			e.printSpaces("main", spaces, 2200)
		})
		if strings.Contains(got, "drift of image: ▂█ 0.040 to 0.310\n") != charts {
			t.Error(got)
		}
		got = printed(func(e *env) {
			inTable(t, e, charts)
			e.printEvaluation(found, 50)
		})
		for line := range strings.Lines(got) {
			if len([]rune(line)) > 100 {
				t.Errorf("%d columns: %s", len([]rune(line)), line)
			}
		}
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
	for mode, want := range map[term.Mode]bool{term.ModeTable: true, term.ModeCSV: false,
		term.ModeMarkdown: false, term.ModeLine: false, term.ModeJSON: false} {
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
