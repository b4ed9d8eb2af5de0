package beam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/model/fit"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// taskItems is the number of items of a task of Encode and Build.
const taskItems = 1 << 16

// EncodeOptions name the model and the output folder of Encode.
type EncodeOptions struct {
	Model string // path of a file of a model: of Train, or of db.Collection.ExportModel
	Out   string // a folder, for the codes
}

// Encoded describes the output of Encode.
type Encoded struct {
	Files int `json:"files"` // of codes, and as many of keys
	Items int `json:"items"` // with a code
	// items without: with neither a label that the model knows nor a vector, or with one far from all
	Left     int        `json:"left"`
	Rejected []Rejected `json:"rejected,omitempty"`
}

// A codedFile is the result of a task: facts about a file of codes.
type codedFile struct {
	Codes string `json:"codes"`
	Keys  string `json:"keys"`
	Items int    `json:"items"`
	Left  int    `json:"left"`
}

// Encode writes the codes that items would have in a database with the model: codes-00000.npy with 65,536
// rows of uint8, bits/8 columns, keys-00000.txt with their keys, and so on, in the order of the input. A
// codes-only collection imports them (fddhdb import --codes). codes-00000.json has their number. It is
// written after the other two. If it is of the same input and model, the next run does not make them again.
//
// Errors: a bad row or file, with its name; a model that does not fit; the last try of the pipeline; the end
// of ctx.
func Encode(ctx context.Context, in *Input, opt EncodeOptions, r *Run) (*Encoded, error) {
	s, err := r.survey(ctx, in)
	if err != nil {
		return nil, err
	}
	if opt.Model, err = absolute(opt.Model); err != nil {
		return nil, err
	}
	if opt.Out, err = absolute(opt.Out); err != nil {
		return nil, err
	}
	b, err := read(ctx, opt.Model)
	if err != nil {
		return nil, err
	}
	if _, err := newCoder(b, s.plan.Schema); err != nil {
		return nil, err
	}
	it := s.good()
	_, encoded, err := it.tasks(taskItems)
	if err != nil {
		return nil, err
	}
	id := hash(fmt.Append(nil, s.id, hash(b)))[:16]
	if err := claim(ctx, opt.Out, "ENCODED", id); err != nil {
		return nil, err
	}
	var results []string
	for i := range encoded {
		results = append(results, encodedPath(opt.Out, i))
	}
	err = r.pipeline(ctx, "encode", s.dir, results, func(scope sdk.Scope) {
		drain(scope, sdk.ParDo(scope, &EncodeFn{Plan: s.path, Model: opt.Model, Hash: hash(b), Out: opt.Out,
			Dir: s.dir}, each(scope, encoded)))
	})
	if err != nil {
		return nil, err
	}
	out := &Encoded{Files: len(results), Rejected: s.rejected()}
	for _, path := range results {
		var f codedFile
		if err := readJSON(ctx, path, &f); err != nil {
			return nil, err
		}
		out.Items += f.Items
		out.Left += f.Left
	}
	sweep(opt.Out)
	_ = removeAll(ctx, s.dir) // the codes exist; the rest only takes space
	return out, nil
}

// encodedPath returns the path of the facts about a task's codes, which are written after the codes.
func encodedPath(out string, index int) string {
	return join(out, fmt.Sprintf("codes-%05d.json", index))
}

func readJSON(ctx context.Context, path string, v any) error {
	b, err := read(ctx, path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// claim marks a folder as the output of the run that id names. The output of another run is an error, so that
// a run never mixes its files with another one's.
func claim(ctx context.Context, dir, marker, id string) error {
	if remote(dir) && strings.ContainsAny(dir, "*?[\\") {
		return fault.Invalid("%s: a folder of a bucket cannot have *, ?, [ or \\ in its name here", dir)
	}
	path := join(dir, marker)
	found, err := look(ctx, path)
	if err != nil {
		return err
	}
	if found {
		b, err := read(ctx, path)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(b)) != id {
			return inputError("%s holds what was made of other items, of another model or with other options: remove it, or choose another folder", dir)
		}
		return nil
	}
	if err := emptyOrNew(ctx, dir); err != nil {
		return err
	}
	return write(ctx, path, []byte(id+"\n"))
}

// EncodeFn encodes the items of tasks.
type EncodeFn struct {
	Plan, Model string
	Hash        string // of the model
	Out, Dir    string

	coder          *coder
	items, without sdk.Counter
}

func init() { register.DoFn3x1[context.Context, []byte, func(string), error](&EncodeFn{}) }

// Setup implements a DoFn.
func (f *EncodeFn) Setup() {
	f.items, f.without = sdk.NewCounter(namespace, "items encoded"),
		sdk.NewCounter(namespace, "items without a code")
}

// ProcessElement writes the codes of a task.
func (f *EncodeFn) ProcessElement(ctx context.Context, b []byte, emit func(string)) error {
	done, err := working(ctx, f.Dir)
	if err != nil {
		return err
	}
	defer done()
	var t task
	if err := json.Unmarshal(b, &t); err != nil {
		return err
	}
	path := encodedPath(f.Out, t.Index)
	if exists(ctx, path) {
		return nil
	}
	w, err := workerOf(ctx, f.Plan)
	if err != nil {
		return err
	}
	if f.coder == nil {
		b, err := readModel(ctx, f.Model, f.Hash)
		if err != nil {
			return err
		}
		if f.coder, err = newCoder(b, w.plan.Schema); err != nil {
			return err
		}
	}
	f.coder.batch = f.coder.batch[:0] // a failed task may have left items
	made := codedFile{Codes: fmt.Sprintf("codes-%05d.npy", t.Index),
		Keys: fmt.Sprintf("keys-%05d.txt", t.Index)}
	var codes [][]byte
	var keys strings.Builder
	flush := func() error {
		return f.coder.codes(func(key string, code codec.Code) error {
			if code == nil {
				made.Left++
				return nil
			}
			if strings.ContainsAny(key, "\n\r") {
				return badInput("the key %q has a line end, and keys are written a line each", key)
			}
			made.Items++
			codes = append(codes, code.AppendBytes(nil, f.coder.model.Bits()))
			keys.WriteString(key + "\n")
			return nil
		})
	}
	ordinals := t.ordinals()
	err = w.each(ctx, &t, func(group, row int, item *db.Item) error {
		f.coder.add(ordinals.key(group, row, item), item)
		if f.coder.full() {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	f.items.Inc(ctx, int64(made.Items))
	f.without.Inc(ctx, int64(made.Left))
	err = create(ctx, join(f.Out, made.Codes), func(to io.Writer) error {
		out, err := npy.NewWriter[uint8](to, len(codes), f.coder.model.Bits()/8)
		for _, c := range codes {
			if err == nil {
				err = out.Write(c)
			}
		}
		if err != nil {
			return err
		}
		return out.Close()
	})
	if err == nil {
		err = write(ctx, join(f.Out, made.Keys), []byte(keys.String()))
	}
	if err != nil {
		return err
	}
	if b, err = json.Marshal(made); err != nil {
		return err
	}
	if err := write(ctx, path, b); err != nil {
		return err
	}
	emit(path)
	return nil
}

// A coder makes the codes of items as a database does.
type coder struct {
	model *model.Model
	names []string          // of modalities
	ids   map[string]uint32 // of labels

	batch []coded
	pool  sync.Pool // of *model.Encoder
}

// A coded item of a batch.
type coded struct {
	key     string
	labels  []uint32
	vectors []model.Vector
	code    codec.Code
}

// coderBatch is the number of items to encode together.
const coderBatch = 1024

// newCoder returns a coder for a file of a model.
func newCoder(b []byte, schema db.Schema) (*coder, error) {
	f, err := fit.UnmarshalFile(b)
	if err != nil {
		return nil, inputError("--model: it is no model file, or a damaged one: %w", err)
	}
	if err := fits(f, schema); err != nil {
		return nil, err
	}
	c := &coder{ids: map[string]uint32{}}
	var ids []uint32
	for i, name := range f.Labels() {
		c.ids[name] = uint32(i)
		ids = append(ids, uint32(i))
	}
	if c.model, err = f.Model(ids); err != nil {
		return nil, err
	}
	for _, m := range c.model.Modalities() {
		c.names = append(c.names, m.Name)
	}
	c.pool.New = func() any { return c.model.NewEncoder() }
	return c, nil
}

// readModel reads a file of a model, and checks that it is the file that the driver has read.
func readModel(ctx context.Context, path, want string) ([]byte, error) {
	b, err := read(ctx, path)
	if err == nil && hash(b) != want {
		err = badInput("%s has changed since the run began", path)
	}
	return b, err
}

// fits checks that the items have the modalities of a model.
func fits(f *fit.File, schema db.Schema) error {
	for _, m := range f.Modalities() {
		i := slices.IndexFunc(schema.Modalities, func(o db.Modality) bool { return o.Name == m.Name })
		switch {
		case i < 0:
			return inputError("the model has a modality %q, and the items have none of that name", m.Name)
		case schema.Modalities[i].Dim != m.Dim:
			return inputError("modality %q has %d dimensions in the model, and %d in the items", m.Name,
				m.Dim, schema.Modalities[i].Dim)
		case schema.Modalities[i].Sparse != m.Sparse:
			return inputError("the vectors of modality %q are sparse either in the model or in the items, and not in both", m.Name)
		}
	}
	return nil
}

// add copies an item into the batch.
func (c *coder) add(key string, item *db.Item) {
	e := coded{key: key, vectors: make([]model.Vector, len(c.names))}
	for _, l := range item.Labels {
		if id, ok := c.ids[l]; ok {
			e.labels = append(e.labels, id)
		}
	}
	slices.Sort(e.labels)
	e.labels = slices.Compact(e.labels)
	for t, name := range c.names {
		if x := vectorOf(item, name); x.Present() {
			e.vectors[t] = model.Vector{Index: slices.Clone(x.Index), Value: slices.Clone(x.Value)}
		}
	}
	c.batch = append(c.batch, e)
}

func (c *coder) full() bool { return len(c.batch) >= coderBatch }

// codes calls f with the items of the batch and their codes, nil where there is none, and empties it.
func (c *coder) codes(f func(key string, code codec.Code) error) error {
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	size := (len(c.batch) + len(errs) - 1) / len(errs)
	for i := range errs {
		part := c.batch[min(i*size, len(c.batch)):min((i+1)*size, len(c.batch))]
		wg.Go(func() { errs[i] = c.encode(part) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, e := range c.batch {
		if err := f(e.key, e.code); err != nil {
			return err
		}
	}
	c.batch = c.batch[:0]
	return nil
}

// encode sets the codes of items.
func (c *coder) encode(batch []coded) error {
	q, T := c.model.Bits(), len(c.names)
	enc := c.pool.Get().(*model.Encoder)
	defer c.pool.Put(enc)
	z := make([][]float64, len(batch)*T) // by item and modality
	for t := range T {
		var xs []model.Vector
		var of []int
		for i := range batch {
			if batch[i].vectors[t].Present() {
				xs, of = append(xs, batch[i].vectors[t]), append(of, i)
			}
		}
		all := make([]float64, len(xs)*q)
		if err := enc.ProjectVectors(all, t, xs); err != nil {
			return err
		}
		for r, i := range of {
			z[i*T+t] = all[r*q : (r+1)*q]
		}
	}
	fused := make([]float64, q)
	for i := range batch {
		e := &batch[i]
		code := codec.NewCode(q)
		if !c.model.LabelCode(code, e.labels) {
			c.model.Fuse(fused, z[i*T:(i+1)*T])
			if !slices.ContainsFunc(fused, func(v float64) bool { return v != 0 }) {
				continue
			}
			codec.PackSigns(code, fused)
		}
		e.code = code
	}
	return nil
}
