package command

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

func indexCommand(e *env) *cobra.Command {
	var o common
	var opt db.IndexOptions
	drop := false
	cmd := &cobra.Command{
		Use:     "index DIR [--modality NAME]",
		Short:   "Make an index of vectors, for searches by vectors among many",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Index makes searches by vectors faster, from some ten thousand vectors on. It needs
			no labels. It puts the vectors of the modality into cells around centres. Then it
			takes some items as queries, and measures how many of their nearest it finds.

			A search looks at as much as its --recall needs: at .95 it finds 95% of the nearest,
			on average over queries, in a fraction of the time. index --recall is the default of
			searches. Found items are compared exactly, and filters hold.

			Every query compares new and changed items, until the index takes in some hundred of
			them in the background. Items of a new kind fit no cell, and queries go on comparing
			them. When enough has come, changed or gone, the index is made anew in the
			background. --drop deletes it.`),
		Example: usage.Example(`
			fddhdb index photos.db
			fddhdb index photos.db --modality image --recall .95
			fddhdb search photos.db --from image --vectors query.npy --recall .9`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			switch {
			case f.Changed("recall") && !(opt.Recall > 0 && opt.Recall <= 1):
				return exit.Usagef("--recall %v: above 0, up to 1, are possible", opt.Recall)
			case drop && f.Changed("recall"):
				return exit.Usagef("--drop deletes an index: leave out --recall")
			}
			return e.withCollection(args[0], &o, func(_ *db.DB, c *db.Collection) error {
				schema, err := c.Schema()
				if err != nil {
					return err
				}
				if opt.Modality == "" {
					if len(schema.Modalities) != 1 {
						var names []string
						for _, m := range schema.Modalities {
							names = append(names, m.Name)
						}
						return exit.Usagef("--modality NAME is missing: collection %q has %s", c.Name(),
							cmp.Or(strings.Join(names, ", "), "no vectors, its items bring codes"))
					}
					opt.Modality = schema.Modalities[0].Name
				}
				if _, err := source.FindModality(c.Name(), schema, "--modality", opt.Modality); err != nil {
					return err
				}
				if drop {
					return e.dropIndex(cmd.Context(), c, &o, opt.Modality)
				}
				x, err := e.makeIndex(cmd.Context(), c, opt)
				if err != nil {
					return err
				}
				if o.json {
					return e.PrintJSON(x)
				}
				e.printIndex(c, x)
				return nil
			})
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.StringVar(&opt.Modality, "modality", "",
		"the modality `NAME` of the vectors; not needed where there is one")
	f.Float64Var(&opt.Recall, "recall", 0,
		"`X`, above 0 and up to 1, that searches get which do not say (default .99)")
	f.BoolVar(&drop, "drop", false, "delete the index of the modality")
	return cmd
}

// makeIndex makes an index with a bar of progress.
func (e *env) makeIndex(ctx context.Context, c *db.Collection, opt db.IndexOptions) (*db.VectorIndex, error) {
	bar := e.NewProgress()
	defer bar.End()
	opt.Progress = bar.Report
	return c.IndexVectors(ctx, opt)
}

// droppedIndexJSON is the JSON of an index that has been deleted.
type droppedIndexJSON struct {
	Modality string `json:"modality"`
}

func (e *env) dropIndex(ctx context.Context, c *db.Collection, o *common, modality string) error {
	if err := c.DropVectorIndex(ctx, modality); err != nil {
		return err
	}
	if o.json {
		return e.PrintJSON(droppedIndexJSON{modality})
	}
	e.Printf("dropped the index of the vectors of %s\n", modality)
	return nil
}

// printIndex prints a new index: what searches find with it.
func (e *env) printIndex(c *db.Collection, x *db.VectorIndex) {
	e.Printf("indexed %s of modality %s of collection %s in %s: %s, %s\n",
		term.Plural(x.Entries, "vector", "vectors"), x.Modality, c.Name(), term.Seconds(x.Seconds["total"]),
		term.Plural(x.Cells, "cell", "cells"), term.Size(int64(x.Bytes)))
	for _, k := range measuredKs(x) {
		if p := pointFor(x, k); p != nil {
			e.Printf("of the nearest %d a search finds %.3f, in %.0f cells of %d\n", k, p.Recall, p.Probes,
				x.Cells)
		} else {
			e.Printf("of the nearest %d a search finds all, by comparing all vectors: no number of cells is enough\n", k)
		}
	}
	e.Printf("searches ask for a recall of %v: give another one with --recall\n", x.Recall)
}

// measuredKs returns the numbers of neighbors for which the recall was measured, in order.
func measuredKs(x *db.VectorIndex) (ks []int) {
	for _, p := range x.Measured {
		if !slices.Contains(ks, p.K) {
			ks = append(ks, p.K)
		}
	}
	slices.Sort(ks)
	return ks
}

// pointFor returns the point with the fewest cells at which the nearest k are found with the recall of the
// index, by its lower bound; nil if there is none.
func pointFor(x *db.VectorIndex, k int) (best *report.RecallPoint) {
	for i := range x.Measured {
		p := &x.Measured[i]
		if p.K == k && min(p.Recall-p.Error, p.Worst) >= x.Recall && (best == nil || p.Probes < best.Probes) {
			best = p
		}
	}
	return best
}
