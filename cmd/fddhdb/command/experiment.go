package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/experiment"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// experimentOptions are the flags of experiment.
type experimentOptions struct {
	trainOptions
	queryOptions
	grid  flags.NamedList
	seeds int
	plot  string
}

func experimentCommand(e *env) *cobra.Command {
	o := experimentOptions{grid: flags.NamedList{Kind: "NAME=X,X,..."}}
	var names []string
	for _, x := range experiment.Kinds() {
		names = append(names, x.Name)
	}
	cmd := &cobra.Command{
		Use:     "experiment DIR KIND --vectors NAME=FILE... --labels FILE",
		Short:   "Repeat an experiment of the paper on your items",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Experiment trains on the labelled items again and again, with other settings each
			time, gives all items the codes that they would get, and measures queries against
			them as eval does. Nothing is stored: the model in use stays, as do its codes.
			KIND is one of

			  ablation     what train does, and what is lost without its parts: the methods
			               joint and paper in place of labels; projections that learn codes
			               in place of labels; the prior 0; 800 anchors; raw features, the
			               rbf map, width 1, gamma .01 or the first random start in place of
			               what is chosen, or all of these (fixed); FDDH as it was published
			               (method paper, raw, rbf, gamma 1e-4, and 800 anchors unless
			               --anchors says otherwise); that without
			               the relaxation of labels (FDDH_NR: an infinite delta), and
			               without the rbf map, too (FDDH_NRM: the linear map). Where a
			               vector has fewer numbers than a code has bits, that has no
			               solution by the method paper, and is done by labels. What the
			               flags have taken out already has no row.
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
		Example: usage.Example(`
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
			x := experiment.Kinds()[slices.Index(names, args[1])]
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
	o.Settings.Register(cmd.Flags())
	f := cmd.Flags()
	f.IntVar(&o.seeds, "seeds", 3, "the number `N` of trainings of each row")
	f.Var(&o.grid, "grid", "the numbers that an experiment goes over; repeat it for each")
	f.StringVar(&o.plot, "plot", "", "draw what was measured to `FILE`.svg or .png")
	return cmd
}

// complete checks the flags, and returns the numbers of the axes.
func (o *experimentOptions) complete(cmd *cobra.Command, x *experiment.Kind) (map[string][]float64, error) {
	if err := o.check(cmd); err != nil {
		return nil, err
	}
	if o.seeds < 1 {
		return nil, exit.Usagef("--seeds %d: 1 or more are possible", o.seeds)
	}
	if err := chart.CheckPath(o.plot); err != nil {
		return nil, err
	}
	for _, flag := range x.Sets {
		if cmd.Flags().Changed(flag) {
			return nil, exit.Usagef("--%s: %s goes over several by itself: leave it out", flag, x.Name)
		}
	}
	grid := map[string][]float64{}
	var possible []string
	for _, a := range x.Axes {
		grid[a.Name] = a.Values
		possible = append(possible, a.Name)
	}
	for _, g := range o.grid.List {
		i := slices.Index(possible, g.Name)
		if i < 0 {
			if len(possible) == 0 {
				return nil, exit.Usagef("--grid %s: %s goes over nothing that can be set", g.Name, x.Name)
			}
			return nil, exit.Usagef("--grid %s: %s goes over %s", g.Name, x.Name, strings.Join(possible, ", "))
		}
		values, err := x.Axes[i].Parse(flags.SplitList(g.Value))
		if err != nil {
			return nil, err
		}
		grid[g.Name] = values
	}
	for _, bits := range grid["bits"] {
		if err := flags.CheckBits("--grid bits", int(bits)); err != nil {
			return nil, err
		}
	}
	if !cmd.Flags().Changed("sweeps") && x.Name == "convergence" {
		o.Sweeps = experiment.ConvergenceSweeps
	}
	if err := o.Complete(cmd.Flags()); err != nil {
		return nil, err
	}
	if o.Method.LabelFree() {
		return nil, exit.Usagef("--method %v: experiments are about learning from labels: auto, labels, joint and paper are possible", o.Method)
	}
	if x.Name == "sensitivity" {
		switch {
		case o.Method == model.MethodLabels:
			return nil, exit.Usagef("--method labels: sensitivity is that of the methods paper and joint, labels has no mu, theta and delta")
		case o.Aim == model.AimLabels:
			return nil, exit.Usagef("--aim labels: sensitivity is that of the methods paper and joint, whose projections learn codes")
		case o.Prior != nil:
			return nil, exit.Usagef("--prior: sensitivity is that of the methods paper and joint, whose projections learn codes, without a prior")
		case o.Centre != nil:
			return nil, exit.Usagef("--centre: sensitivity is that of the methods paper and joint, whose projections learn codes, without a centre")
		}
	}
	return grid, nil
}

// experiment runs an experiment and prints its rows.
func (e *env) experiment(cmd *cobra.Command, x *experiment.Kind, c *db.Collection, o *experimentOptions, grid map[string][]float64) error {
	ctx := cmd.Context()
	if err := o.checkWhere(ctx, e, c); err != nil {
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
	l := experiment.New(x, c, schema, *q, o.TrainOptions, o.seeds, grid, bar)
	if o.json {
		l.Emit = func(m *experiment.Measurement) error {
			if err := e.PrintJSON(m); err != nil {
				return err
			}
			return e.Stdout.Flush()
		}
	}
	err = l.Run(ctx)
	bar.End()
	for _, text := range l.Warnings() {
		e.Warnf("%s", text)
	}
	if !o.json && l.Measured() { // also rows from before an interrupt
		l.Print(e.Printer)
	}
	if err != nil {
		return trainError(o.where.wrap(err))
	}
	if drawing == nil {
		return nil
	}
	if err := l.Draw(drawing, o.plot); err != nil {
		return err
	}
	return files.Commit()
}
