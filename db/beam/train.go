package beam

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Trained is the result of a training.
type Trained struct {
	File     *fit.File  // the model, for db.Collection.ImportModel
	Report   fit.Report // of the training, with times and memory
	LeftOut  []string   // modalities that no item to learn from has
	Rejected []Rejected // bad rows that were left out

	made []string // folders of intermediate files
}

// Train learns a model from the items of the input. It gives the same model as importing the files into a
// collection, in the order of their groups, and db.Collection.Train: File has the bytes that
// db.Collection.ExportModel would write. That holds if keys are distinct. Train ignores opt.Activate and
// opt.Progress. Intermediate files stay until you call Save or Discard, so that after a failure to write the
// model you have it again at once.
//
// The method is labels, or one that needs no labels. The driver takes the memory of fit.TrainOver. A worker
// takes some 100 MB, the memory of reading a file, and for a map of k features twice 8 k (k + c), where c is
// the number of labels, or of bits if there are more labels. Beam moves the names of tasks. Files of the
// temporary folder take 4 k (k + 1) + 8 c k bytes a modality and 65,536 items.
//
// Errors: any of fit.TrainOver; a bad row or file, with its name; the last try of a pipeline; the end of ctx.
func Train(ctx context.Context, in *Input, opt db.TrainOptions, r *Run) (*Trained, error) {
	s, err := r.survey(ctx, in)
	if err != nil {
		return nil, err
	}
	labelled := true
	it := s.labelled()
	if opt.Method.LabelFree() {
		labelled, it = false, s.vectors()
	}
	it.limit(opt.Rows)
	t := &Trained{Rejected: s.rejected()}
	modalities, positions, leftOut, shared := db.TrainingModalities(s.plan.Schema,
		func(i int) bool { return it.n() == 0 || it.any(i) })
	t.LeftOut = leftOut
	if len(modalities) == 0 {
		if s.plan.Schema.Bits > 0 {
			return nil, fault.Invalid("items of --codes have no vectors: there is nothing to learn")
		}
		return nil, inputError("no item to learn from has a vector of any modality")
	}
	if opt.Shared == nil {
		opt.Shared = shared
	}
	opt.Progress = nil
	e, err := r.newEngine(ctx, it, positions, labelled)
	if err != nil {
		return nil, err
	}
	result, err := fit.TrainOver(ctx, modalities, e, opt.Options)
	if err != nil {
		return nil, err
	}
	t.Report = result.Report
	var names []string
	for _, id := range result.Model.Labels() {
		names = append(names, s.labels[id])
	}
	if t.File, err = fit.NewFile(result.Model, names, &result.Report); err != nil {
		return nil, err
	}
	t.made = []string{e.dir, s.dir}
	return t, nil
}

// Save writes the model to a file of a file system of Beam's, and discards the intermediate files.
func (t *Trained) Save(ctx context.Context, path string) error {
	b, err := t.File.MarshalBinary()
	if err != nil {
		return err
	}
	if err := write(ctx, path, b); err != nil {
		return err
	}
	t.Discard(ctx)
	return nil
}

// Discard removes the intermediate files. Files that it cannot remove only take space.
func (t *Trained) Discard(ctx context.Context) {
	for _, dir := range t.made {
		_ = removeAll(ctx, dir)
	}
}

// An InputError is an error in the files that a pipeline reads, or in its output folder: another try would
// find the same. It may wrap a db.ErrInvalid about an argument from such a file. A db.ErrInvalid without an
// InputError around it is about an argument of the caller.
type InputError struct{ err error }

func (e *InputError) Error() string { return e.err.Error() }
func (e *InputError) Unwrap() error { return e.err }

func inputError(format string, args ...any) error { return &InputError{fmt.Errorf(format, args...)} }

// reason returns the text of an error on one line, without the words that only callers of package db need. It
// stands in files, and in the errors of tasks.
func reason(err error) string {
	var parts []string
	for line := range strings.SplitSeq(err.Error(), "\n") { // of errors.Join
		for _, is := range []error{fault.ErrInvalid, backup.ErrInvalid} {
			line = strings.TrimPrefix(line, is.Error()+": ")
		}
		if line = strings.TrimPrefix(line, "fddhdb: "); line != "" && !slices.Contains(parts, line) {
			parts = append(parts, line)
		}
	}
	return strings.Join(parts, "; ")
}

// Items without keys are numbered, in the order of the input, as an import numbers them.

// ordinals number the items of a task.
type ordinals struct {
	first map[int]int             // by group: the number of the first item of its segment
	rows  map[int]*roaring.Bitmap // by group: the rows of its segment
}

// ordinals returns the numbers of the items of a task of all items.
func (t *task) ordinals() *ordinals {
	o := &ordinals{first: map[int]int{}, rows: map[int]*roaring.Bitmap{}}
	n := t.First
	for _, s := range t.Segments {
		o.first[s.Group], o.rows[s.Group] = n, s.Rows.Bitmap
		n += int(s.Rows.GetCardinality())
	}
	return o
}

// key returns the key of an item of a row of a group.
func (o *ordinals) key(group, row int, item *db.Item) string {
	if item.Key != "" {
		return item.Key
	}
	return strconv.Itoa(o.first[group] + int(o.rows[group].Rank(uint32(row))) - 1)
}
