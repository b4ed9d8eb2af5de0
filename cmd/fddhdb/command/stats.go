package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

func statsCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLook, "stats DIR", "Print figures about a database", `
		Stats prints figures about a database and its collections, or with --collection
		about that one: items, labels, codes, and the bytes that they take on disk and in
		memory. It loads all codes, which takes some seconds for ten million. A collection's
		bytes on disk are an estimate, without what stands in the log alone.

		It also prints the active space of codes, and how many items the model has not learned
		from yet. Drift says how far the items that came last are from
		those of the training (see models): above 0.2 it is time to train again. For codes
		without labels stats measures drift now, from 0 to 1, on a sample of newer items:
		how far the mean of their projections is from that of the training.`, `
		fddhdb stats wiki.db
		fddhdb stats wiki.db --collection main --json`)
	v.OnAnyCollection("only the collection `NAME`")
	return v.Looks(func() error {
		// Statistics of memory are complete only when everything is in memory.
		if err := v.DB.WaitForIndex(v.Ctx); err != nil {
			return err
		}
		s, err := v.DB.Stats(v.Ctx)
		if err != nil {
			return err
		}
		if err := forms.Measure(v.Ctx, v.DB, s); err != nil {
			return err
		}
		for i := range s.Collections {
			c := &s.Collections[i]
			if v.Collection != nil && v.Collection.Name() != c.Name {
				continue
			}
			// nothing else measures the drift of items since a training without labels
			if c.LabelFree && !c.IndexOnly {
				of, err := v.DB.Collection(v.Ctx, c.Name)
				var measured *db.CollectionStats
				if err == nil {
					measured, err = of.Stats(v.Ctx, db.MeasuredDrift)
				}
				if err != nil {
					return err
				}
				c.Drift = measured.Drift
			}
			if v.Collection != nil {
				return printCollection(v, c, s.UUID != "")
			}
		}
		if v.JSON {
			return v.PrintJSON(s)
		}
		pairs := []term.Pair{term.NewPair("items", term.CountCell(s.Items))}
		if s.UUID != "" { // a cluster has none of these
			pairs = append(pairs,
				term.NewPair("on disk", term.BytesCell(s.DiskBytes)),
				term.NewPair("in memory", term.BytesCell(s.MemoryBytes)),
				term.NewPair("UUID", s.UUID),
				term.NewPair("commits", term.CountCell(s.Sequence)),
			)
		}
		v.PrintPairs(pairs)
		for i := range s.Collections {
			v.Printf("\n")
			if err := printCollection(v, &s.Collections[i], s.UUID != ""); err != nil {
				return err
			}
		}
		return nil
	})
}

// printCollection prints the items of a collection, its codes, and advice. --json has the rest. one says that
// it is of one database, and not of a cluster, which knows less.
func printCollection(v *run.Verb, c *db.CollectionStats, one bool) error {
	if v.JSON {
		return v.PrintJSON(c)
	}
	pairs := []term.Pair{term.NewPair("collection", c.Name), term.NewPair("items", term.CountCell(c.Items))}
	add := func(name, format string, args ...any) {
		pairs = append(pairs, term.NewPair(name, fmt.Sprintf(format, args...)))
	}
	if c.IndexOnly {
		add("index-only", "a copy without vectors: it can be searched, and not written to")
	}
	for _, m := range c.Modalities {
		unknown := ""
		if one && c.Trained && !m.Learned {
			unknown = ", unknown to the model"
		}
		add("modality", "%s, %s%s, in %s%s", m.Name, term.Plural(m.Dim, "dimension", "dimensions"),
			forms.DescribeMetric(m.Modality), term.Plural(m.Items, "item", "items"), unknown)
	}
	for _, f := range c.Fields {
		add("field", "%s, %s", f.Name, forms.DescribeField(f))
	}
	add("labels", "%s", term.Thousands(c.Labels))
	switch {
	case !c.Trained:
		add("codes", "none: not trained")
	case !one:
		add("codes", "%d bits, of %s", c.Bits, term.Plural(c.CodedItems, "item", "items"))
	default:
		add("codes", "%d bits, %s distinct, of %s", c.Bits, term.Thousands(c.DistinctCodes),
			term.Plural(c.CodedItems, "item", "items"))
	}
	if c.Trained && len(c.Modalities) > 0 {
		add("space", "%d, revision %d", c.Space, c.Revision)
		switch {
		case c.LabelFree:
			add("learned", "without labels")
		case one:
			add("learned", "from %s, %s pending", term.Plural(c.Taught, "item", "items"),
				term.Thousands(c.Pending))
		}
	}
	for _, m := range c.Modalities {
		if x, known := c.Drift[m.Name]; known {
			add("drift of "+m.Name, "%s", driftText(m.Name, x))
		}
	}
	if one {
		add("on disk", "about %s", term.Size(c.DiskBytes))
		add("in memory", "%s", term.Size(c.MemoryBytes))
	}
	for _, x := range c.VectorIndexes {
		switch {
		case x.Damage != "" || x.Outgrown:
			add("index of "+x.Modality, "damaged, or outgrown: searches compare all vectors; fddhdb index makes it again")
		case !x.Complete:
			add("index of "+x.Modality, "%s",
				strings.Join(append([]string{"not complete"}, x.Waiting...), "; "))
		case !one:
			add("index of "+x.Modality, "%s, recall %v", term.Plural(x.Entries, "vector", "vectors"),
				x.Recall)
		default:
			add("index of "+x.Modality, "%s in %s, recall %v; %s to take in", term.Plural(x.Entries, "vector", "vectors"),
				term.Plural(x.Cells, "cell", "cells"), x.Recall, term.Plural(x.Unknown, "row", "rows"))
		}
	}
	v.PrintPairs(pairs)
	return nil
}

func driftText(modality string, x float64) string {
	text := fmt.Sprintf("%.3f", x)
	if (report.Drift{modality: x}).TrainAgain() {
		text += ": train again"
	}
	return text
}
