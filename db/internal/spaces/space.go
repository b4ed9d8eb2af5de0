package spaces

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// A Space is what gives items their codes: a trained model, or in a codes-only collection the
// fact that they bring them. This is one revision of it: revisions have the code of a label
// set in common, and differ in the projections. Once it is in use nothing in it changes, so
// that the committer, views and encodings share one *Space; a pointer stands for the revision
// (see Encodings.Of).
type Space struct {
	SpaceDescriptor

	Revision uint32       // from 1, as it was trained
	Trained  *model.Model // of revision 1; nil in a codes-only collection
	// of this revision, the same as Trained in revision 1; nil in a codes-only collection
	Learned *model.Model
	// positions in the collection, by modality of the model; nil in a codes-only collection
	Positions []int
	Encoders  sync.Pool // of *Encoder, with the matrices of Learned; unused in a codes-only collection

	earlier atomic.Pointer[Space] // that was asked for last, see Earlier
}

// A SpaceDescriptor has the facts about a space besides its matrices. It is stored in JSON.
type SpaceDescriptor struct {
	ID uint32 `json:"id"` // unique in the collection, from 1; never used again
	// the space whose model it has; absent: it was trained
	Parent  uint32         `json:"parent,omitempty"`
	Bits    int            `json:"bits"`    // of a code
	Created time.Time      `json:"created"` // see Now
	Model   record.Chunked `json:"model"`   // revision 1; zero in a codes-only collection
	// sums of the lessons, as of the last checkpoint; zero without HasStatistics
	Statistics record.Chunked `json:"statistics"`
}

// Reported is a SpaceDescriptor as it lies in the store, with the report of the training, and with a
// copy of the descriptor of the collection, for a repair that finds that one lost.
type Reported struct {
	SpaceDescriptor
	Report     json.RawMessage    `json:"report,omitempty"`     // a fit.Report, see ReadReport
	Collection *record.Descriptor `json:"collection,omitempty"` // as of the last write of this record
}

// Now is the time as it is stored: in UTC, in milliseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// New returns revision 1 of the space of a model, or with m nil the space of a codes-only
// collection. modalities has the position in the collection of each modality of the model
// (Descriptor.Match).
func New(d SpaceDescriptor, m *model.Model, modalities []int) *Space {
	s := &Space{SpaceDescriptor: d, Revision: 1, Trained: m, Learned: m, Positions: modalities}
	if m != nil {
		s.Encoders.New = s.newEncoder
	}
	return s
}

// HasStatistics reports whether the space has statistics: sums of the lessons of its rows, which updates
// continue. It has none if items bring their codes, or if the model was learned without labels: then no row
// teaches, and there is one revision.
func (s *Space) HasStatistics() bool { return s.Trained != nil && !s.Trained.LabelFree() }

// Revised returns another revision of the space, whose model is m. It shares all but the
// projections.
func (s *Space) Revised(revision uint32, m *model.Model) *Space {
	r := &Space{
		SpaceDescriptor: s.SpaceDescriptor, Revision: revision,
		Trained: s.Trained, Learned: m, Positions: s.Positions,
	}
	r.Encoders.New = r.newEncoder
	return r
}

// newEncoder makes what Encoders hold.
func (s *Space) newEncoder() any {
	return &Encoder{
		Encoder: s.Learned.NewEncoder(), modalities: s.Positions,
		fused: make([]float64, s.Bits), total: make([]float64, s.Bits),
	}
}

// Read reads revision revision of space id of a collection, with its model. Everything is
// checked against the descriptor c: bits, modalities. A space that is missing or does
// not fit is an ErrCorrupt, as the counters of the collection name it. It costs as much as
// decoding one or two models.
func Read(r pebble.Reader, c *record.Descriptor, id, revision uint32) (*Space, error) {
	value, closer, err := r.Get(codec.NumberKey(codec.KindSpace, c.ID, id))
	if err != nil {
		return nil, fault.ReadError(err, "descriptor of space %d", id)
	}
	var d SpaceDescriptor
	err = json.Unmarshal(value, &d)
	closer.Close()
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
			return nil, fault.Corrupt(fmt.Errorf("%d bits, %d chunks of a model", d.Bits, d.Model.Chunks),
				"descriptor of space %d", id)
		}
		return New(d, nil, nil), nil
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
	if err != nil {
		return nil, fault.Corrupt(err, "model of space %d", id)
	}
	s := New(d, m, modalities)
	if revision == 1 {
		return s, nil
	}
	if m, err = ReadRevision(r, c.ID, s, revision); err != nil {
		return nil, err
	}
	return s.Revised(revision, m), nil
}

// Keys tells where the store has the codes of the space, and the projections of items, which order the items
// of one code.
func (s *Space) Keys(collection uint32) record.CodeKeys {
	return record.CodeKeys{Collection: collection, Space: s.ID, Bits: s.Bits}
}

// ProjectionBytes returns the length of a stored projection, 0 where the space
// has none.
func (s *Space) ProjectionBytes() int {
	if s.Learned == nil {
		return 0
	}
	return codec.ProjectionBytes(s.Bits)
}

// ReadReport reads the report of the training of a space, in JSON as it was stored; nil where
// there is none. Read leaves it out, as it may be long.
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
