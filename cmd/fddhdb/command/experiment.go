package command

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// experimentOptions are the flags of experiment.
type experimentOptions struct {
	trainOptions
	queryOptions
	grid  namedList
	seeds int
	plot  string
}

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

func experiments() []*experiment {
	return []*experiment{ablation(), convergence(), sensitivity(), codeLengths(), trainingSizes()}
}

func experimentCommand(e *env) *cobra.Command {
	o := experimentOptions{grid: namedList{kind: "NAME=X,X,..."}}
	var names []string
	for _, x := range experiments() {
		names = append(names, x.name)
	}
	cmd := &cobra.Command{
		Use:     "experiment DIR KIND --vectors NAME=FILE... --labels FILE",
		Short:   "Repeat an experiment of the paper on your items",
		GroupID: groupLearn,
		Long: prose(`
			Experiment trains on the labelled items again and again, with other settings each
			time, gives all items the codes that they would get, and measures queries against
			them as eval does. Nothing is stored: the model in use stays, as do its codes.
			KIND is one of

			  ablation     what train does, and what is lost without its parts: the methods
			               joint and paper in place of labels; raw features, the rbf map,
			               gamma .01 or the first random start in place of what
			               cross-validation chooses, or all of these (fixed); FDDH as it
			               was published (method paper, raw, rbf, gamma 1e-4);
			               that without the relaxation of labels (FDDH_NR: an infinite
			               delta), and without the rbf map, too (FDDH_NRM: the linear map).
			               Where a vector has fewer numbers than a code has bits, that has no
			               solution by the method paper, and is done by labels.
			  convergence  the objective and mAP after each sweep, from 1 to --sweeps (20), of
			               each method
			  sensitivity  mAP over a grid of mu, theta and delta, the weights of the paper, by
			               method paper, or joint if asked for: mu is that of the first
			               modality (--mu), theta that of the others, delta --delta
			  bits         mAP by the length of codes, of each method, and of FDDH as it was
			               published; lengths below the number of labels are left out
			  size         mAP and the time of training by the number of labelled items to
			               learn from (--rows)

			All flags of train say what the settings are besides, those of eval what is
			measured. Each row is the mean over --seeds trainings, with --seed and those after
			it, and +- their standard deviation. Where settings are compared that have nothing
			to do with features, map and gamma, in convergence and sensitivity, these are
			chosen once a seed and method. --grid sets the numbers that are gone over: bits;
			rows of size; mu, theta and delta of sensitivity.

			mAP ties by row, as the map of eval; by score is that of the asymmetric order.
			--json prints an object a row as soon as it is measured. --plot draws what was
			measured. docs/EVALUATION.md has examples of all, and says more.`),
		Example: example(`
			fddhdb experiment wiki.db ablation --vectors image=query_image.npy \
			    --vectors text=query_text.npy --labels query_labels.npy --seeds 5
			fddhdb experiment wiki.db bits --vectors text=query_text.npy \
			    --labels query_labels.npy --grid bits=16,32,64 --plot bits.svg
			fddhdb experiment wiki.db sensitivity --vectors text=query_text.npy \
			    --labels query_labels.npy --grid mu=1e-3,1,10 --grid delta=1,100 --json`),
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || args[0] == "":
				return exit.Usagef("experiment needs the folder of a database: fddhdb %s", cmd.Use)
			case len(args) == 1:
				return exit.Usagef("which experiment? %s are possible", strings.Join(names, ", "))
			case len(args) > 2:
				return exit.Usagef("experiment does not know what to do with %q: fddhdb %s", args[2], cmd.Use)
			case !slices.Contains(names, args[1]):
				if near := term.Nearest(args[1], names); near != "" {
					return exit.Usagef("there is no experiment %q: did you mean %s?", args[1], near)
				}
				return exit.Usagef("there is no experiment %q: %s are possible", args[1], strings.Join(names, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			x := experiments()[slices.Index(names, args[1])]
			grid, err := o.complete(cmd, x)
			if err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				return e.experiment(cmd, x, c, &o, grid)
			})
		},
	}
	o.common.register(cmd)
	term.PrintsObjects(cmd)
	o.queryOptions.register(cmd)
	o.registerSettings(cmd)
	f := cmd.Flags()
	f.IntVar(&o.seeds, "seeds", 3, "the number `N` of trainings of each row")
	f.Var(&o.grid, "grid", "the numbers that an experiment goes over; repeat it for each")
	f.StringVar(&o.plot, "plot", "", "draw what was measured to `FILE`.svg or .png")
	return cmd
}

// complete checks the flags and returns the numbers to go over.
func (o *experimentOptions) complete(cmd *cobra.Command, x *experiment) (map[string][]float64, error) {
	if err := o.check(cmd); err != nil {
		return nil, err
	}
	if o.seeds < 1 {
		return nil, exit.Usagef("--seeds %d: 1 or more are possible", o.seeds)
	}
	if err := chart.CheckPath(o.plot); err != nil {
		return nil, err
	}
	for _, flag := range x.sets {
		if cmd.Flags().Changed(flag) {
			return nil, exit.Usagef("--%s: %s goes over several by itself: leave it out", flag, x.name)
		}
	}
	grid := map[string][]float64{}
	var possible []string
	for _, a := range x.axes {
		grid[a.name] = a.values
		possible = append(possible, a.name)
	}
	for _, g := range o.grid.list {
		i := slices.Index(possible, g.name)
		if i < 0 {
			if len(possible) == 0 {
				return nil, exit.Usagef("--grid %s: %s goes over nothing that can be set", g.name, x.name)
			}
			return nil, exit.Usagef("--grid %s: %s goes over %s", g.name, x.name, strings.Join(possible, ", "))
		}
		values, err := x.axes[i].parse(g.value)
		if err != nil {
			return nil, err
		}
		grid[g.name] = values
	}
	for _, bits := range grid["bits"] {
		if err := checkBits("--grid bits", int(bits)); err != nil {
			return nil, err
		}
	}
	if !cmd.Flags().Changed("sweeps") && x.name == "convergence" {
		o.Sweeps = convergenceSweeps
	}
	if err := o.trainOptions.complete(cmd); err != nil {
		return nil, err
	}
	if x.name == "sensitivity" && o.Method == model.MethodLabels {
		return nil, exit.Usagef("--method labels: sensitivity is that of the methods paper and joint, labels has no mu, theta and delta")
	}
	return grid, nil
}

// parse reads numbers, and returns them ascending, each once.
func (a axis) parse(list string) ([]float64, error) {
	var values []float64
	for _, s := range splitList(list) {
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

// experiment runs one and prints what it measures.
func (e *env) experiment(cmd *cobra.Command, x *experiment, c *db.Collection, o *experimentOptions, grid map[string][]float64) error {
	ctx := cmd.Context()
	if err := o.checkWhere(ctx, c); err != nil {
		return err
	}
	var files outfile.Set
	defer files.Discard()
	var drawing *outfile.File
	if o.plot != "" {
		var err error
		if drawing, err = files.Create(o.plot); err != nil {
			return err
		}
	}
	bar := e.NewProgress()
	defer bar.End()
	q, err := o.read(c, bar)
	if err != nil {
		return err
	}
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	l := &lab{
		experiment: x, collection: c, schema: schema, queries: *q, base: o.TrainOptions,
		seeds: o.seeds, grid: grid, bar: bar,
	}
	l.base.Method = cmp.Or(l.base.Method, model.MethodLabels)
	if o.json {
		l.emit = func(m *measurement) error {
			if err := e.PrintJSON(m); err != nil {
				return err
			}
			return e.Stdout.Flush()
		}
	}
	err = x.run(ctx, l)
	bar.End()
	if err == nil && len(l.rows) == 0 {
		err = l.leftOut[0].err
	} else {
		e.warnOf(l.leftOut)
	}
	if !o.json && len(l.rows) > 0 { // also those before an interrupt
		e.printMeasurements(l)
	}
	if err != nil {
		return trainError(o.where.wrap(err))
	}
	if drawing == nil {
		return nil
	}
	figure, err := x.draw(l)
	if err != nil {
		return err
	}
	if err := figure.Write(drawing, o.plot); err != nil {
		return err
	}
	return files.Commit()
}

// warnOf says what was left out, once for each length of codes and reason.
func (e *env) warnOf(list []leftOut) {
	for len(list) > 0 {
		rows, first, more := list[0].row, list[0], list[1:]
		list = nil
		for _, left := range more {
			if left.bits == first.bits && left.reason.Error() == first.reason.Error() {
				rows += ", " + left.row
			} else {
				list = append(list, left)
			}
		}
		e.Warnf("%s left out: %v", rows, first.reason)
	}
}

// printMeasurements prints the rows as a table.
func (e *env) printMeasurements(l *lab) {
	columns := slices.Clone(l.experiment.lead)
	for _, p := range l.pairs {
		columns = append(columns, term.Right(p), term.Right("by score"))
	}
	var rows [][]any
	for _, m := range l.rows {
		row := l.experiment.cells(l, m)
		for _, p := range l.pairs {
			r := m.Retrieval[p]
			row = append(row, l.figure(r.MAP, r.MAPStd), l.figure(r.MAPAsym, r.MAPAsymStd))
		}
		rows = append(rows, row)
	}
	e.PrintTable(columns, rows)
}

// figure spells a mean and, if there are several seeds, its standard deviation.
func (l *lab) figure(mean, std float64) any {
	if l.seeds == 1 {
		return term.NumberCell(mean, 4)
	}
	return fmt.Sprintf("%.4f +- %.4f", mean, std)
}
