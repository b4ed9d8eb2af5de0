package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
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
			Index makes searches by vectors faster, where there are so many that comparing
			all takes long: from some ten thousand on. It needs no labels. Vectors of the
			modality are put into --cells around centres, and get a code there; then some
			items are taken for queries, and what is found of their nearest is measured.
			A search looks at as much as its --recall needs: at .95 it finds 95% of what
			there is to find, on average over queries, in a fraction of the time. --recall
			is what searches get that do not say. What is found is compared exactly, and
			filters hold.

			New and changed items are compared with every query at first, and taken into the
			index in the background when there are some hundred of them. Items of a kind that
			was not there before fit no cell and go on being compared. The index is made anew
			in the background when enough has come, changed or gone. --drop deletes it.`),
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
			case f.Changed("cells") && opt.Cells < 1:
				return exit.Usagef("--cells %d: 1 or more are possible", opt.Cells)
			case drop && (f.Changed("recall") || f.Changed("cells") || f.Changed("seed")):
				return exit.Usagef("--drop deletes an index: leave out what is for making one")
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
						return exit.Usagef("--modality NAME is missing: collection %q has %s", c.Name(), cmp.Or(strings.Join(names, ", "), "no vectors, its items bring codes"))
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
	f.StringVar(&opt.Modality, "modality", "", "the modality `NAME` of the vectors; not needed where there is one")
	f.Float64Var(&opt.Recall, "recall", 0, "`X`, above 0 and up to 1, that searches get which do not say (default .99)")
	f.IntVar(&opt.Cells, "cells", 0, "about the number `N` of cells (default: twice the square root of the number of vectors)")
	f.Uint64Var(&opt.Seed, "seed", 0, "seed `N` of what is random")
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
	e.Printf("indexed %s of modality %s of collection %s in %s; searches get a recall of %v unless they ask for another\n\n",
		term.Plural(x.Entries, "vector", "vectors"), x.Modality, c.Name(), term.Plural(x.Cells, "cell", "cells"), x.Recall)
	ks, reaches := []int{}, []float64{}
	of := map[int]map[float64]string{}
	for _, p := range x.Measured {
		if of[p.K] == nil {
			of[p.K] = map[float64]string{}
			ks = append(ks, p.K)
		}
		if !slices.Contains(reaches, p.Reach) {
			reaches = append(reaches, p.Reach)
		}
		of[p.K][p.Reach] = fmt.Sprintf("%.3f in %.0f", p.Recall, p.Probes)
	}
	columns := []term.Column{term.Right("reach")}
	for _, k := range ks {
		columns = append(columns, term.Right(fmt.Sprintf("recall of %d", k)))
	}
	slices.Sort(reaches)
	var rows [][]any
	for _, reach := range reaches {
		row := []any{fmt.Sprintf("%.2f", reach)}
		for _, k := range ks {
			row = append(row, of[k][reach])
		}
		rows = append(rows, row)
	}
	e.PrintTable(columns, rows)
	e.Printf("\nrecall: the share of the nearest so many that is found, and in how many cells, on average over %s that were queries;\nreach is what a cell is believed to promise, up to where all are found\n\n",
		term.Plural(x.Queries, "item", "items"))
	if ks := notReached(x); len(ks) > 0 {
		e.Printf("no reach has a recall of %v of the nearest %s: searches that ask for it compare all vectors\n\n", x.Recall, strings.Join(ks, " and "))
	}
	e.PrintPairs([]term.Pair{
		term.NewPair("memory", fmt.Sprintf("%.1f MiB", float64(x.Bytes)/(1<<20))),
		term.NewPair("seconds", phases(x.Seconds)),
	})
}

// notReached returns those k that were measured for which no reach has the recall of the index, by its
// lower bound. They are returned as text.
func notReached(x *db.VectorIndex) (ks []string) {
	best := map[int]float64{}
	for _, p := range x.Measured {
		best[p.K] = max(best[p.K], min(p.Recall-p.Error, p.Worst))
	}
	for _, k := range slices.Sorted(maps.Keys(best)) {
		if best[k] < x.Recall {
			ks = append(ks, strconv.Itoa(k))
		}
	}
	return ks
}
