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
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
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
	var names []string
	for _, m := range All {
		names = append(names, m.Name)
	}
	cmd := common.New("methods SET...", "Compare published methods of cross-modal hashing with FDDH",
		"A SET is a folder of files as makeset writes it, with queries. Methods: "+strings.Join(names, ", ")+`.
unlabelled: a random half of the training items train, and the other half, coded by projections, is the database. labelled:
all of them train, and are the database with the codes that they have learned. docs/METHODS.md has the methods.`,
		cobra.MinimumNArgs(1), func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args, term.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr()))
		})
	f := common.FlagsOf(cmd)
	f.StringSliceVar(&o.methods, "methods", nil, "only these, with commas between them")
	f.Counts(&o.bits, "bits", "lengths of codes")
	f.Seeds(&o.seeds)
	f.StringVar(&o.split, "split", o.split, "labelled, unlabelled or both")
	f.BoolVar(&o.target, "target", false,
		"also measure each method that codes labels with projections that learn the target of fddhdb")
	f.Count(&o.top, "top", "the K of precision at K")
	f.BoolVar(&o.json, "json", false, "print an object a row, with curves")
	f.BoolVar(&o.latex, "latex", false, "print tables in LaTeX")
	f.StringVar(&o.plot, "plot", "", "draw mAP, precision and recall of one SET to `FILE`.svg")
	f.Var(&o.codes, "codes", "codes of another program for the queries (by modality FROM; without it, by all) and the training items: packed uint8, or numbers of which positive ones are set bits; repeat it")
	return cmd
}

// run measures the sets one after the other.
func (o *options) run(ctx context.Context, folders []string, p *term.Printer) error {
	chosen, err := o.check(folders)
	if err != nil {
		return err
	}
	var out outfile.Set
	defer out.Discard()
	var drawing *outfile.File
	if o.plot != "" {
		if drawing, err = out.Create(o.plot); err != nil {
			return err
		}
	}
	for _, dir := range folders {
		l, err := newLab(dir, o.top)
		if err != nil {
			return err
		}
		bar := p.Progress()
		tables, left, err := o.measure(ctx, l, chosen, bar)
		bar.End()
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		for _, err := range left {
			p.Warnf("%v", err)
		}
		if err := o.print(p, dir, tables); err != nil {
			return err
		}
		if drawing != nil {
			f, err := o.draw(tables)
			if err == nil {
				err = f.Write(drawing)
			}
			if err != nil {
				return err
			}
		}
	}
	return errors.Join(p.Stdout.Flush(), out.Commit())
}

// check checks the flags and returns the methods.
func (o *options) check(folders []string) ([]*Method, error) {
	if err := chart.CheckPath(o.plot); err != nil {
		return nil, err
	}
	if o.plot != "" && len(folders) > 1 {
		return nil, errors.New("--plot: give one SET, as a figure is of one")
	}
	if o.json && o.latex {
		return nil, errors.New("--json and --latex: give one of them")
	}
	for _, bits := range o.bits {
		if err := flags.CheckBits("--bits", bits); err != nil {
			return nil, err
		}
	}
	if o.split != labelled && o.split != unlabelled && o.split != "both" {
		return nil, fmt.Errorf("--split %s: labelled, unlabelled or both are possible", o.split)
	}
	if len(o.codes.List) > 0 && o.split == unlabelled {
		return nil, errors.New("--codes: codes of other programs stand among labelled ones: leave out --split unlabelled")
	}
	if o.methods == nil {
		return All, nil
	}
	return ByName(o.methods)
}

// A table has the rows of one protocol.
type table struct {
	split string
	rows  []*row
}

// measure returns the tables, and the reasons for which methods were left out that were not asked for.
func (o *options) measure(ctx context.Context, l *lab, chosen []*Method,
	bar *term.Progress) (tables []*table, left []error, err error) {
	var rows []Options // of a method, which takes those that it can
	var able []*Method
	for _, m := range chosen {
		switch err := m.Check(l.items.Y.RawMatrix().Rows, len(l.modalities)); {
		case err == nil:
			able = append(able, m)
		case o.methods != nil:
			return nil, nil, err
		default:
			left = append(left, err)
		}
	}
	for _, target := range []bool{false, true}[:map[bool]int{false: 1, true: 2}[o.target]] {
		for _, bits := range o.bits {
			rows = append(rows, Options{Bits: bits, Target: target})
		}
	}
	for _, split := range []string{unlabelled, labelled} {
		if o.split != split && o.split != "both" {
			continue
		}
		t := &table{split: split}
		for i, m := range able {
			for _, opt := range rows {
				if opt.Target && !m.Target {
					continue
				}
				r, err := l.measure(ctx, m, opt, split, o.seeds, func() {
					bar.Report(split+", "+m.Name, int64(i), int64(len(able)))
				})
				if err != nil {
					return nil, nil, err
				}
				t.rows = append(t.rows, r)
			}
		}
		if split == labelled {
			given, err := o.given(ctx, l)
			if err != nil {
				return nil, nil, err
			}
			t.rows = append(t.rows, given...)
		}
		for _, bits := range o.bits {
			compare(t.of(bits))
		}
		tables = append(tables, t)
	}
	return tables, left, nil
}

// of returns the rows of codes of one length.
func (t *table) of(bits int) (rows []*row) {
	for _, r := range t.rows {
		if r.Bits == bits {
			rows = append(rows, r)
		}
	}
	return rows
}

// given returns the rows of codes of other programs.
func (o *options) given(ctx context.Context, l *lab) (rows []*row, err error) {
	for _, g := range o.codes.List {
		name, modality, one := strings.Cut(g.Name, ":")
		paths := strings.Split(g.Value, ",")
		if len(paths) != 2 || one && !slices.Contains(l.modalities, modality) {
			return nil, fmt.Errorf("--codes %s=%s: NAME[:MODALITY]=QUERY.npy,DATABASE.npy is expected, a modality being one of %s",
				g.Name, g.Value, strings.Join(l.modalities, ", "))
		}
		var codes [2]codec.Codes
		for i, d := range []*Data{l.queries, l.items} {
			if codes[i], err = readCodes(paths[i]); err != nil {
				return nil, err
			}
			if n := d.Y.RawMatrix().Rows; codes[i].Len() != n || !slices.Contains(o.bits, codes[i].Bits()) {
				return nil, fmt.Errorf("--codes %s: %s has %d codes of %d bits: %d are expected, one for each labelled row in order, of a length in --bits %v",
					g.Name, paths[i], codes[i].Len(), codes[i].Bits(), n, &o.bits)
			}
		}
		at := slices.IndexFunc(rows, func(r *row) bool { return r.Method == name && r.Bits == codes[0].Bits() })
		if at < 0 {
			at, rows = len(rows), append(rows, l.row(labelled, name, codes[0].Bits(), o.seeds))
		}
		for _, d := range rows[at].Directions {
			for len(d.maps) < o.seeds && (!one || d.From == modality) { // the same for all seeds
				if err := l.add(ctx, d, codes[1], l.items.Y, codes[0]); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, r := range rows {
		for _, d := range r.Directions {
			if d.maps == nil {
				return nil, fmt.Errorf("--codes %s: codes of queries by %s are missing: give --codes %s:%s=QUERY.npy,DATABASE.npy",
					r.Method, d.From, r.Method, d.From)
			}
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
