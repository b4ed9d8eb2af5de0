package command

import (
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
)

// importFiles are the files of an import.
type importFiles struct {
	together
	vectors []*vectorSource
	codes   *codeSource
	labels  *labelSource
	fields  *fieldSource
	whole   *itemSource

	leastRow int64 // bytes that the vectors of a row take, known by check
}

func openImport(o *importOptions) (*importFiles, error) {
	in := &importFiles{}
	if err := in.open(o); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *importFiles) open(o *importOptions) (err error) {
	for _, v := range o.vectors.list {
		s, err := openVectors(v.name, v.value)
		if err != nil {
			return err
		}
		in.vectors, in.together = append(in.vectors, s), append(in.together, s)
	}
	if o.codes != "" {
		if in.codes, err = openCodes(o.codes); err != nil {
			return err
		}
		in.together = append(in.together, in.codes)
	}
	if o.labels != "" {
		if in.labels, err = openLabels(o.labels, o.names); err != nil {
			return err
		}
		in.together = append(in.together, in.labels)
	}
	if o.field != "" {
		if in.fields, err = openFields(o.field); err != nil {
			return err
		}
		in.together = append(in.together, in.fields)
	}
	if o.ids != "" {
		keys, err := openKeys(o.ids)
		if err != nil {
			return err
		}
		in.together = append(in.together, keys)
	}
	if o.items != "" {
		if in.whole, err = openItems(o.items, o.ignore); err != nil {
			return err
		}
		in.together = append(in.together, in.whole)
	}
	if o.init && in.fields != nil && in.fields.declared == nil {
		return exit.Usagef("--init with --fields %s: only the header of a .csv says the types of the fields; use one, or init first", o.field)
	}
	return in.sameRows()
}

// schema returns that of a collection for the files.
func (in *importFiles) schema() (db.Schema, error) {
	if in.whole != nil {
		return in.whole.schema()
	}
	var s db.Schema
	for _, v := range in.vectors {
		s.Modalities = append(s.Modalities, db.Modality{Name: v.modality, Dim: v.cols(), Sparse: v.isSparse()})
	}
	if in.codes != nil {
		s.Bits = in.codes.bits()
	}
	if in.fields != nil {
		s.Fields = in.fields.declared
	}
	return s, nil
}

// check holds the shapes of the files against the collection.
func (in *importFiles) check(c *db.Collection, o *importOptions) error {
	s, err := c.Schema()
	if err != nil {
		return err
	}
	if in.whole != nil {
		return in.whole.check(c, s)
	}
	for _, v := range in.vectors {
		m, err := modality(c, s, "--vectors", v.modality)
		if err == nil {
			err = v.checkDim(m)
		}
		if err != nil {
			return err
		}
		if !m.Sparse { // else a vector may have no numbers
			in.leastRow += 4 * int64(m.Dim)
		}
	}
	switch {
	case in.codes == nil && s.Bits > 0 && !o.merge:
		return exit.Usagef("--codes FILE is missing: the items of collection %q bring their codes", c.Name())
	case in.codes != nil && s.Bits == 0:
		return exit.Usagef("--codes: collection %q learns its codes from vectors", c.Name())
	case in.codes != nil:
		if err := in.codes.checkBits(c, s.Bits); err != nil {
			return err
		}
	}
	if in.fields != nil {
		return in.fields.check(c, s)
	}
	return nil
}
