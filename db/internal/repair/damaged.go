package repair

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// The names of files do not tell which of them count: a table that a compaction has replaced may still exist.
// Only the manifest tells. So Pebble opens the store, over a file system that shows it as sound as possible,
// only to list the files.

// A damagedStore lists the tables and logs of a store that may not open any more. Each is read
// on its own, so that damage to one hides nothing of the others. Nothing is written to the
// store.
type damagedStore struct {
	fs     vfs.FS
	dir    string                // the folder of the store
	reader sstable.ReaderOptions // how its tables are read

	tables []damagedTable
	logs   wal.Logs // in the order of their numbers
	listed bool     // the manifest names the tables and logs; else these are all existing ones
}

// A damagedTable is a table of a damaged store, or a part of one. Key ranges contain their
// first bound and not their last.
type damagedTable struct {
	number     uint64                 // of its file
	path       string                 // of its file
	transforms sstable.IterTransforms // the sequence number of an ingested table, which its file lacks
	lo, hi     []byte                 // the range that counts; nil: no bound
	from, to   []byte                 // the range of its keys by the manifest; nil: not known
}

// name names the table in findings.
func (t *damagedTable) name() string { return fmt.Sprintf("table %06d.sst", t.number) }

// openDamaged finds out which tables and logs of a store count: the ones that its manifest names. If the
// manifest cannot be read, all existing ones count, and why is the reason. err is an error of reading the
// folder, or of ctx.
func openDamaged(ctx context.Context, disk *store.Config,
	dir string) (s *damagedStore, why error, err error) {
	s = &damagedStore{fs: disk.FS, dir: dir}
	// the options that say how tables are encoded
	po := store.PebbleOptions(disk, store.NewLog(disk.Signals), false)
	po.EnsureDefaults()
	s.reader = po.MakeReaderOptions()
	all, err := wal.Scan(wal.Dir{FS: disk.FS, Dirname: dir})
	if err != nil {
		return nil, nil, fault.Annotate(err, "read %s", dir)
	}
	// From the best way to the worst: Pebble opens the whole store; Pebble opens it without its logs, one of
	// which may be damaged, and the logs that it asked for before count; all files count (below).
	for try := range 2 { // a failed read may succeed the second time
		if why = s.list(disk, all, false); why == nil {
			return s, nil, nil
		}
		if s.logs == nil { // Pebble has failed before the logs, so it has not told which count
			if try == 0 {
				continue
			}
			s.logs = all
		}
		// A log that is damaged keeps a store from opening, too.
		if err := s.list(disk, all, true); err == nil {
			return s, nil, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	// Only the manifest tells which tables compactions have replaced. Without it, these count, too.
	names, err := disk.FS.List(dir)
	if err != nil {
		return nil, nil, fault.Annotate(err, "read %s", dir)
	}
	s.tables, s.logs = nil, all
	for _, name := range names {
		if digits, is := strings.CutSuffix(name, ".sst"); is {
			if number, err := strconv.ParseUint(digits, 10, 64); err == nil {
				s.tables = append(s.tables, damagedTable{number: number, path: disk.FS.PathJoin(dir, name)})
			}
		}
	}
	return s, why, nil
}

// list lets Pebble open the store for reading, and takes the tables from it. The logs that
// count are the first that Pebble has opened and all later ones. With bare Pebble sees no logs,
// as a damaged log keeps a store from opening, too; s.logs then stays as the call before it,
// without bare, has set it.
//
// Pebble lists no tables if the file of one of them is missing, and its error has the number of
// that file. So it is shown the file, and asked again: TestRepairNamesAMissingTable of db.
func (s *damagedStore) list(disk *store.Config, all wal.Logs, bare bool) error {
	fsys := &listingFS{FS: store.ReadFS{FS: disk.FS}, bare: bare}
	for {
		err := s.listShown(disk, all, fsys)
		var missing []string
		if err != nil {
			missing = missingTable.FindStringSubmatch(err.Error())
		}
		if missing == nil || slices.Contains(fsys.missing, missing[1]+".sst") {
			return err
		}
		fsys.missing = append(fsys.missing, missing[1]+".sst")
	}
}

// missingTable finds the number of a table in Pebble's error about its file.
var missingTable = regexp.MustCompile(`file (\d+) \(type sstable\) unknown`)

// listShown is list over the file system fsys.
func (s *damagedStore) listShown(disk *store.Config, all wal.Logs, fsys *listingFS) error {
	return work.Safely(func() error {
		log := store.NewLog(disk.Signals)
		po := store.PebbleOptions(disk, log, false)
		po.FS, po.ReadOnly, po.DisableConsistencyCheck = fsys, true, true
		kv, err := store.OpenPebble(s.dir, po, log)
		if first := fsys.first(); !fsys.bare && first >= 0 { // also if opening has failed
			s.logs = slices.DeleteFunc(slices.Clone(all),
				func(l wal.LogicalLog) bool { return int64(l.Num) < first })
		}
		if err != nil {
			return err
		}
		defer kv.Close()
		levels, err := kv.SSTables()
		if err != nil {
			return err
		}
		s.tables = nil
		for _, level := range levels {
			for _, x := range level {
				t := damagedTable{number: uint64(x.FileNum)}
				t.from, t.to = slices.Clone(x.Smallest.UserKey), slices.Clone(x.Largest.UserKey)
				if !x.Largest.IsExclusiveSentinel() {
					t.to = record.KeyAfter(t.to)
				}
				if x.Virtual { // it is a part of the file of another table
					t.number, t.lo, t.hi = uint64(x.BackingSSTNum), t.from, t.to
				}
				if x.SmallestSeqNum == x.LargestSeqNum { // as in an ingested table
					t.transforms.SyntheticSeqNum = sstable.SyntheticSeqNum(x.SmallestSeqNum)
				}
				t.path = s.fs.PathJoin(s.dir, fmt.Sprintf("%06d.sst", t.number))
				s.tables = append(s.tables, t)
			}
		}
		s.listed = true
		return nil
	})
}

// listingFS shows a store so that Pebble can open it if its manifest can be read. It adds the marker files of
// Pebble and missing tables, and hides the file of options, which is not needed. It records the opened logs.
// Safe for concurrent use, which Pebble requires.
type listingFS struct {
	vfs.FS
	bare    bool     // hide the logs
	missing []string // tables to list, though there are no such files

	mu   sync.Mutex
	logs []int64 // the numbers of the logs that were opened; guarded by mu
}

// Names of Pebble's files. A marker ends with the name, or the number, that it marks.
const (
	manifestPrefix = "MANIFEST-"
	manifestMarker = "marker.manifest."
	formatMarker   = "marker.format-version."
)

// List lists the files to show to Pebble. Without a sound marker it marks the newest manifest.
func (f *listingFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	newest, marked, format := "", false, false
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "OPTIONS-"), f.bare && strings.HasSuffix(name, ".log"):
			continue
		case strings.HasPrefix(name, manifestMarker):
			// A marker of a manifest that is gone hides the newest one that is there.
			of := name[strings.LastIndexByte(name, '.')+1:]
			if !slices.Contains(names, of) {
				continue
			}
			marked = true
		case strings.HasPrefix(name, formatMarker):
			format = true
		case strings.HasPrefix(name, manifestPrefix):
			// Numbers have six digits or more, so a longer name has a larger number.
			if len(name) > len(newest) || len(name) == len(newest) && name > newest {
				newest = name
			}
		}
		out = append(out, name)
	}
	out = append(out, f.missing...)
	if !marked && newest != "" {
		out = append(out, manifestMarker+"000001."+newest)
	}
	if !format {
		out = append(out, fmt.Sprintf("%s000001.%03d", formatMarker, uint64(store.PebbleFormat)))
	}
	return out, nil
}

// Open opens a file for reading, and records the number of a log.
func (f *listingFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if digits, is := strings.CutSuffix(f.FS.PathBase(name), ".log"); is {
		if number, err := strconv.ParseInt(digits, 10, 64); err == nil {
			f.mu.Lock()
			f.logs = append(f.logs, number)
			f.mu.Unlock()
		}
	}
	return f.FS.Open(name, opts...)
}

// first returns the lowest number of the logs that were opened, -1 if there was none.
func (f *listingFS) first() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.logs) == 0 {
		return -1
	}
	return slices.Min(f.logs)
}

// A keyMender makes the two records of a key agree: from the row to the key, and from the key to the row.
// Either can be made from the other. It holds a hash of 8 bytes an item, not the keys.
type keyMender struct {
	*collectionMender
	seed      maphash.Seed           // of hash
	keys      record.ByBlock[uint64] // by row: the hash of its key; 0: it has none
	keyed     *roaring.Bitmap        // the items that have a key
	confirmed *roaring.Bitmap        // the items of keyed whose key leads back to them
	lostKeys  map[uint32]string      // by row: the keys of rows that have no item
}

// hash returns a hash of a key, never 0.
func (k *keyMender) hash(key []byte) uint64 { return maphash.Bytes(k.seed, key) | 1 }

// mendKeys makes sure that each item has one key and each key one item, and reports the items
// that are lost.
func (c *collectionMender) mendKeys() error {
	c.stage("keys")
	k := &keyMender{
		collectionMender: c, seed: maphash.MakeSeed(),
		keyed: roaring.New(), confirmed: roaring.New(), lostKeys: map[uint32]string{},
	}
	// The order: keys by row; rows by key, which confirm them or stand in for lost ones; the
	// missing way back; names for the items that are left without a key. Each step reads what the
	// one before has flushed.
	for _, step := range []func() error{k.readKeys, k.readRows, k.leadBack, k.nameRest} {
		if err := step(); err != nil {
			return err
		}
		if err := c.flush(); err != nil {
			return err
		}
	}
	return nil
}

// readKeys reads the records from rows to keys, and removes the ones of rows without an item.
func (k *keyMender) readKeys() error {
	return k.blocks(codec.CollectionKey(codec.KindRowKeys, k.ID),
		func(key []byte, first uint32, b codec.Block) error {
			var gone []byte
			for i := range b.Len() {
				row, entry := first+uint32(b.Offset(i)), b.Entry(i)
				if len(entry) == 0 || record.CheckKey(string(entry)) != nil {
					gone = append(gone, b.Offset(i))
					continue
				}
				if !k.items.Contains(row) {
					gone = append(gone, b.Offset(i))
					// The only name of an item that may be lost: readRows decides whether it is.
					k.lostKeys[row] = string(entry)
					continue
				}
				*k.keys.Put(row) = k.hash(entry)
				k.keyed.Add(row)
				k.countKey(entry)
			}
			return k.clearBlock(key, gone...)
		})
}

// giveKey stores a key as the key of a row. The record from the key to the row is up to the caller.
func (k *keyMender) giveKey(row uint32, key []byte) error {
	*k.keys.Put(row) = k.hash(key)
	k.keyed.Add(row)
	k.countKey(key)
	e := codec.NewBlockEdit(-1)
	e.Set(byte(row), key)
	return k.merge(codec.NumberKey(codec.KindRowKeys, k.ID, row/codec.BlockRows), e.Append(nil, false))
}

// readRows reads the records from keys to rows. An item without a key gets its key from there. Then it
// reports the lost items: rows without an item that are in the live set, or in two other records. items.go
// has the rules.
func (k *keyMender) readRows() error {
	lost, others := map[uint32]string{}, map[uint32]string{}
	err := record.ForEach(k.store, codec.CollectionKey(codec.KindKey, k.ID), func(key, value []byte) error {
		text := key[5:]
		if len(value) != 4 || record.CheckKey(string(text)) != nil {
			return k.delete(key)
		}
		row := binary.BigEndian.Uint32(value)
		switch stored := k.keys.Get(row); {
		case !k.items.Contains(row): // the item is lost if a second record tells of it, or may have
			if other, both := k.lostKeys[row]; both && other == string(text) || k.damaged.Contains(row) ||
				k.mayLive(row) {
				lost[row] = string(text)
			}
			return k.delete(key)
		case stored != nil && *stored == k.hash(text): // both records agree
			k.confirmed.Add(row)
			return nil
		case !k.keyed.Contains(row): // the record from the row to the key is lost
			k.confirmed.Add(row)
			return k.giveKey(row, text)
		}
		others[row] = string(text) // the row has another key
		return k.delete(key)
	})
	if err != nil {
		return err
	}
	// If the key of the row leads back to it, nothing is lost with the other key.
	for _, row := range slices.Sorted(maps.Keys(others)) {
		if !k.confirmed.Contains(row) {
			k.badItem(row, "the key %q leads to it, and it has another, which it keeps", others[row])
		}
	}
	// A key of a row alone may be the rest of a deletion; with a second record it is a loss.
	for row, key := range k.lostKeys {
		if k.live.Contains(row) || k.damaged.Contains(row) ||
			k.lostAny(codec.NumberKey(codec.KindItem, k.ID, row)) {
			lost[row] = key
		}
	}
	for it := k.live.Iterator(); it.HasNext(); {
		row := it.Next()
		if _, known := lost[row]; !known && !k.items.Contains(row) &&
			(!k.counted || uint64(row) < k.counters.NextRow) {
			lost[row] = ""
		}
	}
	for it := k.damaged.Iterator(); it.HasNext(); {
		if row := it.Next(); lost[row] == "" && row < record.MaxRows-1 {
			lost[row] = ""
		}
	}
	for _, row := range slices.Sorted(maps.Keys(lost)) {
		name := "its key is not known"
		if lost[row] != "" {
			name = fmt.Sprintf("its key is %q", lost[row])
		}
		k.badItem(row, "lost: its record is missing or damaged; %s", name)
	}
	return nil
}

// leadBack writes the missing records from keys to rows. If several items have one key, the item
// that the key leads to keeps it, else the one with the highest row, which is the latest. The
// others lose their key.
func (k *keyMender) leadBack() error {
	type keyedRow struct {
		hash uint64
		row  uint32
	}
	var rest []keyedRow // the items to which no key leads
	for it := k.keyed.Iterator(); it.HasNext(); {
		if row := it.Next(); !k.confirmed.Contains(row) {
			rest = append(rest, keyedRow{*k.keys.Get(row), row})
		}
	}
	slices.SortFunc(rest, func(a, b keyedRow) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash),
			cmp.Compare(b.row, a.row))
	})
	twice := map[uint32]bool{} // rows whose key a higher row has, too
	for i, x := range rest {
		if i > 0 && rest[i-1].hash == x.hash {
			twice[x.row] = true
		}
	}
	slices.SortFunc(rest, func(a, b keyedRow) int { return cmp.Compare(a.row, b.row) })
	for _, x := range rest {
		var key []byte
		block := codec.NumberKey(codec.KindRowKeys, k.ID, x.row/codec.BlockRows)
		err := record.BlockEntry(k.store, block, x.row, func(entry []byte) error {
			key = codec.ItemKey(k.ID, string(entry))
			return nil
		})
		if err != nil {
			return err
		}
		// The record is still there if the key leads to another item, whose key it is then.
		of, err := record.Get(k.store, key)
		if err != nil {
			return err
		}
		if twice[x.row] || len(of) == 4 && k.confirmed.Contains(binary.BigEndian.Uint32(of)) {
			k.badItem(x.row, "its key %q is that of another item", key[5:])
			k.keyed.Remove(x.row)
			// nameRest may drop the item. An entry of a row without an item is damage.
			if err := k.clearBlock(block, byte(x.row)); err != nil {
				return err
			}
			continue
		}
		k.confirmed.Add(x.row)
		if err := k.set(key, binary.BigEndian.AppendUint32(nil, x.row)); err != nil {
			return err
		}
	}
	return nil
}

// nameRest gives the items without a key one of the form "lost+found/ROW". An item that is in no
// live set either, where neither record can be lost, is the rest of a deletion, and is dropped.
func (k *keyMender) nameRest() error {
	for it := roaring.AndNot(k.items, k.keyed).Iterator(); it.HasNext(); {
		row := it.Next()
		if !k.mayLive(row) && !k.lostAny(codec.NumberKey(codec.KindRowKeys, k.ID, row/codec.BlockRows)) {
			k.badItem(row, "it has no key and is in no set: it is taken for the rest of one that was deleted, and left out")
			if err := k.dropItem(row); err != nil {
				return err
			}
			continue
		}
		name := fmt.Sprintf("lost+found/%d", row)
		// A user may have given another item this very key.
		for {
			of, err := record.Get(k.store, codec.ItemKey(k.ID, name))
			if err != nil {
				return err
			}
			if of == nil {
				break
			}
			name += "'"
		}
		k.badItem(row, "its key is lost: it gets the key %q", name)
		if err := k.giveKey(row, []byte(name)); err != nil {
			return err
		}
		if err := k.set(codec.ItemKey(k.ID, name), binary.BigEndian.AppendUint32(nil, row)); err != nil {
			return err
		}
	}
	return nil
}
