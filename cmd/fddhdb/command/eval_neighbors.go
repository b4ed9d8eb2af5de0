package command

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// truthNeighbours is the value of --truth by which a query is to find the items with the nearest vectors.
const truthNeighbours = "neighbours"

// defaultNeighbours is --top for truthNeighbours.
const defaultNeighbours = 10

// checkNeighbours refuses flags that are about labels.
func (o *evalOptions) checkNeighbours(given func(flag string) bool) error {
	if len(o.vectors.List) == 0 {
		return exit.Usagef("eval needs queries: --vectors NAME=FILE")
	}
	for _, flag := range []string{"labels", "label-names", "plot"} {
		if given(flag) {
			return exit.Usagef("--%s: with --truth %s nothing is measured by labels: leave it out", flag, truthNeighbours)
		}
	}
	if !given("top") {
		o.top = defaultNeighbours
	}
	if o.top < 1 {
		return exit.Usagef("--top %d: 1 or more are possible", o.top)
	}
	return nil
}

// evaluateNeighbours measures queries by the nearest items by vectors, and prints the recall.
func (e *env) evaluateNeighbours(ctx context.Context, c *db.Collection, o *evalOptions) error {
	bar := e.NewProgress()
	defer bar.End()
	read := &db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{}}
	if _, err := o.readVectors(c, read, bar); err != nil {
		return err
	}
	bar.Report("evaluating", 0, 0)
	found, err := c.EvaluateNeighbors(ctx, db.NeighborEvaluation{Queries: read.Queries, Sparse: read.Sparse, K: o.top, Where: o.where.Expr})
	bar.End()
	if err != nil {
		return o.where.wrap(err)
	}
	if o.json {
		return e.PrintJSON(found)
	}
	var rows [][]any
	for _, r := range found {
		for _, w := range r.Windows {
			rows = append(rows, []any{r.Modality, w.Window, term.NumberCell(w.Recall, 4), term.CountCell(r.Queries), term.CountCell(r.Items)})
		}
	}
	e.PrintTable([]term.Column{term.Left("modality"), term.Right("first"), term.Right(fmt.Sprintf("recall@%d", o.top)), term.Right("queries"), term.Right("items")}, rows)
	return nil
}
