package paper

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/chart"
)

// A kind is one kind of experiment. Each has a file.
type kind struct {
	name        string
	short, long string   // what it measures, for help
	axes        []axis   // which --grid can set
	sets        []string // flags of settings that the experiment varies itself
	// run measures all rows.
	run func(ctx context.Context, l *lab) error
	// lead are the first columns of the table, and cells their values of a row.
	lead  []term.Column
	cells func(l *lab, m *measurement) []any
	draw  func(l *lab) (*chart.Figure, error)
}

// An axis is a list of numbers that an experiment varies.
type axis struct {
	name   string
	values []float64 // defaults for --grid; nil: they depend on the items
	whole  bool      // only whole numbers are allowed
	least  float64   // least allowed number
}

// axisNames returns the names of the axes.
func (x *kind) axisNames() []string {
	var names []string
	for _, a := range x.axes {
		names = append(names, a.name)
	}
	return names
}

// kinds returns all kinds.
func kinds() []*kind {
	return []*kind{ablation(), convergence(), sensitivity(), codeLengths(), trainingSizes()}
}

// parse reads numbers, and returns them ascending, each once.
func (a axis) parse(list []string) ([]float64, error) {
	var values []float64
	for _, s := range list {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return nil, fmt.Errorf("--grid %s: %q is not a number", a.name, s)
		case a.whole && v != float64(int(v)):
			return nil, fmt.Errorf("--grid %s: %s is not a whole number", a.name, s)
		case !(v >= a.least):
			return nil, fmt.Errorf("--grid %s: %s: %s or more is possible", a.name, s, term.Setting(a.least))
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, fmt.Errorf("--grid %s: numbers with commas between them are expected", a.name)
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}
