package fit

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/wire"
)

// A File is a model that can move from one database to another, or from a program that has trained it without
// one. In a model labels are ids, which other databases give in another order. A File has their names. It is
// immutable.
type File struct {
	model  *model.Model // its labels are 0, 1, 2 and so on
	labels []string     // the name of each
	report *Report      // of the training
}

// NewFile makes a File of a model. labels are the names of m.Labels, in that order. A label without a name,
// "", is left out: for the model, items with that label alone are then without labels. report is the report
// of the training; nil is an empty one. The File leaves out its Seconds and MemoryBytes, because two equal
// trainings differ in them: their files are equal. An ErrOption is about the names.
func NewFile(m *model.Model, labels []string, report *Report) (*File, error) {
	if len(labels) != len(m.Labels()) {
		return nil, fmt.Errorf("%w: %d names of labels, for a model of %d labels", model.ErrOption,
			len(labels), len(m.Labels()))
	}
	f := &File{report: new(Report)}
	if report != nil {
		*f.report = *report
		f.report.Seconds, f.report.MemoryBytes = nil, 0
	}
	var columns []int
	var ids []uint32
	for i, l := range labels {
		if l != "" {
			columns, ids = append(columns, i), append(ids, uint32(len(ids)))
			f.labels = append(f.labels, l)
		}
	}
	if err := checkNames(f.labels); err != nil {
		return nil, fmt.Errorf("%w: %w", model.ErrOption, err)
	}
	if len(columns) == 0 && len(labels) > 0 {
		return nil, fmt.Errorf("%w: no label of the model has a name", model.ErrOption)
	}
	var err error
	f.model, err = relabelled(m, columns, ids)
	return f, err
}

// checkNames checks names of labels.
func checkNames(labels []string) error {
	seen := make(map[string]bool, len(labels))
	for _, l := range labels {
		switch {
		case l == "" || len(l) > wire.MaxName || !utf8.ValidString(l):
			return fmt.Errorf("label %.40q: 1 to %d bytes of UTF-8 are possible", l, wire.MaxName)
		case seen[l]:
			return fmt.Errorf("label %.40q is there twice", l)
		}
		seen[l] = true
	}
	return nil
}

// Labels returns the names of the labels, in an order of their own. A database that has none of them gives
// them ids in that order.
func (f *File) Labels() []string { return slices.Clone(f.labels) }

// Modalities returns the modalities of the model.
func (f *File) Modalities() []model.Modality { return f.model.Modalities() }

// Report returns the report of the training.
func (f *File) Report() *Report {
	own := *f.report
	own.Chosen = maps.Clone(own.Chosen)
	return &own
}

// Model returns the model for ids of labels: ids[i] is the id of label i of Labels. Its codes of labels and
// projections equal the ones of the model that the File was made of; if the ids have another order than the
// labels, sums that are zero but for rounding may have another sign. It costs a copy of 8 q bytes a label. An
// ErrOption is about ids that are not distinct, or too few.
func (f *File) Model(ids []uint32) (*model.Model, error) {
	if len(ids) != len(f.labels) {
		return nil, fmt.Errorf("%w: %d ids, for a model of %d labels", model.ErrOption, len(ids),
			len(f.labels))
	}
	columns := make([]int, len(ids))
	for i := range columns {
		columns[i] = i
	}
	slices.SortFunc(columns, func(a, b int) int { return cmp.Compare(ids[a], ids[b]) })
	sorted := slices.Sorted(slices.Values(ids))
	if len(slices.Compact(slices.Clone(sorted))) != len(ids) {
		return nil, fmt.Errorf("%w: two labels have one id", model.ErrOption)
	}
	return relabelled(f.model, columns, sorted)
}

// relabelled returns the model of some of its labels, with other ids: ids[i] is the id of the label in column
// columns[i]. ids ascend.
func relabelled(m *model.Model, columns []int, ids []uint32) (*model.Model, error) {
	old := m.Parts()
	p := old
	p.Labels, p.C, p.Weights = slices.Clone(ids), nil, nil
	for _, l := range columns {
		p.C = append(p.C, old.C[l*p.Bits:(l+1)*p.Bits]...)
		if old.Weights != nil {
			p.Weights = append(p.Weights, old.Weights[l])
		}
	}
	return model.New(p)
}

// The body of a model file (magic "FDHF"), with the numbers of model/marshal.go:
//
//	4         uint32 c: labels, 0 to 2^20, and c times:
//	2+l       uint16 l, 1 to 1024, and l bytes: the name in UTF-8, distinct
//	4+n       uint32 n, and n bytes: the report, in JSON
//	n         a model in its frame, to the end; its labels are 0 to c-1
const fileMagic = "FDHF"

// MarshalBinary returns the bytes of the file. Equal models with equal reports give equal bytes. The
// error is always nil.
func (f *File) MarshalBinary() ([]byte, error) {
	w := wire.NewWriter(fileMagic)
	w.U32(uint32(len(f.labels)))
	for _, l := range f.labels {
		w.Name(l)
	}
	report, err := json.Marshal(f.report)
	if err != nil {
		return nil, err
	}
	w.U32(uint32(len(report)))
	w.B = append(w.B, report...)
	b, err := f.model.MarshalBinary()
	if err != nil {
		return nil, err
	}
	w.B = append(w.B, b...)
	return w.Finish(), nil
}

// UnmarshalFile reads a file from bytes of any origin, and does not keep them. It has the errors of
// Unmarshal.
func UnmarshalFile(b []byte) (*File, error) {
	r, err := wire.Open(b, "model file", fileMagic)
	if err != nil {
		return nil, err
	}
	f := &File{report: new(Report)}
	for range r.Count("the number of labels", 0, wire.MaxLabels) {
		f.labels = append(f.labels, r.Name("the name of a label"))
		if r.Err != nil {
			return nil, r.Err
		}
	}
	if err := checkNames(f.labels); err != nil {
		return nil, wire.Corrupt("%v", err)
	}
	report := r.Take(r.Count("the length of the report", 0, len(r.B)), "the report")
	if r.Err != nil {
		return nil, r.Err
	}
	if err := json.Unmarshal(report, f.report); err != nil {
		return nil, wire.Corrupt("the report: %v", err)
	}
	if f.model, err = model.Unmarshal(r.B); err != nil {
		return nil, err
	}
	for i, l := range f.model.Labels() {
		if uint32(i) != l {
			return nil, wire.Corrupt("label %d of the model is %d", i, l)
		}
	}
	if len(f.model.Labels()) != len(f.labels) {
		return nil, wire.Corrupt("%d names of labels, and a model of %d", len(f.labels),
			len(f.model.Labels()))
	}
	return f, nil
}
