package db

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// A space is what gives items their codes: a trained model, or in a codes-only
// collection the fact that they bring them. It is immutable.
type space struct {
	spaceDescriptor
	model      *model.Model // nil in a codes-only collection
	modalities []int        // of the collection, by modality of the model
	views      []byte       // ascending
	encoders   sync.Pool    // of *encoder
}

// spaceDescriptor is what is stored of a space besides its matrices.
type spaceDescriptor struct {
	Version    int       `json:"version"`
	ID         uint32    `json:"id"`
	Revision   uint32    `json:"revision"`
	Bits       int       `json:"bits"`
	Views      []int     `json:"views,omitempty"` // absent: the shared one
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
	sp, err := newSpace(spaceDescriptor{ID: 1, Revision: 1, Bits: s.Bits}, nil, nil)
	if err != nil {
		return err
	}
	if err := g.writeSpace(s.ID, sp, nil); err != nil {
		return err
	}
	s.setSpace(sp)
	return nil
}

// setSpace makes sp the active space, with no codes in it yet.
func (s *collectionState) setSpace(sp *space) {
	s.space, s.sets = sp, nil
	for _, view := range sp.views {
		s.sets = append(s.sets, newCodeSet(codeKeys{s.ID, sp, view}))
	}
	s.counters.ActiveSpace, s.counters.NextSpace, s.counters.Coded = uint64(sp.ID), uint64(sp.ID)+1, 0
	s.freshSpace, s.dirty = true, true
}

// newSpace returns the space of a model, nil for none, and completes its
// descriptor. modalities says which of the collection's each of the model's is.
func newSpace(d spaceDescriptor, m *model.Model, modalities []int) (*space, error) {
	s := &space{spaceDescriptor: d, model: m, modalities: modalities, views: []byte{sharedView}}
	if m == nil {
		return s, nil
	}
	s.Views = nil
	if m.Views() == model.ViewsTarget {
		var err error
		if s.views, err = targetViews(modalities); err != nil {
			return nil, err
		}
		for _, view := range s.views {
			s.Views = append(s.Views, int(view))
		}
	}
	s.encoders.New = func() any {
		return &encoder{
			Encoder: m.NewEncoder(), modalities: modalities,
			fused: make([]float64, s.Bits), total: make([]float64, s.Bits),
		}
	}
	return s, nil
}

// targetViews returns the views of target modalities of a collection.
func targetViews(modalities []int) ([]byte, error) {
	var views []byte
	for _, t := range modalities {
		if t > maxTargetModality {
			return nil, invalid("views of targets are possible for the first %d modalities of a collection, and one to train with is number %d: use shared views",
				maxTargetModality+1, t+1)
		}
		views = append(views, viewOf(t))
	}
	return views, nil
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
		return newSpace(d, nil, nil)
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
	var s *space
	if err == nil {
		s, err = newSpace(d, m, modalities)
	}
	if err == nil && !slices.Equal(s.Views, d.Views) {
		err = fmt.Errorf("of views %v, the space has %v", s.Views, d.Views)
	}
	if err != nil {
		return nil, corrupt(err, "model of space %d", id)
	}
	return s, nil
}

// projections says where the fused projections of a collection stand: once,
// whatever the views, as they put in order what shares a code, for which all that
// is known of an item counts.
func (s *space) projections(collection uint32) codeKeys {
	return codeKeys{collection, s, sharedView}
}

// projectionBytes returns the length of a stored projection, 0 where the space
// has none.
func (s *space) projectionBytes() int {
	if s.model == nil {
		return 0
	}
	return codec.ProjectionBytes(s.Bits)
}
