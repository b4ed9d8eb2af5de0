package spaces

import (
	"encoding/json"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// RevisionDescriptor is what is stored of a revision of a space besides its
// projections. It is immutable.
type RevisionDescriptor struct {
	Version             int            `json:"version"`
	report.RevisionInfo                // but Bytes and Checksum, which its chunks have
	Model               record.Chunked `json:"model,omitzero"` // zero of revision 1, whose model is that of the space
	Outbox              uint64         `json:"outbox"`         // departures before this number are out of the projections
}

// Restored stands in place of a teacher where a revision has the projections of an earlier one.
const Restored = "restored"

// ReadRevision reads the model of a revision of a space.
func ReadRevision(r pebble.Reader, collection uint32, s *Space, revision uint32) (*model.Model, error) {
	if revision == 1 {
		return s.Trained, nil
	}
	what := fmt.Sprintf("revision %d of space %d", revision, s.ID)
	d, err := ReadRevisionDescriptor(r, collection, s.ID, revision)
	if err != nil {
		return nil, err
	}
	b, err := record.ReadChunks(r, codec.RevisionPrefix(collection, s.ID, revision), 1, d.Model)
	if err != nil {
		return nil, fault.ReadError(err, "%s", what)
	}
	m, err := s.Trained.UnmarshalRevision(b)
	if err != nil {
		return nil, fault.Corrupt(err, "%s", what)
	}
	return m, nil
}

func ReadRevisionDescriptor(r pebble.Reader, collection, space, revision uint32) (*RevisionDescriptor, error) {
	b, err := record.Get(r, codec.RevisionKey(collection, space, revision, 0))
	if err == nil && b == nil {
		err = fault.ErrMissing
	}
	if err != nil {
		return nil, fault.ReadError(err, "descriptor of revision %d of space %d", revision, space)
	}
	d := &RevisionDescriptor{}
	if err = json.Unmarshal(b, d); err == nil {
		err = record.CheckDescriptorVersion(d.Version)
	}
	if err == nil && d.Revision != revision {
		err = fmt.Errorf("it is of revision %d", d.Revision)
	}
	if err != nil {
		return nil, fault.Corrupt(err, "descriptor of revision %d of space %d", revision, space)
	}
	if d.Drift != nil {
		for name, m := range d.Drift.Modalities {
			SetBalance(&m, m.Balance)
			d.Drift.Modalities[name] = m
		}
	}
	return d, nil
}

// SetBalance sets Balance, which may be nil, and the fields that follow from it.
func SetBalance(m *report.ModalityDrift, b *report.Balance) {
	if m.Balance = b; b != nil {
		m.BitBalance, m.ConstantBits, m.Sampled = b.BitBalance, b.ConstantBits, b.Sampled
	}
}

// ReadRevisions reads the descriptors of the revisions of a space, and not their
// projections.
func ReadRevisions(r pebble.Reader, collection, space uint32) (all []*RevisionDescriptor, err error) {
	prefix := codec.NumberKey(codec.KindRevision, collection, space)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "revisions of space %d", space)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "revisions of space %d", space)
		}
	}()
	for ok := it.First(); ok; {
		if err := codec.CheckKey(it.Key()); err != nil {
			return nil, fault.Corrupt(err, "key")
		}
		revision, _ := codec.RevisionKeyParts(it.Key())
		d, err := ReadRevisionDescriptor(r, collection, space, revision)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
		ok = it.SeekGE(codec.PrefixEnd(codec.RevisionPrefix(collection, space, revision)))
	}
	return all, nil
}

// Kept is how many revisions are kept besides the first one and those that are
// pinned, the present one included.
const Kept = 8
