package spaces

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// A Space is what gives items their codes: a trained model, or in a codes-only
// collection the fact that they bring them. This is one revision of it, which is
// immutable: revisions have the code of a label set in common, and differ in the
// projections.
type Space struct {
	Stored
	Revision  uint32
	Trained   *model.Model // of revision 1; nil in a codes-only collection
	Learned   *model.Model // of this one
	Positions []int        // of the collection, by modality of the model
	Targets   []byte       // ascending
	Encoders  sync.Pool    // of *encoder
}

// Stored is what is stored of a space besides its matrices.
type Stored struct {
	Version    int            `json:"version"`
	ID         uint32         `json:"id"`
	Parent     uint32         `json:"parent,omitempty"` // the space whose model it has; absent: it was trained
	Bits       int            `json:"bits"`
	Views      []int          `json:"views,omitempty"` // the targets; absent: the shared one
	Created    time.Time      `json:"created"`
	Model      record.Chunked `json:"model"`
	Statistics record.Chunked `json:"statistics"`
}

// Reported is a descriptor with the report of the training, and with a copy of the
// descriptor of the collection, for a repair that finds that one lost. What was written by
// versions that knew nothing of copies has none, or an old one.
type Reported struct {
	Stored
	Report     json.RawMessage    `json:"report,omitempty"`
	Collection *record.Descriptor `json:"collection,omitempty"`
}

// Now is the time as it is stored.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// New returns the first revision of the space of a model, nil for none, and
// completes its descriptor. modalities says which of the collection's each of the model's is.
func New(d Stored, m *model.Model, modalities []int) (*Space, error) {
	s := &Space{Stored: d, Revision: 1, Trained: m, Learned: m, Positions: modalities, Targets: []byte{record.SharedTarget}}
	if m == nil {
		return s, nil
	}
	s.Views = nil
	if m.Views() == model.ViewsTarget {
		var err error
		if s.Targets, err = TargetsOf(modalities); err != nil {
			return nil, err
		}
		for _, target := range s.Targets {
			s.Views = append(s.Views, int(target))
		}
	}
	s.Encoders.New = s.newEncoder
	return s, nil
}

// Revised returns the space with another revision.
func (s *Space) Revised(revision uint32, m *model.Model) *Space {
	r := &Space{
		Stored: s.Stored, Revision: revision,
		Trained: s.Trained, Learned: m, Positions: s.Positions, Targets: s.Targets,
	}
	r.Encoders.New = r.newEncoder
	return r
}

func (s *Space) newEncoder() any {
	return &Encoder{
		Encoder: s.Learned.NewEncoder(), modalities: s.Positions,
		fused: make([]float64, s.Bits), total: make([]float64, s.Bits),
	}
}

// TargetsOf returns the targets that modalities of a collection are.
func TargetsOf(modalities []int) ([]byte, error) {
	var targets []byte
	for _, t := range modalities {
		if t > record.MaxTargetModality {
			return nil, fault.Invalid("views of targets are possible for the first %d modalities of a collection, and one to train with is number %d: use shared views",
				record.MaxTargetModality+1, t+1)
		}
		targets = append(targets, record.TargetOf(t))
	}
	return targets, nil
}

// Read reads a space of a collection, with the model of a revision, from the
// store.
func Read(r pebble.Reader, c *record.Descriptor, id, revision uint32) (*Space, error) {
	value, closer, err := r.Get(codec.NumberKey(codec.KindSpace, c.ID, id))
	if err != nil {
		return nil, fault.ReadError(err, "descriptor of space %d", id)
	}
	var d Stored
	err = json.Unmarshal(value, &d)
	closer.Close()
	if err == nil {
		err = record.CheckDescriptorVersion(d.Version)
	}
	if err == nil {
		err = codec.CheckBits(d.Bits)
	}
	if err == nil && d.ID != id {
		err = fmt.Errorf("it is of space %d", d.ID)
	}
	if err != nil {
		return nil, fault.Corrupt(err, "descriptor of space %d", id)
	}
	if c.CodesOnly() {
		if d.Bits != c.Bits || d.Model.Chunks > 0 {
			return nil, fault.Corrupt(fmt.Errorf("%d bits, %d chunks of a model", d.Bits, d.Model.Chunks), "descriptor of space %d", id)
		}
		return New(d, nil, nil)
	}
	b, err := record.ReadChunks(r, codec.NumberKey(codec.KindModel, c.ID, id), 0, d.Model)
	if err != nil {
		return nil, fault.ReadError(err, "model of space %d", id)
	}
	m, err := model.Unmarshal(b)
	if err == nil && m.Bits() != d.Bits {
		err = fmt.Errorf("model of %d bits in a space of %d", m.Bits(), d.Bits)
	}
	var modalities []int
	if err == nil {
		modalities, err = c.Match(m)
	}
	var s *Space
	if err == nil {
		s, err = New(d, m, modalities)
	}
	if err == nil && !slices.Equal(s.Views, d.Views) {
		err = fmt.Errorf("of views %v, the space has %v", s.Views, d.Views)
	}
	if err != nil {
		return nil, fault.Corrupt(err, "model of space %d", id)
	}
	if revision == 1 {
		return s, nil
	}
	if m, err = ReadRevision(r, c.ID, s, revision); err != nil {
		return nil, err
	}
	return s.Revised(revision, m), nil
}

// Projections says where the fused projections of a collection stand: once,
// whatever the targets, as they put in order what shares a code, for which all that
// is known of an item counts.
func (s *Space) Projections(collection uint32) record.CodeKeys {
	return s.Keys(collection, record.SharedTarget)
}

// Keys says where the code set of a target stands.
func (s *Space) Keys(collection uint32, target byte) record.CodeKeys {
	return record.CodeKeys{Collection: collection, Space: s.ID, Bits: s.Bits, Target: target}
}

// ProjectionBytes returns the length of a stored projection, 0 where the space
// has none.
func (s *Space) ProjectionBytes() int {
	if s.Learned == nil {
		return 0
	}
	return codec.ProjectionBytes(s.Bits)
}

// ReadReport reads the report of the training of a space, nil where there is none.
func ReadReport(r pebble.Reader, collection, space uint32) (json.RawMessage, error) {
	b, err := record.Get(r, codec.NumberKey(codec.KindSpace, collection, space))
	if err == nil && b == nil {
		err = fault.ErrMissing
	}
	if err != nil {
		return nil, fault.ReadError(err, "descriptor of space %d", space)
	}
	var d struct {
		Report json.RawMessage `json:"report"`
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fault.Corrupt(err, "descriptor of space %d", space)
	}
	return d.Report, nil
}
