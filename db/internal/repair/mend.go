package repair

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/verify"
	"github.com/fddhdb/fddhdb/db/report"
)

// A mender copies the primary records of a damaged store into a new one, and makes them agree.
// Its steps: open, salvage, mend, close, furnish.
type mender struct {
	*repairer
	engine *store.Engine // of the new store
	store  *pebble.DB    // the new store, open from open to close
	batch  *pebble.Batch // changes to the new store, indexed, which flush applies

	// Evidence that salvage has found.
	uuid        [record.UUIDBytes]byte     // the UUID of the database; zero: not known
	lost        record.KeyRanges           // ranges in which something could not be read
	newest      uint64                     // the largest sequence number of the old storage engine
	collections map[uint32]*seenCollection // by number: all that a key names

	plans []plan // what build has to make, by collection
}

// A seenCollection is the evidence of a collection in the keys of the damaged store.
type seenCollection struct {
	name    string          // that leads to it; "": not known
	spaces  map[uint32]bool // the numbers of the spaces that any record names
	indexes map[uint32]bool // the numbers of the indexes of vectors that have centres
	items   bool            // there is a record of an item
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
	m.batch = m.store.NewIndexedBatch()
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
	if err := store.MakeCommits(m.disk.FS, dir, store.Commits{UUID: m.identity.UUID,
		Sequence: m.identity.Sequence}); err != nil {
		return err
	}
	return store.WriteMarker(m.disk.FS, dir)
}

// salvage copies the primary records that s can read into the new store, as tables in one step.
// ErrNotDatabase: nothing in the store or beside it shows that it is one of ours.
func (m *mender) salvage(s *salvage) error {
	m.at(0, "reading tables")
	// Keys come in ascending order and go straight into tables. The new store is empty until Take
	// has returned.
	t := m.engine.Tables(0)
	ours := m.marked
	task := t.Task(func(stream *store.Stream) error {
		return s.each(func(key, value []byte) error {
			if m.err != nil {
				return m.err
			}
			if s.records%salvageLooks == 0 {
				m.at(s.records, "reading tables")
			}
			if err := codec.CheckKey(key); err != nil {
				m.bad(nil, key, 0, "%s: it is left out", fault.Problem(err))
				return nil
			}
			// Note the evidence in the record, whether it is copied or not.
			switch kind := key[0]; {
			case kind == codec.KindDatabase:
				if key[1] == codec.RecordUUID && len(value) == record.UUIDBytes {
					ours, m.uuid = true, [record.UUIDBytes]byte(value)
				}
			case kind == codec.KindMark:
				if _, err := record.StoredMark(key, value); err != nil {
					m.bad(nil, key, 0, "%s: it is left out", fault.Problem(err))
					return nil
				}
			case kind == codec.KindName: // the descriptors have the names
				if len(value) == 4 {
					m.of(binary.BigEndian.Uint32(value)).name = string(key[1:])
				}
				return nil
			default:
				ours = ours || kind == codec.KindCollection
				if wanted, err := m.see(key, value); !wanted || err != nil {
					return err
				}
			}
			if len(value) > 0 && codec.EmptySum(key, value) {
				return nil // nothing is left of it after merges
			}
			return stream.Set(key, value)
		})
	})
	if err := m.engine.KeepUp(false); err != nil {
		return err
	}
	if err := t.Take(m.ctx, task); err != nil {
		return fault.Annotate(m.engine.FullDisk(err), "bulk load")
	}
	if !ours {
		return fmt.Errorf("%w: %s: its store is not ours, or nothing of it can be read", fault.ErrNotDatabase,
			m.dir)
	}
	// The findings of salvage have been reported; its ranges remain evidence.
	m.lost, m.newest = s.lost, s.newest
	return m.err
}

// of returns the evidence of a collection.
func (m *mender) of(id uint32) *seenCollection {
	c := m.collections[id]
	if c == nil {
		c = &seenCollection{spaces: map[uint32]bool{}, indexes: map[uint32]bool{}}
		m.collections[id] = c
	}
	return c
}

// see notes the collection and space that a record is evidence of, and reports whether the record is wanted.
// Derived records are not. Codes are, until a descriptor has shown that a model gives them: the key of the
// descriptor comes before all others of its collection.
func (m *mender) see(key, value []byte) (wanted bool, err error) {
	c := m.of(binary.BigEndian.Uint32(key[1:]))
	of := record.KindOf(key[0])
	if of.Scope == record.OfSpace {
		c.spaces[binary.BigEndian.Uint32(key[5:])] = true
	}
	switch key[0] {
	case codec.KindCollection:
		if d, err := record.DecodeDescriptor(value); err == nil {
			c.learned = !d.CodesOnly()
			return true, refuseIndexOnly(d)
		}
	case codec.KindItem:
		c.items = true
	case codec.KindCentre:
		c.indexes[binary.BigEndian.Uint32(key[5:])] = true
	case codec.KindRows:
		// Live rows and rows of modalities are evidence of lost items and features (readSets). The sets of
		// labels repeat the labels of items.
		return key[5] != codec.SetLabel, nil
	}
	return of.Origin == record.Primary || of.Origin == record.Coded && !c.learned, nil
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

// set, delete and deleteAll change records, which reads of the batch see at once.
func (m *mender) set(key, value []byte) error { return m.written(m.batch.Set(key, value, nil)) }
func (m *mender) delete(key []byte) error     { return m.written(m.batch.Delete(key, nil)) }
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
		m.batch = m.store.NewIndexedBatch()
	}
	return err
}

// setEntry sets, or with a nil entry clears, the entry of a row in a block of entries of different lengths.
func (m *mender) setEntry(key []byte, row uint32, entry []byte) error {
	e := codec.NewBlockEdit(-1)
	if e.Clear(byte(row)); entry != nil {
		e.Set(byte(row), entry)
	}
	return m.written(m.batch.Merge(key, e.Append(nil, false), nil))
}

// each calls f with all records under a prefix, without the changes that wait in the batch.
func (m *mender) each(prefix []byte, f func(key, value []byte) error) error {
	if err := m.flush(); err != nil {
		return err
	}
	return record.ForEach(m.store, prefix, f)
}

// entries calls f with each entry of the blocks under a prefix. It deletes blocks that cannot be decoded.
func (m *mender) entries(prefix []byte, f func(key []byte, n uint32, entry []byte) error) error {
	return m.each(prefix, func(key, value []byte) error {
		b, err := codec.DecodeBlock(value)
		block := codec.LastNumber(key)
		if err != nil || block > (1<<32-1)/codec.BlockRows {
			return m.delete(key)
		}
		for i := range b.Len() {
			if err := f(key, block*codec.BlockRows+uint32(b.Offset(i)), b.Entry(i)); err != nil {
				return err
			}
		}
		return nil
	})
}

// bad reports a finding about the record under key; n is the row or number that is meant, where it has many.
func (m *mender) bad(d *record.Descriptor, key []byte, n uint32, format string, args ...any) {
	f := report.Finding{Record: verify.Name(d, key, n), Key: fmt.Sprintf("%x", key),
		Problem: fmt.Sprintf(format, args...)}
	if d != nil {
		f.Collection = d.Name
		if record.KindOf(key[0]).Scope == record.OfSpace {
			f.Space = report.Space(binary.BigEndian.Uint32(key[5:]))
		}
	}
	m.found(f)
}

// mend makes the copied records sound: first the records of the database, then each collection.
func (m *mender) mend() error {
	m.at(0, "collections")
	all, err := m.catalogue()
	if err != nil {
		return err
	}
	for _, d := range all {
		if err := m.collection(d); err != nil {
			return err
		}
	}
	return m.flush()
}

// catalogue mends the descriptors of collections and the records of the database, and writes the names again.
// It returns the descriptors by ascending number, and deletes what belongs to no collection. Of two
// collections of one name, as when one that was dropped has come back, the later one is renamed.
func (m *mender) catalogue() ([]*record.Descriptor, error) {
	next := uint32(1)
	taken := map[string]bool{}
	var all []*record.Descriptor
	for _, id := range slices.Sorted(maps.Keys(m.collections)) {
		d, err := m.descriptor(id)
		if err != nil {
			return nil, err
		}
		if d == nil {
			for _, kind := range record.Kinds(record.OfCollection) {
				if err := m.deleteAll(codec.CollectionKey(kind, id)); err != nil {
					return nil, err
				}
			}
			continue
		}
		if id < record.MaxRows-1 {
			next = max(next, id+1)
		}
		if name := d.Name; taken[name] {
			for i := id; taken[d.Name]; i++ {
				// 200 bytes leave room for the number; the cut may go through a letter.
				d.Name = fmt.Sprintf("%s-%d", strings.ToValidUTF8(name[:min(len(name), 200)], ""), i)
			}
			m.bad(d, codec.CollectionKey(codec.KindCollection, id), 0,
				"another collection is named %q, too: this one is renamed", name)
		}
		taken[d.Name] = true
		all = append(all, d)
		b, err := d.Encode()
		if err == nil {
			err = m.set(codec.CollectionKey(codec.KindCollection, id), b)
		}
		if err == nil {
			err = m.set(codec.NameKey(d.Name), binary.BigEndian.AppendUint32(nil, id))
		}
		if err != nil {
			return nil, err
		}
	}
	return all, m.database(next)
}

// database writes the records of the database: UUID, sequence, and the number of the next
// collection, which is at least next. It sets m.identity, and reports missing commits. What the store has
// lost the side file may have.
func (m *mender) database(next uint32) error {
	// No number is used again, even for a dropped collection.
	if b, err := record.Get(m.store, codec.DatabaseKey(codec.RecordNextID)); err != nil {
		return err
	} else if len(b) == 4 {
		next = max(next, binary.BigEndian.Uint32(b))
	}
	sequence, err := record.Get(m.store, codec.DatabaseKey(codec.RecordSequence))
	if err != nil {
		return err
	}
	i := record.Identity{UUID: m.uuid}
	side, sideErr := store.ReadCommits(m.disk.FS, m.dir)
	if i == (record.Identity{}) && sideErr == nil {
		i.UUID = side.UUID
	}
	if i == (record.Identity{}) {
		i.UUID = record.NewUUID()
		m.bad(nil, codec.DatabaseKey(codec.RecordUUID), 0, "lost: the database has got a new one")
	}
	if len(sequence) == 8 {
		i.Sequence = binary.BigEndian.Uint64(sequence)
	} else {
		// Each commit takes one sequence number of the storage engine or more, so newest is
		// no less than the commits since the store was made. A store that began as a copy
		// has had earlier commits: the side file counts them, too.
		if i.Sequence = m.newest; sideErr == nil && side.UUID == i.UUID {
			i.Sequence = max(i.Sequence, side.Sequence)
		}
		m.bad(nil, codec.DatabaseKey(codec.RecordSequence), 0,
			"lost: it goes on from %d, no less than there have been", i.Sequence)
	}
	if _, err := m.missing(i, "of %d to %d, the latest, some or all is missing"); err != nil {
		return err
	}
	m.identity = i
	err = m.deleteAll([]byte{codec.KindDatabase})
	for kind, value := range map[byte][]byte{
		codec.RecordSequence: binary.BigEndian.AppendUint64(nil, i.Sequence),
		codec.RecordNextID:   binary.BigEndian.AppendUint32(nil, next),
		codec.RecordUUID:     i.UUID[:],
	} {
		if err == nil {
			err = m.set(codec.DatabaseKey(kind), value)
		}
	}
	return err
}

// descriptor returns the descriptor of a collection, without which no item can be decoded. If it is lost,
// the copy that a space has of it takes its place: of several the one with the most modalities and fields, as
// these are only ever added. Without a copy it returns nil: the collection is lost, which is reported if any
// item shows that it was not dropped.
func (m *mender) descriptor(id uint32) (*record.Descriptor, error) {
	key := codec.CollectionKey(codec.KindCollection, id)
	b, err := record.Get(m.store, key)
	if err != nil {
		return nil, err
	}
	d, err := record.DecodeDescriptor(b)
	if err == nil && d.ID == id {
		return d, nil
	}
	var latest *record.Descriptor
	size := func(d *record.Descriptor) int { return len(d.Modalities) + len(d.Fields) }
	err = record.ForEach(m.store, codec.CollectionKey(codec.KindSpace, id), func(_, value []byte) error {
		// Decode that field by itself: the rest of the space's descriptor may make no sense.
		var space struct {
			Collection json.RawMessage `json:"collection"`
		}
		if json.Unmarshal(value, &space) != nil {
			return nil
		}
		d, err := record.DecodeDescriptor(space.Collection)
		if err == nil && d.ID == id && (latest == nil || size(d) >= size(latest)) {
			latest = d
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case latest != nil:
		m.bad(latest, key, 0, "lost: that which stands beside a space takes its place")
		return latest, refuseIndexOnly(latest)
	case b != nil || m.of(id).items || m.of(id).name != "":
		m.bad(&record.Descriptor{Name: cmp.Or(m.of(id).name, fmt.Sprintf("number %d", id))}, key, 0,
			"lost, and nothing else tells what items of the collection hold: all of it is lost")
	}
	return nil, nil
}
