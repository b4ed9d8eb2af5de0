package repair

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// A mender copies the primary records of a damaged store into a new one, and makes them agree.
// Its steps: open, salvage, mend, close, furnish.
type mender struct {
	*repairer
	engine *store.Engine // of the new store
	store  *pebble.DB    // the new store, open from open to close
	batch  *pebble.Batch // changes to the new store, which flush applies

	// What salvage has seen.
	uuid        [record.UUIDBytes]byte     // the UUID of the database; zero: not known
	lost        record.KeyRanges           // ranges in which something could not be read, here or by a later step
	newest      uint64                     // the largest sequence number of the old storage engine
	collections map[uint32]*seenCollection // by number: all that a key names

	plans []plan // what build has to make, by collection
}

// A seenCollection is the evidence of a collection in the keys of the damaged store.
type seenCollection struct {
	rows    uint64          // 1 + the highest row of an item or a vector
	spaces  map[uint32]bool // the numbers of the spaces that any record names
	learned bool            // its descriptor was read, and says that models give the codes
}

// open makes the folder of the new store, and opens the store, empty.
func (m *mender) open() error {
	fsys := m.disk.FS
	dir := m.path(store.RepairingName)
	if err := store.MakeDir(fsys, dir); err != nil {
		return err
	}
	m.engine = store.NewEngine(m.disk, dir)
	path := fsys.PathJoin(dir, store.StoreName)
	var err error
	if _, err = m.engine.Make(path); err != nil {
		return err
	}
	if m.store, err = store.Open(path, m.disk, m.engine.Log, false); err != nil {
		return err
	}
	m.engine.DB = m.store
	m.batch = m.store.NewBatch()
	return nil
}

// close closes the new store, which makes all of it durable. It may be called without open.
func (m *mender) close() error {
	if m.store == nil {
		return nil
	}
	return errors.Join(m.batch.Close(), m.store.Close(), m.engine.Log.Err())
}

// furnish makes the folder of the new store a database: it writes the side file and the marker.
func (m *mender) furnish() error {
	dir := m.path(store.RepairingName)
	if err := store.MakeCommits(m.disk.FS, dir, store.Commits{UUID: m.identity.UUID, Sequence: m.identity.Sequence}); err != nil {
		return err
	}
	return store.WriteMarker(m.disk.FS, dir)
}

// take runs a task that writes tables, and lets the new store take them over in one step.
func (m *mender) take(t *store.Tables, work work.Task) error {
	if err := m.engine.KeepUp(false); err != nil {
		return err
	}
	if err := t.Take(m.ctx, work); err != nil {
		return fault.Annotate(m.engine.FullDisk(err), "bulk load")
	}
	return nil
}

// salvage copies the primary records that s can read into the new store, as tables in one step.
// ErrNotDatabase: nothing in the store or beside it shows that it is one of ours.
func (m *mender) salvage(s *salvage) error {
	m.at(0, "reading tables")
	// Keys come in ascending order and go straight into tables. The new store is empty until take
	// has returned.
	t := m.engine.Tables(0)
	ours := m.marked
	work := t.Task(func(stream *store.Stream) error {
		return s.each(func(key, value []byte) error {
			if m.err != nil {
				return m.err
			}
			if s.records%salvageLooks == 0 {
				m.at(s.records, "reading tables")
			}
			if err := codec.CheckKey(key); err != nil {
				m.found(about(key, report.Finding{Record: "key", Problem: fault.Problem(err) + ": it is left out"}))
				return nil
			}
			// Note what the record is evidence of, whether it is copied or not.
			switch kind := key[0]; {
			case kind == codec.KindDatabase:
				if key[1] == codec.RecordUUID && len(value) == record.UUIDBytes {
					ours, m.uuid = true, [record.UUIDBytes]byte(value)
				}
			case kind == codec.KindMark:
				if mark, err := record.StoredMark(key, value); err != nil {
					m.found(about(key, report.Finding{Record: fmt.Sprintf("mark %q", record.Shortened(mark.Name)), Problem: fault.Problem(err) + ": it is left out"}))
					return nil
				}
			case record.KindOf(kind).Scope > record.OfDatabase: // catalogue looks at names
				ours = ours || kind == codec.KindCollection
				if wanted, err := m.see(key, value); !wanted || err != nil {
					return err
				}
			}
			if len(value) > 0 && codec.EmptySum(key, value) {
				return nil // merges have left nothing of it
			}
			return stream.Set(key, value)
		})
	})
	if err := m.take(t, work); err != nil {
		return err
	}
	if !ours {
		return fmt.Errorf("%w: %s: its store is not ours, or nothing of it can be read", fault.ErrNotDatabase, m.dir)
	}
	// The findings of salvage are told, and its ranges go on as evidence.
	m.lost, m.newest = s.lost, s.newest
	return m.err
}

// see notes the collection, space and row that a record is evidence of, and reports whether
// the record is wanted. Derived records are not. Codes are, until a descriptor has shown that a
// model gives them: the key of the descriptor comes before all others of its collection.
func (m *mender) see(key, value []byte) (wanted bool, err error) {
	id := binary.BigEndian.Uint32(key[1:])
	// CheckKey has passed, and the kind belongs to a collection: its number is there.
	c := m.collections[id]
	if c == nil {
		c = &seenCollection{spaces: map[uint32]bool{}}
		m.collections[id] = c
	}
	kind := key[0]
	of := record.KindOf(kind)
	if of.Scope >= record.OfSpace {
		c.spaces[binary.BigEndian.Uint32(key[5:])] = true
	}
	switch kind {
	case codec.KindCollection:
		if d, err := record.DecodeDescriptor(value); err == nil {
			c.learned = !d.CodesOnly()
			return true, refuseIndexOnly(d)
		}
	case codec.KindItem, codec.KindFeatures:
		// The row that a key leads to does not count: if it is damaged, it may be so large that no
		// row is left to give out.
		if row := binary.BigEndian.Uint32(key[5:]); row < record.MaxRows-1 { // else readItems removes it
			c.rows = max(c.rows, uint64(row)+1)
		}
	case codec.KindRows:
		// Live rows and rows of modalities are evidence of items and features that are lost
		// (readSets). The sets of labels repeat what items say.
		return key[5] != codec.SetLabel, nil
	}
	return of.Origin == record.Primary || of.Origin == record.Coded && !c.learned, nil
}

// lostAny reports whether a key with this prefix may be lost.
func (m *mender) lostAny(prefix []byte) bool {
	from, to := m.lost.Overlapping(prefix, codec.PrefixEnd(prefix))
	return from < to
}

// An indexOnlyError refuses the repair of an index-only copy, whose codes are primary and cannot
// be checked. It is an ErrCorrupt.
type indexOnlyError struct{ collection string } // the name of the collection

// refuseIndexOnly returns an indexOnlyError for an index-only collection.
func refuseIndexOnly(d *record.Descriptor) error {
	if d.IndexOnly {
		return &indexOnlyError{d.Name}
	}
	return nil
}

// Error says that a damaged index-only copy has to be made again from its source.
func (e *indexOnlyError) Error() string {
	return fmt.Sprintf("fddhdb: collection %q is an index-only copy, which is damaged: nothing in it tells what its codes are made of, so make it again from its source; nothing has been changed", e.collection)
}

// Advised tells the command that the text names the remedy, so that it adds none.
func (e *indexOnlyError) Advised() {}

// Is makes it an ErrCorrupt for errors.Is.
func (e *indexOnlyError) Is(target error) bool { return target == fault.ErrCorrupt }

// mendBytes is the size from which on the batch of changes is applied.
const mendBytes = 4 << 20

// written applies the batch if it has grown large. err is the error of that change.
func (m *mender) written(err error) error {
	if err == nil && m.batch.Len() > mendBytes {
		err = m.flush()
	}
	return err
}

// set, delete and merge add a change to the batch. Reads of the store do not see it before
// flush.
func (m *mender) set(key, value []byte) error { return m.written(m.batch.Set(key, value, nil)) }
func (m *mender) delete(key []byte) error     { return m.written(m.batch.Delete(key, nil)) }
func (m *mender) merge(key, value []byte) error {
	return m.written(m.batch.Merge(key, value, nil))
}

// deleteAll deletes all keys with a prefix.
func (m *mender) deleteAll(prefix []byte) error {
	return m.written(m.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil))
}

// flush applies the batch, without waiting for the disk: close makes everything durable. It
// returns the error of found, too, so that a step ends soon after that.
func (m *mender) flush() error {
	if err := errors.Join(m.err, m.ctx.Err()); err != nil {
		return err
	}
	// The new store is written to like any other: it has to keep up with flushes and compactions.
	err := m.engine.KeepUp(false)
	if err == nil {
		err = m.batch.Commit(pebble.NoSync)
	}
	if err == nil {
		err = m.engine.Log.Err()
	}
	if err == nil {
		err = m.batch.Close()
		m.batch = m.store.NewBatch()
	}
	return err
}

// clearBlock removes the entries at these offsets from a block of entries of different lengths.
func (m *mender) clearBlock(key []byte, offsets ...byte) error {
	if len(offsets) == 0 {
		return nil
	}
	e := codec.NewBlockEdit(-1)
	for _, o := range offsets {
		e.Clear(o)
	}
	return m.merge(key, e.Append(nil, false))
}

// blocks calls f with each block under a prefix, and with the first row or number of the block.
// It deletes the blocks that cannot be decoded, and adds their keys to m.lost.
func (m *mender) blocks(prefix []byte, f func(key []byte, first uint32, b codec.Block) error) error {
	return record.ForEach(m.store, prefix, func(key, value []byte) error {
		b, err := codec.DecodeBlock(value)
		n := codec.LastNumber(key)
		if err != nil || n > (1<<32-1)/codec.BlockRows {
			m.lost = m.lost.Add(key, record.KeyAfter(key))
			return m.delete(key)
		}
		return f(key, n*codec.BlockRows, b)
	})
}
