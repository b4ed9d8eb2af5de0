package command

import (
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// printLabelFree prints a training without labels.
func (e *env) printLabelFree(c *db.Collection, t *db.Training, s *db.CollectionStats) {
	e.Printf("trained collection %s on %s, without labels: space %d, revision %d\n\n",
		c.Name(), term.Plural(t.TrainItems, "item", "items"), t.Space, t.Revision)
	for _, name := range t.LeftOut {
		e.Warnf("warning: no item has a vector of modality %q, so nothing is learned of it: import some, and train again, before searching by it", name)
	}
	var rows [][]any
	for _, m := range s.Modalities {
		if ch, learned := t.Chosen[m.Name]; learned {
			rows = append(rows, []any{m.Name, ch.FeatureMap.String(), term.CountCell(m.Dim), term.CountCell(ch.Items)})
		}
	}
	e.PrintTable([]term.Column{term.Left("modality"), term.Left("features"), term.Right("dimensions"), term.Right("items")}, rows)
	e.Printf("\n")
	e.PrintPairs([]term.Pair{
		term.NewPair("bits", fmt.Sprint(t.Bits)),
		term.NewPair("method", t.Method.String()),
		term.NewPair("bit balance", fmt.Sprintf("%.3f", t.BitBalance)),
		term.NewPair("constant bits", fmt.Sprint(t.ConstantBits)),
		term.NewPair("distinct codes", fmt.Sprintf("%s of the sampled items, %s of all", term.Thousands(t.DistinctCodes), term.Thousands(s.DistinctCodes))),
		term.NewPair("items with a code", fmt.Sprintf("%s of %s", term.Thousands(s.CodedItems), term.Thousands(s.Items))),
		term.NewPair("memory", fmt.Sprintf("about %s MiB", term.Thousands(max(1, t.MemoryBytes>>20)))),
		term.NewPair("seconds", phases(t.Seconds)),
	})
}
