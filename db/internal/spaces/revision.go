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

// A RevisionDescriptor has the facts about a revision of a space besides its projections. It is stored in
// JSON, in chunk 0 of the revision. Views and the committer share it; nothing changes it.
type RevisionDescriptor struct {
	report.RevisionInfo // without Bytes and Checksum, which follow from Model and its chunks
	// of the projections; zero for revision 1, which uses the model of the space
	Model record.Chunked `json:"model,omitzero"`
	// retractions before this number are out of the projections
	Retracted uint64 `json:"outbox"`
	// of a space without statistics: items in rows from here on have come since the training
	Rows uint64 `json:"rows,omitempty"`

	// Expected is of revision 1 alone, by name of the modality: what the projections miss of what the labels
	// of the training's own items teach, if each is left out. Drift is above it. Nil: not known.
	Expected map[string]float64 `json:"expected,omitempty"`
}

// Restored is the RevisionInfo.Teacher of a revision that no item has taught, because it has the projections
// of an earlier one.
const Restored = "restored"

// Imported is the RevisionInfo.Teacher of a revision that was made elsewhere.
const Imported = "imported"

// ReadRevision reads the model of a revision of a space: the trained model with other projections. s may be
// any revision of the space. A revision that is not stored is an ErrCorrupt: take the number from
// ReadRevisions.
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

// Earlier returns the space as it was in an earlier revision that is kept. It reads the projections, unless
// that revision is the one that was asked for last. Goroutines may call it at once.
func (s *Space) Earlier(r pebble.Reader, collection, revision uint32) (*Space, error) {
	if e := s.earlier.Load(); e != nil && e.Revision == revision {
		return e, nil
	}
	m, err := ReadRevision(r, collection, s, revision)
	if err != nil {
		return nil, err
	}
	e := s.Revised(revision, m)
	s.earlier.Store(e)
	return e, nil
}

// ReadRevisionDescriptor reads the descriptor of a revision, which has to be there.
func ReadRevisionDescriptor(r pebble.Reader, collection, space,
	revision uint32) (*RevisionDescriptor, error) {
	b, err := record.Get(r, codec.RevisionKey(collection, space, revision, 0))
	if err == nil && b == nil {
		err = fault.ErrMissing
	}
	if err != nil {
		return nil, fault.ReadError(err, "descriptor of revision %d of space %d", revision, space)
	}
	d := &RevisionDescriptor{}
	if err = json.Unmarshal(b, d); err == nil && d.Revision != revision {
		err = fmt.Errorf("it is of revision %d", d.Revision)
	}
	if err != nil {
		return nil, fault.Corrupt(err, "descriptor of revision %d of space %d", revision, space)
	}
	return d, nil
}

// ReadRevisions reads the descriptors of all stored revisions of a space, ascending, without
// their projections, which it seeks past.
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

// Kept is the number of revisions of a space to keep, the present one included, besides the first one.
// state.Tx.WriteRevision deletes the others; verification expects these.
const Kept = 8
