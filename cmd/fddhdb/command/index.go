package command

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

func indexCommand(e *env) *cobra.Command {
	v := e.verb(groupLearn, "index DIR [--modality NAME]", "Make an index of vectors, for searches by vectors among many",
		`
		Index makes searches by vectors faster, from some ten thousand vectors on. It needs
		no labels. It puts the vectors of the modality into cells around centres. Then it
		takes some items as queries, and measures how many of their nearest it finds.

		A search looks at as much as its --recall needs: at .95 it finds 95% of the nearest,
		on average over queries, in a fraction of the time. index --recall is the default of
		searches. Found items are compared exactly, and filters hold.

		Every query compares new and changed items, until the index takes in some hundred of
		them in the background. Items of a new kind fit no cell, and queries go on comparing
		them. When enough has come, changed or gone, the index is made again in the
		background. --drop deletes it.`, `
		fddhdb index photos.db
		fddhdb index photos.db --modality image --recall .95
		fddhdb search photos.db --from image --vectors query.npy --recall .9`).onCollection()
	var opt db.IndexOptions
	drop := false
	v.f.StringVar(&opt.Modality, "modality", "",
		"the modality `NAME` of the vectors; not needed where there is one")
	v.recall(&opt.Recall, "`X`, above 0 and up to 1, that searches get which do not say (default .99)")
	v.f.BoolVar(&drop, "drop", false, "delete the index of the modality")
	return v.does(func() error {
		if drop && v.given("recall") {
			return exit.Usagef("--drop deletes an index: leave out --recall")
		}
		return v.change(func() error {
			schema, err := v.c.Schema()
			if err != nil {
				return err
			}
			if opt.Modality == "" {
				var names []string
				for _, m := range schema.Modalities {
					names = append(names, m.Name)
				}
				if len(names) != 1 {
					return exit.Usagef("--modality NAME is missing: collection %q has %s", v.c.Name(),
						cmp.Or(strings.Join(names, ", "), "no vectors, its items bring codes"))
				}
				opt.Modality = names[0]
			}
			if _, err := source.FindModality(v.c.Name(), schema, "--modality", opt.Modality); err != nil {
				return err
			}
			if drop {
				if err := v.c.DropVectorIndex(v.ctx, opt.Modality); err != nil {
					return err
				}
				return v.tell(map[string]string{"modality": opt.Modality}, "dropped the index of the vectors of %s",
					opt.Modality)
			}
			opt.Progress = v.Progress().Report
			x, err := v.c.IndexVectors(v.ctx, opt)
			if err != nil {
				return err
			}
			if v.json {
				return v.PrintJSON(x)
			}
			v.printIndex(x)
			return nil
		})
	})
}

// printIndex prints a new index: what searches find with it.
func (v *verb) printIndex(x *report.VectorIndex) {
	v.Printf("indexed %s of modality %s of collection %s in %s: %s, %s\n",
		term.Plural(x.Entries, "vector", "vectors"), x.Modality, v.c.Name(), term.Seconds(x.Seconds["total"]),
		term.Plural(x.Cells, "cell", "cells"), term.Size(int64(x.Bytes)))
	// by number of neighbors, with the fewest cells; nil: none has the recall
	best := map[int]*report.RecallPoint{}
	for i := range x.Measured {
		p := &x.Measured[i]
		if now := best[p.K]; min(p.Recall-p.Error, p.Worst) < x.Recall || now != nil &&
			now.Probes <= p.Probes {
			p = now
		}
		best[x.Measured[i].K] = p
	}
	for _, k := range slices.Sorted(maps.Keys(best)) {
		if p := best[k]; p != nil {
			v.Printf("of the nearest %d a search finds %.3f, in %.0f cells of %d\n", k, p.Recall, p.Probes, x.Cells)
		} else {
			v.Printf("of the nearest %d a search finds all, by comparing all vectors: no number of cells is enough\n", k)
		}
	}
	v.Printf("searches ask for a recall of %v: give another one with --recall\n", x.Recall)
}
