package db

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/mih"
	"github.com/fddhdb/fddhdb/model"
)

// A space is what gives items their codes: a trained model, or in a codes-only
// collection the fact that they bring them. It is immutable.
type space struct {
	spaceDescriptor
	model      *model.Model // nil in a codes-only collection
	modalities []int        // of the collection, by modality of the model
	encoders   sync.Pool    // of *encoder
}

// spaceDescriptor is what is stored of a space besides its matrices.
type spaceDescriptor struct {
	Version    int       `json:"version"`
	ID         uint32    `json:"id"`
	Revision   uint32    `json:"revision"`
	Bits       int       `json:"bits"`
	Created    time.Time `json:"created"`
	Model      chunked   `json:"model"`
	Statistics chunked   `json:"statistics"`
}

// chunked says how a large value is cut: chunkBytes each, the last one less.
type chunked struct {
	Chunks uint32 `json:"chunks"`
	Bytes  int64  `json:"bytes"`
}

const chunkBytes = 1 << 20

// writeChunks stores b under the chunk keys of a kind.
func writeChunks(batch *pebble.Batch, kind byte, collection, space uint32, b []byte) (chunked, error) {
	c := chunked{Bytes: int64(len(b))}
	for ; len(b) > 0; c.Chunks++ {
		n := min(chunkBytes, len(b))
		if err := batch.Set(codec.ChunkKey(kind, collection, space, c.Chunks), b[:n], nil); err != nil {
			return c, err
		}
		b = b[n:]
	}
	return c, nil
}

func readChunks(r pebble.Reader, kind byte, collection, space uint32, c chunked) ([]byte, error) {
	var b []byte
	for i := range c.Chunks {
		value, closer, err := r.Get(codec.ChunkKey(kind, collection, space, i))
		if err != nil {
			return nil, readError(err, "chunk %d of %d", i, c.Chunks)
		}
		b = append(b, value...)
		if err := closer.Close(); err != nil {
			return nil, err
		}
	}
	if int64(len(b)) != c.Bytes {
		return nil, corrupt(fmt.Errorf("%d bytes, %d were written", len(b), c.Bytes), "chunks")
	}
	return b, nil
}

// encode returns the descriptor of a space, with the report of its training.
func (d spaceDescriptor) encode(report *model.Report) ([]byte, error) {
	return json.Marshal(struct {
		spaceDescriptor
		Report *model.Report `json:"report,omitempty"`
	}{d, report})
}

// writeSpace stores the descriptor of a space, with the report of its training.
func (g *group) writeSpace(collection uint32, s *space, report *model.Report) error {
	b, err := s.spaceDescriptor.encode(report)
	if err != nil {
		return err
	}
	return g.batch.Set(codec.NumberKey(codec.KindSpace, collection, s.ID), b, nil)
}

// codesOnlySpace makes the one space that a codes-only collection has.
func (g *group) codesOnlySpace(s *collectionState) error {
	sp := newSpace(spaceDescriptor{ID: 1, Revision: 1, Bits: s.Bits}, nil, nil)
	if err := g.writeSpace(s.ID, sp, nil); err != nil {
		return err
	}
	s.setSpace(sp)
	return nil
}

// setSpace makes sp the active space, with no codes in it yet.
func (s *collectionState) setSpace(sp *space) {
	s.space, s.table = sp, mih.NewWriter(sp.Bits)
	s.generation++
	s.counters.ActiveSpace, s.counters.NextSpace = uint64(sp.ID), uint64(sp.ID)+1
	s.freshSpace, s.freshCode = true, 0
	s.dirty = true
}

// newSpace returns the space of a model, nil for none. modalities says which of the
// collection's each of the model's is.
func newSpace(d spaceDescriptor, m *model.Model, modalities []int) *space {
	s := &space{spaceDescriptor: d, model: m, modalities: modalities}
	if m != nil {
		s.encoders.New = func() any {
			return &encoder{
				Encoder: m.NewEncoder(), modalities: modalities,
				fused: make([]float64, d.Bits), total: make([]float64, d.Bits),
			}
		}
	}
	return s
}

// match finds the modalities of a model among those of a collection.
func (d *descriptor) match(m *model.Model) ([]int, error) {
	var positions []int
	for _, mod := range m.Modalities() {
		t, err := d.modality(mod.Name)
		if err != nil {
			return nil, fmt.Errorf("the model has a modality %q", mod.Name)
		}
		if d.Modalities[t].Dim != mod.Dim {
			return nil, fmt.Errorf("modality %q of the model has %d dimensions", mod.Name, mod.Dim)
		}
		if d.Modalities[t].Sparse != mod.Sparse {
			return nil, fmt.Errorf("modality %q of the model is sparse: %v", mod.Name, mod.Sparse)
		}
		positions = append(positions, t)
	}
	return positions, nil
}

// readSpace reads a space of a collection, and its model, from the store.
func readSpace(r pebble.Reader, c *descriptor, id uint32) (*space, error) {
	value, closer, err := r.Get(codec.NumberKey(codec.KindSpace, c.ID, id))
	if err != nil {
		return nil, readError(err, "descriptor of space %d", id)
	}
	var d spaceDescriptor
	err = json.Unmarshal(value, &d)
	closer.Close()
	if err == nil {
		err = codec.CheckBits(d.Bits)
	}
	if err == nil && (d.Version != 0 || d.ID != id) {
		err = fmt.Errorf("version %d, id %d", d.Version, d.ID)
	}
	if err != nil {
		return nil, corrupt(err, "descriptor of space %d", id)
	}
	if c.codesOnly() {
		if d.Bits != c.Bits || d.Model.Chunks > 0 {
			return nil, corrupt(fmt.Errorf("%d bits, %d chunks of a model", d.Bits, d.Model.Chunks), "descriptor of space %d", id)
		}
		return newSpace(d, nil, nil), nil
	}
	b, err := readChunks(r, codec.KindModel, c.ID, id, d.Model)
	if err != nil {
		return nil, readError(err, "model of space %d", id)
	}
	m, err := model.Unmarshal(b)
	if err == nil && m.Bits() != d.Bits {
		err = fmt.Errorf("model of %d bits in a space of %d", m.Bits(), d.Bits)
	}
	var modalities []int
	if err == nil {
		modalities, err = c.match(m)
	}
	if err != nil {
		return nil, corrupt(err, "model of space %d", id)
	}
	return newSpace(d, m, modalities), nil
}

// projectionBytes returns the length of a stored projection, 0 where the space
// has none.
func (s *space) projectionBytes() int {
	if s.model == nil {
		return 0
	}
	return codec.ProjectionBytes(s.Bits)
}

// encoder is scratch memory for the projections of one goroutine.
type encoder struct {
	*model.Encoder
	modalities []int       // of the collection, by modality of the model
	zs         []float64   // of the items of project, by modality
	parts      [][]float64 // of item i and modality t of the model: i len(modalities) + t; nil where there is none
	fused      []float64
	total      []float64
}

// An encoding is the code of an item in one space.
type encoding struct {
	space      *space
	code       codec.Code // nil: the item has neither features nor a label that the model knows
	from       codec.Provenance
	projection []byte // the sum of the projections; nil: no features
}

// position returns the modality of the model that a modality of the collection is.
func (e *encoder) position(t int) (int, bool) {
	i := slices.Index(e.modalities, t)
	return i, i >= 0
}

// sharedView is the view of the model that codes of all targets belong to.
const sharedView = 0

// project makes the projections of the features of items that the model knows, by
// modality of the collection. at is the item of an error.
func (e *encoder) project(items [][]model.Vector) (at int, err error) {
	q, n := e.Model().Bits(), len(e.modalities)
	if need := len(items) * n * q; len(e.zs) < need {
		e.zs, e.parts = make([]float64, need), make([][]float64, len(items)*n)
	}
	clear(e.parts)
	for i, t := range e.modalities {
		var xs [encodeRun]model.Vector
		var of [encodeRun]int
		have := 0
		for j, vectors := range items {
			if t < len(vectors) && vectors[t].Present() {
				xs[have], of[have] = vectors[t], j
				have++
			}
		}
		zs := e.zs[i*len(items)*q:][:have*q]
		if err := e.ProjectVectors(zs, i, xs[:have]); err != nil {
			for j := range have { // which of them is it?
				if err := e.ProjectVectors(e.fused, i, xs[j:j+1]); err != nil {
					return of[j], err
				}
			}
			return 0, err
		}
		for j := range have {
			e.parts[of[j]*n+i] = zs[j*q : (j+1)*q]
		}
	}
	return 0, nil
}

// fuse returns what an item of project, without labels, is stored as in a view, in
// scratch memory (model.Fuse), and the modality of the model that made it alone
// because of the weights, else -1. Where the item has no features that the model
// knows, or they are so far from all that it has learned from that nothing is left of
// the kernel, that is zero and has no signs.
func (e *encoder) fuse(item, view int) (z []float64, only int) {
	n := len(e.modalities)
	only = e.Model().Fuse(e.fused, view, e.parts[item*n:(item+1)*n])
	return e.fused, only
}

// sum returns the sum of the projections of an item of project, in scratch memory.
func (e *encoder) sum(item int) []float64 {
	clear(e.total)
	n := len(e.modalities)
	for _, z := range e.parts[item*n : (item+1)*n] {
		for j, v := range z {
			e.total[j] += v
		}
	}
	return e.total
}

func isZero(z []float64) bool {
	return !slices.ContainsFunc(z, func(x float64) bool { return x != 0 })
}

// encode gives an item its code: sgn(C y) where a label is known, else the signs
// of its fused projection, if that says anything. given is the code that an item of a
// codes-only collection brings.
func (s *space) encode(vectors []model.Vector, labelIDs []uint32, given codec.Code) (encoding, error) {
	if s.model == nil {
		return encoding{space: s, code: given, from: codec.ProvenanceGiven}, nil
	}
	e := s.encoders.Get().(*encoder)
	defer s.encoders.Put(e)
	if _, err := e.project([][]model.Vector{vectors}); err != nil {
		return encoding{space: s}, err
	}
	return s.encoding(e, 0, labelIDs), nil
}

// encoding is encode for an item that the encoder has projected.
func (s *space) encoding(e *encoder, item int, labelIDs []uint32) encoding {
	enc := encoding{space: s}
	code := codec.NewCode(s.Bits)
	if z, only := e.fuse(item, sharedView); !isZero(z) {
		enc.projection = codec.AppendProjection(make([]byte, 0, s.projectionBytes()), e.sum(item))
		enc.code, enc.from = codec.PackSigns(code, z), codec.ProvenanceFused
		if only >= 0 {
			enc.from = codec.ProvenanceModality + codec.Provenance(s.modalities[only])
		}
	}
	if s.model.LabelCode(code, labelIDs) {
		enc.code, enc.from = code, codec.ProvenanceLabels
	}
	return enc
}

// encodeRun is how many items are encoded together, at a fraction of what they
// would cost one by one.
const encodeRun = 64

// encodeAll is encode for many items of a space with a model, on all cores: encs[i]
// becomes the encoding of what item(i) returns. failed names the item in an error.
func (s *space) encodeAll(ctx context.Context, encs []encoding, item func(i int) (vectors []model.Vector, labelIDs []uint32), failed func(i int, err error) error) error {
	runs := (len(encs) + encodeRun - 1) / encodeRun
	return parallelBy(ctx, 1, runs, func(run int) error {
		from, to := run*encodeRun, min((run+1)*encodeRun, len(encs))
		e := s.encoders.Get().(*encoder)
		defer s.encoders.Put(e)
		var vectors [encodeRun][]model.Vector
		var labelIDs [encodeRun][]uint32
		for i := from; i < to; i++ {
			vectors[i-from], labelIDs[i-from] = item(i)
		}
		if at, err := e.project(vectors[:to-from]); err != nil {
			return failed(from+at, err)
		}
		for i := from; i < to; i++ {
			encs[i] = s.encoding(e, i-from, labelIDs[i-from])
		}
		return nil
	})
}
