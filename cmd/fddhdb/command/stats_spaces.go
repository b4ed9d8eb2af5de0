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
