package command

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// printFusion prints how codes of items without labels are made, and what else was
// tried.
func (e *env) printFusion(t *db.Training, s *db.CollectionStats) {
	f := t.Fusion
	if f == nil {
		return
	}
	var modalities []string // modalities of the model, in order
	for _, m := range s.Modalities {
		if _, learned := t.Chosen[m.Name]; learned {
			modalities = append(modalities, m.Name)
		}
	}
	if f.Unfit != "" && len(modalities) > 1 {
		e.Printf("nothing is measured of items without labels: %s\n\n", f.Unfit)
	}
	if len(modalities) > 1 {
		e.Printf("items without labels get their codes from %s\n\n", fusionFormula(f.FusionTried, modalities))
	}
	if len(f.Tried) == 0 {
		return
	}
	var rows [][]any
	var directions []string
	columns := []term.Column{term.Left("tried"), term.Right("centre")}
	for _, from := range modalities {
		for _, to := range modalities {
			if d := from + "->" + to; hasKey(f.Directions, d) {
				directions = append(directions, d)
			}
		}
	}
	if len(directions) <= maxDirections {
		for _, d := range directions {
			columns = append(columns, term.Right(d))
		}
	}
	for i, tried := range f.Tried {
		if !showsFusion(f, i) {
			continue
		}
		note := ""
		if tried.Name == f.Name && tried.Centre == f.Centre {
			note = "chosen"
		}
		row := []any{fusionName(tried.Name, modalities), term.Setting(tried.Centre)}
		if len(directions) <= maxDirections {
			for _, d := range directions {
				row = append(row, term.NumberCell(tried.Directions[d], 4))
			}
		}
		rows = append(rows, append(row, term.NumberCell(tried.MAP, 4), term.NumberCell(tried.StdErr, 4), note))
	}
	e.PrintTable(append(columns, term.Right("mAP"), term.Right("+-"), term.Left("")), rows)
	e.Printf("\n%s +- %.4f against the sum", term.Difference(f.OverSum.MAP), f.OverSum.StdErr)
	if r := f.OverRunnerUp; r != nil {
		e.Printf(", %s +- %.4f against the best other (%s, centre %s)", term.Difference(r.MAP), r.StdErr, fusionName(r.Name, modalities), term.Setting(r.Centre))
	}
	e.Printf("\n\n")
}

// showsFusion reports whether try i has a row. The plain sum, which comes first, the
// choice, and the best centre of everything else have one. --json has all.
func showsFusion(v *fit.FusionChoice, i int) bool {
	t := v.Tried[i]
	if i == 0 || t.Name == v.Name {
		return i == 0 || t.Centre == v.Centre
	}
	return !slices.ContainsFunc(v.Tried, func(o fit.FusionTried) bool { return o.Name == t.Name && o.MAP > t.MAP })
}

// maxDirections is the number of directions with columns of their own.
const maxDirections = 6

func hasKey(m map[string]float64, key string) bool {
	_, ok := m[key]
	return ok
}

// fusionName returns the name of a try; a modality is taken alone.
func fusionName(name string, modalities []string) string {
	if slices.Contains(modalities, name) {
		return "only " + name
	}
	return name
}

// fusionFormula returns a fusion as text: 0.26 image + text, less half of the mean
// code.
func fusionFormula(f fit.FusionTried, modalities []string) string {
	var terms []string
	for _, m := range modalities {
		switch w := f.Weights[m]; w {
		case 0:
		case 1:
			terms = append(terms, m)
		default:
			terms = append(terms, term.Setting(w)+" "+m)
		}
	}
	formula := strings.Join(terms, " + ")
	switch f.Centre {
	case 0:
	case 1:
		formula += ", less the mean aim of each"
	default:
		formula += fmt.Sprintf(", less %s times the mean aim of each", term.Setting(f.Centre))
	}
	return formula
}
