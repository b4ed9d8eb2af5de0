package command

import (
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/db"
)

// importFiles are the files of an import.
type importFiles struct {
	source.Together
	vectors []*source.Vectors
	codes   *source.Codes
	labels  *source.Labels
	fields  *source.Fields
	whole   *source.Items
	mat     *source.Benchmark // what --items FILE.mat stands for

	leastRow int64 // bytes of the vectors of a row; set by check
}

func openImport(o *importOptions) (*importFiles, error) {
	in := &importFiles{}
	if err := in.open(o); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

func (in *importFiles) open(o *importOptions) (err error) {
	vectors, labels := o.vectors.List, o.labels
	if o.isBenchmark() {
		if in.mat, err = source.OpenBenchmark(o.items, o.part); err != nil {
			return err
		}
		for _, v := range in.mat.Vectors {
			vectors = append(vectors, flags.Named{Name: v.Name, Value: v.Column})
		}
		labels = in.mat.Labels
	}
	for _, v := range vectors {
		s, err := source.OpenVectorsOf(v.Name, o.input(v.Value))
		if err != nil {
			return err
		}
		in.vectors, in.Together = append(in.vectors, s), append(in.Together, s)
	}
	if o.codes != "" {
		if in.codes, err = source.OpenCodes(o.codes); err != nil {
			return err
		}
		in.Together = append(in.Together, in.codes)
	}
	if labels != "" {
		if in.labels, err = source.OpenLabels(labels, o.names); err != nil {
			return err
		}
		in.Together = append(in.Together, in.labels)
	}
	if o.field != "" {
		if in.fields, err = source.OpenFields(o.field); err != nil {
			return err
		}
		in.Together = append(in.Together, in.fields)
	}
	if o.keys != "" {
		keys, err := source.OpenKeys(o.keys)
		if err != nil {
			return err
		}
		in.Together = append(in.Together, keys)
	}
	if o.items != "" && in.mat == nil {
		if in.whole, err = source.OpenItems(o.input(o.items), o.mapping(), o.ignore); err != nil {
			return err
		}
		in.Together = append(in.Together, in.whole)
	}
	if o.init && in.fields != nil && in.fields.Declared == nil {
		return exit.Usagef("--init with --fields %s: only the header of a .csv says the types of the fields; use one, or init first", o.field)
	}
	return in.SameRows()
}

// derived returns the file whose names of columns or variables say what the items are, nil
// if there is none.
func (in *importFiles) derived() interface {
	Mapping() []source.MappedColumn
	Note() string
} {
	switch {
	case in.whole != nil:
		return in.whole
	case in.mat != nil:
		return in.mat
	}
	return nil
}

// schema returns the schema of a collection for the files.
func (in *importFiles) schema() (db.Schema, error) {
	if in.whole != nil {
		return in.whole.Schema()
	}
	var s db.Schema
	for _, v := range in.vectors {
		s.Modalities = append(s.Modalities, db.Modality{Name: v.Modality, Dim: v.Cols(), Sparse: v.IsSparse()})
	}
	if in.codes != nil {
		s.Bits = in.codes.Bits()
	}
	if in.fields != nil {
		s.Fields = in.fields.Declared
	}
	return s, nil
}

// check checks the shapes of the files against the collection.
func (in *importFiles) check(c *db.Collection, o *importOptions) error {
	s, err := c.Schema()
	if err != nil {
		return err
	}
	if in.whole != nil {
		return in.whole.Check(c, s, o.merge)
	}
	for _, v := range in.vectors {
		m, err := modality(c, s, "--vectors", v.Modality)
		if err == nil {
			err = v.CheckDim(m)
		}
		if err != nil {
			return err
		}
		if !m.Sparse { // a sparse vector may have no numbers
			in.leastRow += 4 * int64(m.Dim)
		}
	}
	switch {
	case in.codes == nil && s.Bits > 0 && !o.merge:
		return exit.Usagef("--codes FILE is missing: the items of collection %q bring their codes", c.Name())
	case in.codes != nil && s.Bits == 0:
		return exit.Usagef("--codes: collection %q learns its codes from vectors", c.Name())
	case in.codes != nil:
		if err := in.codes.CheckBits(c, s.Bits); err != nil {
			return err
		}
	}
	if in.fields != nil {
		return in.fields.Check(c, s)
	}
	return nil
}
