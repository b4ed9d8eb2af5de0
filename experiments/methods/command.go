package methods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/chart"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
)

// options are the values of the flags.
type options struct {
	methods             []string
	bits                common.Ints
	seeds, top          int
	split, plot         string
	target, json, latex bool
	codes               flags.NamedList
}

// Command returns the experiment.
func Command() *cobra.Command {
	o := &options{bits: common.Ints{16, 32, 64}, seeds: 5, top: 50, split: "both",
		codes: flags.NamedList{Kind: "NAME[:FROM]=QUERY.npy,DATABASE.npy"}}
	cmd := common.New("methods SET...", "Compare published methods of cross-modal hashing with FDDH",
		"A SET is a folder of files as makeset writes it, or a published .mat file. Methods: "+strings.Join(names(), ", ")+`.
unlabelled: a random half of the training items train, and the other half, coded by projections, is the database. labelled:
all of them train, and are the database with the codes that they have learned. docs/METHODS.md has the methods.`,
		cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) (err error) {
			if o.plot != "" && len(args) > 1 {
				return errors.New("--plot: give one SET, as a figure shows one")
			}
			for i := 0; i < len(args) && err == nil; i++ {
				err = o.run(cmd.Context(), args[i], term.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr()))
			}
			return err
		})
	f := common.FlagsOf(cmd)
	f.StringSliceVar(&o.methods, "methods", nil, "only these, with commas between them")
	f.Counts(&o.bits, "bits", "lengths of codes")
	f.Seeds(&o.seeds)
	f.StringVar(&o.split, "split", o.split, "labelled, unlabelled or both")
	f.BoolVar(&o.target, "target", false,
		"also measure methods that code labels with projections that learn the target of fddhdb")
	f.Count(&o.top, "top", "the K of precision at K")
	f.BoolVar(&o.json, "json", false, "print an object a row, with curves")
	f.BoolVar(&o.latex, "latex", false, "print tables in LaTeX")
	f.StringVar(&o.plot, "plot", "", "draw mAP by bits, and precision by recall, to `FILE`.svg")
	f.Var(&o.codes, "codes", `codes of another program for the queries by modality FROM, or by all, and for the training items:
packed uint8, or numbers of which positive ones are set bits; repeat it`)
	return cmd
}

// run measures a set, prints the tables, and draws the figure.
func (o *options) run(ctx context.Context, dir string, p *term.Printer) error {
	chosen, err := o.check()
	if err != nil {
		return err
	}
	l, err := newLab(dir, o)
	if err != nil {
		return err
	}
	bar := p.Progress()
	defer bar.End()
	left, err := l.run(ctx, chosen, func(split, method string, done, all int) {
		bar.Report(split+", "+method, int64(done), int64(all))
	})
	bar.End()
	for _, err := range left {
		if o.methods == nil {
			p.Warnf("%v", err)
		}
	}
	if err != nil {
		return err
	}
	if o.methods == nil {
		left = nil // else these were asked for
	}
	if err := l.print(p); err != nil || o.plot == "" {
		return errors.Join(append(left, err)...)
	}
	f, err := l.draw()
	if err == nil {
		err = f.Save(o.plot)
	}
	return errors.Join(append(left, err)...)
}

// check checks the flags and returns the methods.
func (o *options) check() ([]*Method, error) {
	for _, bits := range o.bits {
		if err := flags.CheckBits("--bits", bits); err != nil {
			return nil, err
		}
	}
	switch {
	case o.json && o.latex:
		return nil, errors.New("--json and --latex: give one of them")
	case !slices.Contains([]string{labelled, unlabelled, "both"}, o.split):
		return nil, fmt.Errorf("--split %s: labelled, unlabelled or both are possible", o.split)
	case len(o.codes.List) > 0 && o.split == unlabelled:
		return nil, errors.New("--codes: such codes stand among labelled ones: leave out --split unlabelled")
	case o.methods == nil:
		return All, chart.CheckPath(o.plot)
	}
	chosen, err := ByName(o.methods)
	return chosen, errors.Join(chart.CheckPath(o.plot), err)
}

// given returns the rows of codes of other programs.
func (l *lab) given(ctx context.Context) (rows []*row, err error) {
	for _, g := range l.codes.List {
		name, from, one := strings.Cut(g.Name, ":")
		paths := strings.Split(g.Value, ",")
		if len(paths) != 2 || one && !slices.Contains(l.modalities, from) {
			return nil, fmt.Errorf("--codes %s=%s: %s is expected, FROM being one of %s", g.Name, g.Value, l.codes.Kind,
				strings.Join(l.modalities, ", "))
		}
		var codes [2]codec.Codes
		for i, d := range []*Data{l.queries, l.items} {
			if codes[i], err = readCodes(paths[i]); err != nil {
				return nil, err
			}
			if n := d.Y.RawMatrix().Rows; codes[i].Len() != n || !slices.Contains(l.bits, codes[i].Bits()) {
				return nil, fmt.Errorf("--codes %s: %s has %d codes of %d bits: one for each of the %d labelled rows is expected, of --bits %v",
					g.Name, paths[i], codes[i].Len(), codes[i].Bits(), n, &l.bits)
			}
		}
		for _, r := range l.blank(labelled, name, codes[0].Bits()) {
			if one && r.From != from {
				continue
			}
			for range l.seeds { // the same for all seeds
				if err := l.add(ctx, r, codes[1], l.items.Y, codes[0]); err != nil {
					return nil, err
				}
			}
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// readCodes reads packed codes, or a matrix whose positive numbers are set bits.
func readCodes(path string) (codec.Codes, error) {
	packed, err := npy.ReadCodes(path)
	if err == nil {
		return packed, nil
	}
	x, n, q, other := files.ReadAll(path)
	if other != nil {
		return codec.Codes{}, errors.Join(err, other)
	}
	if err := codec.CheckBits(q); err != nil {
		return codec.Codes{}, fmt.Errorf("%s: a column for each bit: %w", path, err)
	}
	m := mat.NewDense(n, q, nil)
	m.Apply(func(i, j int, _ float64) float64 { return float64(x[i*q+j]) - 1e-9 }, m) // 0 is no set bit
	return pack(m), nil
}
