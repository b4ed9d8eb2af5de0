package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

func statsCommand(e *env) *cobra.Command {
	var o common
	cmd := &cobra.Command{
		Use:     "stats DIR",
		Short:   "Print figures about a database",
		GroupID: groupLook,
		Long: usage.Prose(`
			Stats prints figures about a database and its collections, or with --collection
			about that one: items, labels, codes, and the bytes that they take on disk and in
			memory. It loads all codes, which takes some seconds for ten million. A collection's
			bytes on disk are an estimate, without what stands in the log alone.

			It also prints the active space of codes, the other spaces, and how many items the
			model has not learned from yet. Drift says how far the items that came last are from
			those of the training (see models): above 0.2 it is time to train again. For codes
			without labels stats measures drift now, from 0 to 1, on a sample of newer items:
			how far the mean of their projections is from that of the training.`),
		Example: usage.Example(`
			fddhdb stats wiki.db
			fddhdb stats wiki.db --collection main --json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.lookAt(args[0], func(d *db.DB) error {
				// Statistics of memory are complete only when everything is in memory.
				if err := d.WaitForIndex(cmd.Context()); err != nil {
					return err
				}
				if cmd.Flags().Changed("collection") {
					return e.collectionStats(cmd.Context(), d, &o)
				}
				s, err := d.Stats()
				if err != nil {
					return err
				}
				for i := range s.Collections {
					if err := addDrift(cmd.Context(), d, &s.Collections[i]); err != nil {
						return err
					}
				}
				if o.json {
					form, err := jsonform.NewStats(cmd.Context(), d, s)
					if err != nil {
						return err
					}
					return e.PrintJSON(form)
				}
				e.PrintPairs([]term.Pair{
					term.NewPair("items", term.CountCell(s.Items)),
					term.NewPair("on disk", term.BytesCell(s.DiskBytes)),
					term.NewPair("in memory", term.BytesCell(s.MemoryBytes)),
					term.NewPair("format", fmt.Sprint(s.Format)),
					term.NewPair("UUID", s.UUID),
					term.NewPair("commits", term.CountCell(s.Sequence)),
					term.NewPair("kernel", s.Kernel),
				})
				for i := range s.Collections {
					c, err := d.Collection(s.Collections[i].Name)
					if err != nil {
						return err
					}
					e.Printf("\n")
					if err := e.printCollection(cmd.Context(), c, &s.Collections[i]); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	o.register(cmd)
	cmd.Flags().Lookup("collection").Usage = "only the collection `NAME`"
	cmd.Flags().Lookup("collection").DefValue = ""
	return cmd
}

func (e *env) collectionStats(ctx context.Context, d *db.DB, o *common) error {
	c, err := collection(d, o.collection)
	if err != nil {
		return err
	}
	s, err := c.Stats()
	if err != nil {
		return err
	}
	if err := addDrift(ctx, d, s); err != nil {
		return err
	}
	if o.json {
		form, err := jsonform.NewCollection(ctx, c, s)
		if err != nil {
			return err
		}
		return e.PrintJSON(form)
	}
	return e.printCollection(ctx, c, s)
}

// addDrift adds the drift of the items that have come since a training without labels: nothing else
// measures it.
func addDrift(ctx context.Context, d *db.DB, s *db.CollectionStats) error {
	if !s.LabelFree || s.IndexOnly {
		return nil
	}
	c, err := d.Collection(s.Name)
	if err == nil {
		s.Drift, err = c.Drift(ctx)
	}
	return err
}

func (e *env) printCollection(ctx context.Context, c *db.Collection, s *db.CollectionStats) error {
	pairs := []term.Pair{
		term.NewPair("collection", s.Name),
		term.NewPair("items", term.CountCell(s.Items)),
	}
	if s.IndexOnly {
		pairs = append(pairs, term.NewPair("index-only",
			"a copy without vectors: it can be searched, and not written to"))
	}
	for _, m := range s.Modalities {
		text := fmt.Sprintf("%s, %s%s, in %s", m.Name, term.Plural(m.Dim, "dimension", "dimensions"),
			textform.DescribeMetric(m.Modality), term.Plural(m.Items, "item", "items"))
		if s.Trained && !m.Learned {
			text += ", unknown to the model"
		}
		pairs = append(pairs, term.NewPair("modality", text))
	}
	for _, f := range s.Fields {
		text := fmt.Sprintf("%s, %s", f.Name, f.Type)
		if f.Indexed {
			text += ", indexed"
		}
		pairs = append(pairs, term.NewPair("field", text))
	}
	pairs = append(pairs, term.NewPair("labels", term.CountCell(s.Labels)))
	codes := "none: not trained"
	if s.Trained {
		codes = fmt.Sprintf("%d bits, %s distinct, of %s", s.Bits, term.Thousands(s.DistinctCodes),
			term.Plural(s.CodedItems, "item", "items"))
	}
	pairs = append(pairs, term.NewPair("codes", codes))
	if len(s.Modalities) > 0 {
		spaces, err := c.Spaces(ctx)
		if err != nil {
			return err
		}
		pairs = append(pairs, spacePairs(s, spaces)...)
	}
	onDisk, err := c.DiskBytes(ctx)
	if err != nil {
		return err
	}
	pairs = append(pairs, term.NewPair("on disk", "about "+term.Size(onDisk)),
		term.NewPair("in memory", term.BytesCell(s.MemoryBytes)))
	if len(s.Modalities) > 0 && s.Trained {
		pairs = append(pairs, term.NewPair("of it, to put hits in order", term.BytesCell(s.RerankBytes)))
	}
	for _, x := range s.VectorIndexes {
		state := fmt.Sprintf("%s in %s, recall %v", term.Plural(x.Entries, "vector", "vectors"),
			term.Plural(x.Cells, "cell", "cells"), x.Recall)
		switch {
		case x.Damage != "":
			state = "damaged: searches compare all vectors; fddhdb index makes it anew"
		case !x.Complete:
			state += ", not complete"
		case x.Outgrown:
			state = "too much has changed since it was made: searches compare all vectors; fddhdb index makes it anew"
		case x.Cells == 0:
			state = fmt.Sprintf("recall %v; coming into memory", x.Recall)
		case x.Unknown > 0:
			state += fmt.Sprintf("; %s to take in", term.Plural(x.Unknown, "row", "rows"))
		}
		pairs = append(pairs, term.NewPair("index of "+x.Modality, state))
	}
	e.PrintPairs(pairs)
	return nil
}

// spacePairs is a summary of models: the active space, the others, items that wait to
// be learned from, and drift.
func spacePairs(s *db.CollectionStats, spaces []db.SpaceInfo) []term.Pair {
	var pairs []term.Pair
	var others []string
	for i := range spaces {
		sp := &spaces[i]
		if sp.State != db.SpaceActive {
			others = append(others, fmt.Sprintf("%d, %s", sp.Space, spaceState(sp, s.Items)))
			continue
		}
		pairs = append(pairs, term.NewPair("space", fmt.Sprintf("%d, revision %d", sp.Space, sp.Revision)))
		if s.LabelFree {
			learned := "without labels"
			if sp.Training != nil {
				learned += ", by " + sp.Training.Method.String()
			}
			pairs = append(pairs, term.NewPair("learned", learned))
			pairs = append(pairs, driftPairs(s)...)
			continue
		}
		pairs = append(pairs, term.NewPair("learned", fmt.Sprintf("from %s, %s pending",
			term.Plural(sp.Taught, "item", "items"), term.Thousands(sp.Pending))))
		pairs = append(pairs, driftPairs(s)...)
	}
	if len(others) > 0 {
		pairs = append(pairs, term.NewPair("other spaces", strings.Join(others, "; ")))
	}
	return pairs
}

// driftPairs tells of the drift of the items that came last.
func driftPairs(s *db.CollectionStats) []term.Pair {
	var pairs []term.Pair
	for _, m := range s.Modalities {
		if x, known := s.Drift[m.Name]; known {
			pairs = append(pairs, term.NewPair("drift of "+m.Name, driftText(m.Name, x)))
		}
	}
	return pairs
}

func driftText(modality string, x float64) string {
	text := fmt.Sprintf("%.3f", x)
	if (db.Drift{modality: x}).TrainAgain() {
		text += ": train again"
	}
	return text
}
