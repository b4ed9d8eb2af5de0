package command

import (
	"context"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// An experiment is one of the kinds, a file each.
type experiment struct {
	name string
	axes []axis   // that --grid can set
	sets []string // flags of settings that it goes over itself
	// run measures.
	run func(ctx context.Context, l *lab) error
	// lead are the first columns of the table, cells those of a row.
	lead  []term.Column
	cells func(l *lab, m *measurement) []any
	draw  func(l *lab) (*chart.Figure, error)
}

// An axis is a list of numbers that an experiment goes over.
type axis struct {
	name   string
	values []float64 // unless --grid gives others; nil: they depend on the items
	whole  bool
	least  float64
}

// experiments are all kinds, in the order of help.
func experiments() []*experiment {
	return []*experiment{ablation(), convergence(), sensitivity(), codeLengths(), trainingSizes()}
}

// parse reads numbers, and returns them ascending, each once.
func (a axis) parse(list []string) ([]float64, error) {
	var values []float64
	for _, s := range list {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return nil, exit.Usagef("--grid %s: %q is not a number", a.name, s)
		case a.whole && v != float64(int(v)):
			return nil, exit.Usagef("--grid %s: %s is not a whole number", a.name, s)
		case !(v >= a.least):
			return nil, exit.Usagef("--grid %s: %s: %s or more is possible", a.name, s, term.Setting(a.least))
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, exit.Usagef("--grid %s: numbers with commas between them are expected", a.name)
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}
