package command

import (
	"fmt"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

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
		pairs = append(pairs, term.NewPair("learned", fmt.Sprintf("from %s, %s pending", term.Plural(sp.Taught, "item", "items"), term.Thousands(sp.Pending))))
		pairs = append(pairs, driftPairs(s)...)
	}
	if len(others) > 0 {
		pairs = append(pairs, term.NewPair("other spaces", strings.Join(others, "; ")))
	}
	return pairs
}

// driftPairs compares the last items with the first ones.
func driftPairs(s *db.CollectionStats) []term.Pair {
	if len(s.Drift) == 0 {
		return nil
	}
	first, last := &s.Drift[0], &s.Drift[len(s.Drift)-1]
	var pairs []term.Pair
	for _, m := range s.Modalities {
		d, known := last.Modalities[m.Name]
		if !known {
			continue
		}
		text := revisionName(last) + ": " + driftText(d)
		if before, known := first.Modalities[m.Name]; known && first != last {
			text += "; " + revisionName(first) + ": " + driftText(before)
		}
		pairs = append(pairs, term.NewPair("drift of "+m.Name, text))
	}
	return pairs
}

func revisionName(d *db.RevisionDrift) string {
	if d.Trained {
		return "training"
	}
	if d.Revision == 1 { // which only a space without updates measures on later items
		return "later items"
	}
	return fmt.Sprintf("revision %d", d.Revision)
}

func driftText(d db.ModalityDrift) string {
	var parts []string
	if d.Nearest != nil {
		parts = append(parts, fmt.Sprintf("nearest %d/%d", d.Nearest.P50, d.Nearest.P90))
	}
	if d.Residual != nil {
		parts = append(parts, fmt.Sprintf("residual %.3f", *d.Residual))
	}
	if d.Offset != nil {
		parts = append(parts, fmt.Sprintf("offset %.3f", *d.Offset))
	}
	if d.Balance != nil {
		parts = append(parts, fmt.Sprintf("balance %.3f", d.Balance.BitBalance))
	}
	return strings.Join(parts, ", ")
}
