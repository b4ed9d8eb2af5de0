package methods

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
)

// A noise is what happens to the labels of training items: a share of them becomes another label, or is lost.
// Items without a label train nothing.
type noise struct{ wrong, missing float64 }

// String names the column of a table.
func (e noise) String() string {
	switch {
	case e.wrong > 0:
		return fmt.Sprintf("%g %% wrong", 100*e.wrong)
	case e.missing > 0:
		return fmt.Sprintf("%g %% missing", 100*e.missing)
	}
	return "all right"
}

// of returns the items that are left, with other labels.
func (e noise) of(d *Data, seed uint64) (*Data, error) {
	if e == (noise{}) {
		return d, nil
	}
	rng := rand.New(rand.NewPCG(seed, 35))
	spoiled := &Data{X: d.X, Y: mat.DenseCopyOf(d.Y), Names: d.Names}
	n, c := d.Y.Dims()
	var rows []int
	for i, set := range labelSets(d.Y) {
		for _, l := range set {
			if rng.Float64() < e.missing {
				spoiled.Y.Set(i, int(l), 0)
			} else if rng.Float64() < e.wrong {
				spoiled.Y.Set(i, int(l), 0)
				for _, other := range rng.Perm(c) { // any label that the item neither has nor had
					if spoiled.Y.At(i, other) == 0 && d.Y.At(i, other) == 0 {
						spoiled.Y.Set(i, other, 1)
						break
					}
				}
			}
		}
		if floats.Sum(spoiled.Y.RawRowView(i)) > 0 {
			rows = append(rows, i)
		}
	}
	switch len(rows) {
	case n:
		return spoiled, nil
	case 0, 1:
		return nil, fmt.Errorf("%v: %d training items have a label", e, len(rows))
	}
	return spoiled.pick(rows), nil
}

// NoiseCommand returns the experiment with wrong and missing labels.
func NoiseCommand() *cobra.Command {
	o := &options{bits: common.Ints{64}, seeds: 3, top: 50, split: unlabelled}
	var wrong, missing []string
	cmd := common.New("noise SET", "Measure methods where training items have wrong labels, or lack some",
		`A random half of the items trains, and the other half, coded by projections, is the database; relevant are items that
truly share a label with the query. Cells are mAP by pair of modalities.`,
		cobra.ExactArgs(1), func(cmd *cobra.Command, args []string) error {
			noises := []noise{{}}
			for _, list := range []struct {
				flag   string
				values []string
			}{{"wrong", wrong}, {"missing", missing}} {
				for _, value := range list.values {
					x, err := strconv.ParseFloat(value, 64)
					if err != nil || !(x > 0 && x < 1) {
						return fmt.Errorf("--%s %s: a share between 0 and 1 is expected, such as .2", list.flag, value)
					}
					if list.flag == "wrong" {
						noises = append(noises, noise{wrong: x})
					} else {
						noises = append(noises, noise{missing: x})
					}
				}
			}
			return o.noise(cmd.Context(), args[0], noises,
				term.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr()))
		})
	f := common.FlagsOf(cmd)
	f.StringSliceVar(&o.methods, "methods", nil, "only these, with commas between them")
	f.Bits(&o.bits[0])
	f.Seeds(&o.seeds)
	f.StringSliceVar(&wrong, "wrong", []string{".05", ".1", ".2", ".4"}, "shares of labels that are wrong")
	f.StringSliceVar(&missing, "missing", []string{".2", ".5", ".8"}, "shares of labels that are missing")
	f.StringVar(&o.plot, "plot", "", "draw mAP by the shares to `FILE`.svg")
	return cmd
}

// noise prints a row for each method that learns from labels.
func (o *options) noise(ctx context.Context, dir string, noises []noise, p *term.Printer) error {
	if err := flags.CheckBits("--bits", o.bits[0]); err != nil {
		return err
	}
	chosen, err := o.check()
	if err != nil {
		return err
	}
	chosen = slices.DeleteFunc(slices.Clone(chosen), func(m *Method) bool { return !m.Labels })
	if len(chosen) == 0 {
		return errors.New("--methods: these learn without labels")
	}
	l, err := newLab(dir, o)
	if err != nil {
		return err
	}
	if _, c := l.items.Y.Dims(); c < 2 {
		return errors.New("a wrong label needs a second one: the set has one label")
	}
	head := []string{"method"}
	for _, e := range noises {
		head = append(head, e.String())
	}
	common.Head(p.Stdout, 1, head...)
	figure := &chart.Figure{Columns: 2, Width: chart.PanelWidth, Height: 320, LegendWidth: 150,
		Panels: []*plot.Plot{chart.NewPanel("wrong labels", "share", "mAP"),
			chart.NewPanel("missing labels", "share", "mAP")}}
	for i, m := range chosen {
		line, curves := []string{m.Name}, [2]plotter.XYs{}
		for _, e := range noises {
			l.spoil = e
			rows, err := l.measure(ctx, m, Options{Bits: o.bits[0]}, unlabelled)
			if err != nil && ctx.Err() != nil {
				return err
			}
			cell := ""
			if err != nil {
				p.Warnf("%v: %v", e, err)
				cell = "-"
			}
			mean := 0.
			for i, r := range rows {
				if i > 0 {
					cell += " / "
				}
				cell += common.Share(r.MAP)
				mean += r.MAP / float64(len(rows))
			}
			line = append(line, cell)
			for k, share := range []float64{e.wrong, e.missing} {
				if other := e.wrong + e.missing - share; other == 0 && err == nil {
					curves[k] = append(curves[k], plotter.XY{X: share, Y: mean})
				}
			}
		}
		figure.Legend = append(figure.Legend, styleOf(i, m.Name))
		for k, panel := range figure.Panels {
			if err := chart.AddCurve(panel, styleOf(i, m.Name), curves[k]); err != nil {
				return err
			}
		}
		common.Row(p.Stdout, line...)
		if err := p.Stdout.Flush(); err != nil {
			return err
		}
	}
	return figure.Save(o.plot)
}
