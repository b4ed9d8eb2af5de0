package paper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	verbs "github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model"
)

// Commands returns the experiments of the paper.
func Commands() []*cobra.Command {
	var all []*cobra.Command
	for _, x := range kinds() {
		all = append(all, command(x))
	}
	return all
}

// options are the values of the flags.
type options struct {
	flags.Settings
	top, seeds int
	grid       flags.NamedList
	json       bool
	plot       string
}

func command(x *kind) *cobra.Command {
	o := &options{top: 50, seeds: 3, grid: flags.NamedList{Kind: "NAME=X,X,..."}}
	cmd := common.New(x.name+" SET", x.short, x.long+`

A SET is a folder of files as makeset writes it, or a published .mat file, with queries. The flags of fddhdb train say what the settings are besides.
Each row is the mean over --seeds trainings, with --seed and those after it, and +- their standard deviation. mAP ties by
row, as the map of fddhdb eval; "by score" is that of the asymmetric order.`,
		cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			grid, err := o.complete(cmd.Flags(), x)
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), x, args[0], grid,
				term.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr()))
		})
	o.Settings.Register(cmd.Flags())
	f := common.FlagsOf(cmd)
	f.Seeds(&o.seeds)
	f.Count(&o.top, "top", "the N of precision at N")
	if len(x.axes) > 0 {
		f.Var(&o.grid, "grid", "the numbers that are gone over; repeat it for each of "+strings.Join(
			x.axisNames(), ", "))
	}
	f.BoolVar(&o.json, "json", false, "print an object a row, as soon as it is measured")
	f.StringVar(&o.plot, "plot", "", "draw what was measured to `FILE`.svg")
	return cmd
}

// complete checks the flags, and returns the numbers of the axes.
func (o *options) complete(f *pflag.FlagSet, x *kind) (map[string][]float64, error) {
	if err := chart.CheckPath(o.plot); err != nil {
		return nil, err
	}
	for _, flag := range x.sets {
		if f.Changed(flag) {
			return nil, fmt.Errorf("--%s: %s goes over several by itself: leave it out", flag, x.name)
		}
	}
	grid := map[string][]float64{}
	for _, a := range x.axes {
		grid[a.name] = a.values
	}
	for _, g := range o.grid.List {
		i := slices.Index(x.axisNames(), g.Name)
		if i < 0 {
			return nil, fmt.Errorf("--grid %s: %s goes over %s", g.Name, x.name,
				strings.Join(x.axisNames(), ", "))
		}
		values, err := x.axes[i].parse(flags.SplitList(g.Value))
		if err != nil {
			return nil, err
		}
		grid[g.Name] = values
	}
	if !f.Changed("sweeps") && x.name == "convergence" {
		o.Sweeps = convergenceSweeps
	}
	if err := o.Complete(f); err != nil {
		return nil, err
	}
	if o.Method.LabelFree() {
		return nil, fmt.Errorf("--method %v: labels, joint and paper are possible, which learn from labels",
			o.Method)
	}
	if x.name == "sensitivity" &&
		(o.Method == model.MethodLabels || o.Aim == model.AimLabels || o.Prior != nil) {
		return nil, errors.New("sensitivity is that of the methods paper and joint: leave out --method labels, --aim labels and --prior")
	}
	return grid, nil
}

// run runs an experiment on a set and prints its rows.
func (o *options) run(ctx context.Context, x *kind, folder string, grid map[string][]float64,
	p *term.Printer) error {
	s, err := sets.Read(folder)
	if err != nil {
		return err
	}
	if s.Queries == nil {
		return fmt.Errorf("%s has no queries: files query_NAME.npy and query_labels.npy are expected",
			filepath.Clean(folder))
	}
	var files outfile.Set
	defer files.Discard()
	var drawing *outfile.File
	if o.plot != "" {
		if drawing, err = files.Create(o.plot); err != nil {
			return err
		}
	}
	bar := p.Progress()
	defer bar.End()
	fill := func(dir string) error { return store(s, dir) }
	return sets.WithDatabase(fill, func(d *db.DB) error {
		c, err := d.Collection("main")
		if err != nil {
			return err
		}
		l := newLab(x, c, s, o, grid, bar)
		if o.json {
			l.emit = func(m *measurement) error {
				if err := p.PrintJSON(m); err != nil {
					return err
				}
				return p.Stdout.Flush()
			}
		}
		err = l.run(ctx)
		bar.End()
		for _, text := range l.warnings() {
			p.Warnf("%s", text)
		}
		if !o.json && len(l.rows) > 0 { // also rows from before an interrupt
			l.print(p)
		}
		if err := errors.Join(err, p.Stdout.Flush()); err != nil || drawing == nil {
			return err
		}
		f, err := x.draw(l)
		if err != nil {
			return err
		}
		if err := f.Write(drawing); err != nil {
			return err
		}
		return files.Commit()
	})
}

// store imports a set as fddhdb import does: labels have the same numbers then, and models are the same.
func store(s *sets.Set, dir string) error {
	args := []string{"import", dir, "--init", "--labels", s.Train.Labels}
	for t, name := range s.Modalities {
		args = append(args, "--vectors", name+"="+s.Train.Vectors[t])
	}
	var errs strings.Builder
	if verbs.Main(args, strings.NewReader(""), io.Discard, &errs) != 0 {
		return errors.New(strings.TrimSpace(errs.String()))
	}
	return nil
}
