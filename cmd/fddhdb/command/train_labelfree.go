package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
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
	e.printRecall(t.Recall)
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

// printRecall prints the recall of each method and number of bits that was tried, by window.
func (e *env) printRecall(r *model.RecallChoice) {
	switch {
	case r == nil:
		return
	case r.Unfit != "":
		e.Printf("recall is not measured, and bits are not chosen by it: %s\n\n", r.Unfit)
		return
	}
	columns := []term.Column{term.Left("recall"), term.Right("bits")}
	var windows []int
	for _, x := range r.Tried {
		if !slices.Contains(windows, x.Window) {
			windows = append(windows, x.Window)
			columns = append(columns, term.Right(fmt.Sprintf("in %s", term.Thousands(x.Window))))
		}
	}
	var rows [][]any
	for i := 0; i < len(r.Tried); i += len(windows) {
		row := []any{r.Tried[i].Method.String(), r.Tried[i].Bits}
		for _, x := range r.Tried[i : i+len(windows)] {
			row = append(row, term.NumberCell(x.Recall, 3))
		}
		note := ""
		if r.Tried[i].Chosen {
			note = "chosen"
		}
		rows = append(rows, append(row, note))
	}
	e.PrintTable(append(columns, term.Left("")), rows)
	found := fmt.Sprintf("the %d nearest items by the cosine of vectors", r.K)
	if r.Paired {
		found = "the item itself, by its other modality,"
	}
	e.Printf("\nrecall: the share of %s that is among the first so many of %s by the distance of codes; %s were held out as queries\n\n",
		found, term.Plural(r.Items, "item", "items"), term.Plural(r.Queries, "item", "items"))
}

// trainedJSON is the JSON of a training, with the indexes of vectors that it has made.
type trainedJSON struct {
	*db.Training
	Indexes []*db.VectorIndex `json:"indexes,omitempty"`
}

// indexAll makes an index of the vectors of each dense modality that some item has.
func (e *env) indexAll(ctx context.Context, c *db.Collection, seed uint64) (all []*db.VectorIndex, err error) {
	s, err := c.Stats()
	if err != nil {
		return nil, err
	}
	for _, m := range s.Modalities {
		if m.Sparse || m.Items == 0 {
			continue
		}
		x, err := e.makeIndex(ctx, c, db.IndexOptions{Modality: m.Name, Seed: seed})
		if err != nil {
			return all, err
		}
		all = append(all, x)
	}
	return all, nil
}
