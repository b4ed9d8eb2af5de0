package repair

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
)

// A mender copies the primary records of a damaged store into a new one, and makes them agree.
// Its steps: open, salvage, mend, close, furnish.
type mender struct {
	*repairer
	engine *store.Engine // of the new store
	store  *pebble.DB    // the new store, open from open to close
	batch  *pebble.Batch // changes to the new store, which flush applies

	// Evidence that salvage has found.
	uuid [record.UUIDBytes]byte // the UUID of the database; zero: not known
	// ranges in which something could not be read, here or by a later step
	lost        record.KeyRanges
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
	if err := store.MakeCommits(m.disk.FS, dir, store.Commits{UUID: m.identity.UUID,
		Sequence: m.identity.Sequence}); err != nil {
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
				m.found(about(key, report.Finding{Record: "key",
					Problem: fault.Problem(err) + ": it is left out"}))
				return nil
			}
			// Note the evidence in the record, whether it is copied or not.
			switch kind := key[0]; {
			case kind == codec.KindDatabase:
				if key[1] == codec.RecordUUID && len(value) == record.UUIDBytes {
					ours, m.uuid = true, [record.UUIDBytes]byte(value)
				}
			case kind == codec.KindMark:
				if mark, err := record.StoredMark(key, value); err != nil {
					m.found(about(key, report.Finding{Record: fmt.Sprintf("mark %q",
						record.Shortened(mark.Name)), Problem: fault.Problem(err) + ": it is left out"}))
					return nil
				}
			case record.KindOf(kind).Scope > record.OfDatabase: // catalogue looks at names
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
	if err := m.take(t, work); err != nil {
		return err
	}
	if !ours {
		return fmt.Errorf("%w: %s: its store is not ours, or nothing of it can be read", fault.ErrNotDatabase,
			m.dir)
	}
	// The findings of salvage have been reported; its ranges remain evidence.
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
		// Live rows and rows of modalities are evidence of lost items and features (readSets). The sets of
		// labels repeat the labels of items.
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

// Four records tell that a row has an item: the record of the item, the key of the row, the row
// of the key, and the live set. A deletion removes all four in one commit. A repair may find any
// of them alone, as others are damaged, or as an older version has come back:
//
//	the record of the item, and any other       kept; a missing key comes from the other way
//	                                            round, or is made up
//	the record of the item alone                left out, as the rest of a deletion
//	no record of the item, but the live set     reported as lost
//	no record of the item, but both of a key    reported as lost
//	one of the two records of a key alone       removed, as the rest of a deletion
//
// A record that cannot be decoded, and a range that could not be read, count as records that may
// have been there. So a repair rather reports too much than passes over a loss. The code is in
// keyMender: readRows reports, nameRest leaves out.

// A collectionMender mends one collection. Each step reads one kind of primary records, deletes impossible
// ones, and leaves its findings in the fields for the later steps.
type collectionMender struct {
	*mender
	*record.Descriptor // of the collection; sound

	seen     *seenCollection // evidence of it that salvage has found
	counters codec.Counters  // as stored, then as mended; conclude writes them
	counted  bool            // the counters could be read
	nextKey  uint64          // 1 + the largest automatic key seen, if not counted

	labels   int               // the number of labels; each gets a name
	labelled map[uint32]bool   // the ids that items carry or that have a name
	items    *roaring.Bitmap   // the rows of items that are kept
	damaged  *roaring.Bitmap   // the rows whose record cannot be decoded
	live     *roaring.Bitmap   // the live rows as stored: a row that is not in items is a lost item
	had      []*roaring.Bitmap // by modality: its rows as stored, and the rows of damaged features
	presence []*roaring.Bitmap // by modality: the rows whose features can be decoded
	given    *givenCodes       // of a codes-only collection; else nil
	plan     plan              // for build
}

// collection mends all records of a collection except its codes, and adds a plan. The order of its steps
// matters: keys and given codes may drop items, features belong to items, and lessons to features.
func (m *mender) collection(d *record.Descriptor) error {
	c := &collectionMender{
		mender: m, Descriptor: d, seen: m.collections[d.ID], labelled: map[uint32]bool{},
		items: roaring.New(), damaged: roaring.New(), live: roaring.New(),
	}
	for range d.Modalities {
		c.presence, c.had = append(c.presence, roaring.New()), append(c.had, roaring.New())
	}
	for _, step := range []func() error{
		c.readCounters, c.readSets, c.readItems, c.mendLabels, c.mendKeys, c.readGiven, c.mendFeatures,
		c.mendIndexes, c.mendSpaces, c.conclude,
	} {
		// Each step reads what the steps before have written.
		if err := errors.Join(m.flush(), m.ctx.Err()); err != nil {
			return err
		}
		if err := step(); err != nil {
			return err
		}
	}
	return m.flush()
}

// stage reports progress in the collection.
func (c *collectionMender) stage(what string) { c.at(0, "collection %s: %s", c.Name, what) }

// bad reports a finding about a record of the collection, which what names.
func (c *collectionMender) bad(what string, key []byte, format string, args ...any) {
	c.found(about(key, report.Finding{Collection: c.Name, Record: what,
		Problem: fmt.Sprintf(format, args...)}))
}

// badItem reports a finding about the item in a row.
func (c *collectionMender) badItem(row uint32, format string, args ...any) {
	c.bad(fmt.Sprintf("item in row %d", row), codec.NumberKey(codec.KindItem, c.ID, row), format, args...)
}

// countersKey is the key of the counters of the collection.
func (c *collectionMender) countersKey() []byte { return codec.CollectionKey(codec.KindCounters, c.ID) }

// readCounters sets counters and counted, and reports lost counters.
func (c *collectionMender) readCounters() error {
	b, err := record.Get(c.store, c.countersKey())
	if err != nil {
		return err
	}
	c.counters, err = codec.DecodeCounters(b)
	if c.counted = err == nil; !c.counted {
		c.counters = codec.Counters{}
		c.bad("counters", c.countersKey(),
			"lost: they are made of what there is; which space was the active one is not known")
	}
	return nil
}

// readSets reads the live rows and the rows of each modality, as evidence of lost items and
// features. It adds sets that cannot be read to the lost ranges.
func (c *collectionMender) readSets() error {
	return record.ForEach(c.store, codec.CollectionKey(codec.KindRows, c.ID), func(key, value []byte) error {
		set, id, container := codec.RowsKeyParts(key)
		var into *roaring.Bitmap
		switch {
		case set == codec.SetLive && id == 0:
			into = c.live
		case set == codec.SetModality && int(id) < len(c.had):
			into = c.had[id]
		default:
			return nil
		}
		// It may have had any row of its container: mayLive asks for the lost range.
		if record.AddRows(into, key, value, container) != nil {
			c.lost = c.lost.Add(key, record.KeyAfter(key))
		}
		return nil
	})
}

// mayLive reports whether the live set has a row, or is lost where it could have it.
func (c *collectionMender) mayLive(row uint32) bool {
	return c.live.Contains(row) || c.lostAny(codec.RowsKey(c.ID, codec.SetLive, 0, uint16(row>>16)))
}

// readItems sets items and damaged, and the labels of items. It deletes damaged records.
func (c *collectionMender) readItems() error {
	c.stage("items")
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err == nil {
			// Values and labels have to suit the descriptor, too: row sets are made of them.
			err = c.CheckValues(rec.Fields)
		}
		if err == nil {
			_, err = c.Terms(rec.Labels, rec.Fields)
		}
		// No finding yet: readRows reports the row with its key, if that is known.
		if err != nil || row >= record.MaxRows-1 {
			c.damaged.Add(row)
			return c.delete(key)
		}
		c.items.Add(row)
		for _, id := range rec.Labels {
			c.labelled[id] = true
		}
		return nil
	})
}

// dropItem deletes the record of an item. Its features go in mendFeatures; the caller deletes
// its keys.
func (c *collectionMender) dropItem(row uint32) error {
	c.items.Remove(row)
	return c.delete(codec.NumberKey(codec.KindItem, c.ID, row))
}

// mendLabels gives each label a name of its own, with ids from 0 on without gaps. It invents lost
// names ("lost+found/ID"), and reports them. An id far beyond the number of labels is damage, and
// is taken out of the items.
func (c *collectionMender) mendLabels() error {
	names := map[uint32]string{}
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindLabel, c.ID), func(key, value []byte) error {
		id, name := codec.LastNumber(key), string(value)
		if record.CheckLabel(name) == nil || name == record.NoLabel(id) {
			names[id] = name
			c.labelled[id] = true
		}
		return c.delete(key)
	})
	if err != nil {
		return err
	}
	// Accept an id up to twice its rank + 1,024: at least about half of the ids below are known.
	for i, id := range slices.Sorted(maps.Keys(c.labelled)) {
		if int64(id) <= 2*int64(i)+1024 { // ids are given without gaps: a larger one is damaged
			c.labels = int(id) + 1
		}
	}
	taken := map[string]bool{}
	for id := range uint32(c.labels) {
		// If two ids have one name, the lower one keeps it.
		key, name := codec.NumberKey(codec.KindLabel, c.ID, id), names[id]
		if name == "" || taken[name] {
			for name = fmt.Sprintf("lost+found/%d", id); taken[name]; {
				name += "'"
			}
			c.bad(fmt.Sprintf("label %d", id), key, "its name is lost: it is named %q", name)
		}
		taken[name] = true
		if err := c.set(key, []byte(name)); err != nil {
			return err
		}
	}
	for id := range c.labelled {
		if int64(id) >= int64(c.labels) {
			return c.dropLabels()
		}
	}
	return nil
}

// dropLabels takes the damaged label ids, c.labels and above, out of the items.
func (c *collectionMender) dropLabels() error {
	return record.ForEach(c.store, codec.CollectionKey(codec.KindItem, c.ID), func(key, value []byte) error {
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return err
		}
		known := slices.DeleteFunc(slices.Clone(rec.Labels),
			func(id uint32) bool { return int64(id) >= int64(c.labels) })
		if len(known) == len(rec.Labels) {
			return nil
		}
		c.badItem(codec.LastNumber(key), "it has labels of which there is no name: they are left out")
		rec.Labels = known
		b, err := rec.Append(nil)
		if err != nil {
			return err
		}
		return c.set(key, b)
	})
}

// mendFeatures sets presence, deletes features that cannot be decoded or have no item, and reports lost ones:
// their item is kept without them.
func (c *collectionMender) mendFeatures() error {
	c.stage("features")
	buffers := make([]model.Vector, len(c.Modalities))
	err := record.ForEach(c.store, codec.CollectionKey(codec.KindFeatures, c.ID),
		func(key, value []byte) error {
			row, t := codec.FeatureKeyParts(key)
			if int(t) >= len(c.Modalities) || !c.items.Contains(row) {
				return c.delete(key)
			}
			if err := c.Modalities[t].DecodeVector(&buffers[t], value); err != nil {
				c.had[t].Add(row)
				return c.delete(key)
			}
			c.presence[t].Add(row)
			return nil
		})
	for t, rows := range c.had {
		// Left are the rows that had features, by their set or by a damaged record, and have an item
		// but no features now.
		rows.AndNot(c.presence[t])
		rows.And(c.items)
		for it := rows.Iterator(); it.HasNext(); {
			row := it.Next()
			c.bad(fmt.Sprintf("features %q of row %d", c.Modalities[t].Name, row),
				codec.FeatureKey(c.ID, row, uint16(t)), "lost: the item is kept without them")
		}
	}
	return err
}

// conclude completes the counters and writes them, deletes the row sets, which build makes
// again, and adds the plan of the collection.
func (c *collectionMender) conclude() error {
	n := &c.counters
	// No row of an item that was seen is used again, even if the counters are lost or old.
	n.NextRow = max(n.NextRow, c.seen.rows)
	if !c.items.IsEmpty() {
		n.NextRow = max(n.NextRow, uint64(c.items.Maximum())+1)
	}
	n.NextRow = min(n.NextRow, record.MaxRows)
	n.NextKey = max(n.NextKey, c.nextKey)
	// Adopt counts the items again.
	n.Items = 0
	if err := c.deleteAll(codec.CollectionKey(codec.KindRows, c.ID)); err != nil {
		return err
	}
	c.plan.of, c.plan.presence, c.plan.given = c.Descriptor, c.presence, c.given
	c.plans = append(c.plans, c.plan)
	return c.set(c.countersKey(), n.Append(nil))
}

// countKey takes a decimal number for an automatic key, if the counters are lost: nextKey must
// be above it.
func (c *collectionMender) countKey(key []byte) {
	if !c.counted && len(key) > 0 && len(key) <= 20 && key[0] >= '0' && key[0] <= '9' {
		if n, err := strconv.ParseUint(string(key), 10, 64); err == nil && n+1 > 0 {
			c.nextKey = max(c.nextKey, n+1)
		}
	}
}

// In a codes-only collection nothing else tells the code of an item: there is no model that could
// make it again. Three kinds of records say which row has which code, and repeat each other.

// givenCodes are the codes that the items of a codes-only collection have brought. They are
// primary, but their numbers and postings are derived. So readGiven takes them into memory,
// mendGiven deletes their records, and storeGiven stores them again as new codes.
type givenCodes struct {
	rows  []uint32    // ascending
	codes codec.Codes // the code of each of rows
}

// readGiven reads the codes of a codes-only collection. The record of a row says which code
// number it has; if that is lost, the rows beside the code do (KindCodes, KindCodeRows). An item
// whose code is lost is lost, and reported. It holds all codes in memory.
func (c *collectionMender) readGiven() error {
	if !c.CodesOnly() {
		return nil
	}
	c.stage("codes")
	k := record.CodeKeys{Collection: c.ID, Space: 1, Bits: c.Bits}
	// The codes come first, as the two other passes name them by number. Then each pass replaces
	// what the one before said of a row, from the least to the most reliable.
	var of record.ByBlock[uint32] // by row: 1 + the index of its code in numbers; 0: none
	var numbers []uint32          // the numbers of all, ascending
	all, code := codec.NewCodes(c.Bits, 0), codec.NewCode(c.Bits)
	// The codes by their numbers. Beside a code that one row has stands that row.
	err := c.blocks(k.Prefix(codec.KindCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			row, err := codec.DecodeCodeEntry(code, c.Bits, b.Entry(i))
			if err != nil {
				continue
			}
			numbers = append(numbers, first+uint32(b.Offset(i)))
			all.Append(code)
			if row != codec.ManyRows && c.items.Contains(row) {
				*of.Put(row) = uint32(len(numbers))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The rows of the codes that many rows have.
	err = record.ForEach(c.store, k.Prefix(codec.KindCodeRows), func(key, value []byte) error {
		number, container := codec.CodeRowsKeyParts(key)
		at, known := slices.BinarySearch(numbers, number)
		l, err := codec.DecodeLayer(value)
		if err != nil || !known {
			return nil
		}
		for it := l.Added.Iterator(); it.HasNext(); {
			if row := uint32(container)<<16 | it.Next(); c.items.Contains(row) {
				*of.Put(row) = uint32(at) + 1
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	// The codes of rows, which overrule the rows of codes.
	err = c.blocks(k.Prefix(codec.KindRowCodes), func(_ []byte, first uint32, b codec.Block) error {
		for i := range b.Len() {
			row := first + uint32(b.Offset(i))
			rc, err := codec.DecodeRowCode(b.Entry(i))
			if err != nil || !c.items.Contains(row) {
				continue
			}
			at, known := slices.BinarySearch(numbers, rc.Code)
			if !known {
				continue
			}
			if also := of.Get(row); also != nil && *also > 0 && *also != uint32(at)+1 {
				c.badItem(row, "it has code number %d, and number %d is to be that of the row: the first one counts", rc.Code, numbers[*also-1])
			}
			*of.Put(row) = uint32(at) + 1
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.given = &givenCodes{codes: codec.NewCodes(c.Bits, int(c.items.GetCardinality()))}
	// loseGiven removes rows from items, so iterate over a copy.
	for it := c.items.Clone().Iterator(); it.HasNext(); {
		row := it.Next()
		if at := of.Get(row); at != nil && *at > 0 {
			c.given.rows = append(c.given.rows, row)
			c.given.codes.Append(all.At(int(*at) - 1))
		} else if err := c.loseGiven(row); err != nil {
			return err
		}
	}
	return nil
}

// loseGiven drops an item with a lost code, and its keys, and reports it.
func (c *collectionMender) loseGiven(row uint32) error {
	block := codec.NumberKey(codec.KindRowKeys, c.ID, row/codec.BlockRows)
	key := ""
	err := record.BlockEntry(c.store, block, row, func(entry []byte) error {
		key = string(entry)
		return nil
	})
	if err != nil {
		return err
	}
	c.badItem(row, "lost: its code is; its key is %q", key)
	if err := c.dropItem(row); err != nil {
		return err
	}
	if err := c.delete(codec.ItemKey(c.ID, key)); err != nil {
		return err
	}
	return c.clearBlock(block, byte(row))
}

// mendGiven writes the one space that a codes-only collection has, as active and without codes.
func (c *collectionMender) mendGiven() error {
	d := spaces.SpaceDescriptor{ID: 1, Bits: c.Bits, Created: spaces.Now()}
	// A descriptor that can be read keeps the date of the space.
	if sp, err := spaces.Read(c.store, c.Descriptor, 1, 1); err == nil {
		d = sp.SpaceDescriptor
	}
	// The codes go with the space: storeGiven stores them again, from memory.
	if err := c.dropSpaces(nil); err != nil {
		return err
	}
	c.counters.ActiveSpace, c.counters.PreviousSpace = 1, 0
	c.counters.NextSpace = max(c.counters.NextSpace, 2)
	c.counters.Spaces = []codec.SpaceCounters{{ID: 1, Revision: 1}}
	return c.writeSpace(d, nil)
}
