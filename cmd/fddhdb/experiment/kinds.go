package experiment

import (
	"context"
	"slices"
	"strconv"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// A Kind is one kind of experiment. Each has a file.
type Kind struct {
	Name string
	Axes []Axis   // which --grid can set
	Sets []string // flags of settings that the experiment varies itself
	// run measures all rows.
	run func(ctx context.Context, l *Lab) error
	// lead are the first columns of the table, and cells their values of a row.
	lead  []term.Column
	cells func(l *Lab, m *Measurement) []any
	draw  func(l *Lab) (*chart.Figure, error)
}

// An Axis is a list of numbers that an experiment varies.
type Axis struct {
	Name   string
	Values []float64 // defaults for --grid; nil: they depend on the items
	whole  bool      // only whole numbers are allowed
	least  float64   // least allowed number
}

// Kinds returns all kinds, in the order of help.
func Kinds() []*Kind {
	return []*Kind{ablation(), convergence(), sensitivity(), codeLengths(), trainingSizes()}
}

// Parse reads numbers, and returns them ascending, each once.
func (a Axis) Parse(list []string) ([]float64, error) {
	var values []float64
	for _, s := range list {
		v, err := strconv.ParseFloat(s, 64)
		switch {
		case err != nil:
			return nil, exit.Usagef("--grid %s: %q is not a number", a.Name, s)
		case a.whole && v != float64(int(v)):
			return nil, exit.Usagef("--grid %s: %s is not a whole number", a.Name, s)
		case !(v >= a.least):
			return nil, exit.Usagef("--grid %s: %s: %s or more is possible", a.Name, s, term.Setting(a.least))
		}
		values = append(values, v)
	}
	if len(values) == 0 {
		return nil, exit.Usagef("--grid %s: numbers with commas between them are expected", a.Name)
	}
	slices.Sort(values)
	return slices.Compact(values), nil
}
