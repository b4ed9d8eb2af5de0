package verify

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// The catalogue is the root: it tells which collections exist, and so which keys may exist. strangers finds
// all other keys from the other end: it seeks through all keys, one seek for each group, and asks whether any
// record has claimed the group.

// A knownCollection tells strangers which keys with the number of a collection belong to an existing part.
type knownCollection struct {
	name string // for findings
	// by number: whether it may have projections; nil: unknown, so no space is a stranger
	spaces map[uint32]bool
}

// database checks the records of the whole database: which exist, and their lengths. A database that never
// had a collection needs only the UUID.
func (v *verifier) database() {
	v.at("database")
	about := report.Finding{Record: "database"}
	seen := map[byte]bool{}
	complete := v.walkPrefix([]byte{codec.KindDatabase}, about, func(key, value []byte) {
		seen[key[1]] = true
		bad := func(what string, want int) {
			if len(value) != want {
				v.found(report.Finding{Record: what, Problem: fmt.Sprintf("%d bytes, not %d", len(value),
					want)}, key)
			}
		}
		switch key[1] {
		case codec.RecordSequence:
			bad("commit sequence", 8)
		case codec.RecordNextID:
			bad("number of the next collection", 4)
		case codec.RecordUUID:
			bad("UUID", record.UUIDBytes)
		default:
			v.found(report.Finding{Record: "database", Problem: fmt.Sprintf("there is no record %d", key[1])},
				key)
		}
	})
	v.marks()
	// Whether there is any key of another kind than those above, and of another than marks.
	any, err := v.first([]byte{codec.KindName})
	used := any != nil || err != nil
	collections := used && (err != nil || any[0] < codec.KindMark)
	if used && !collections {
		any, err = v.first([]byte{codec.KindMark + 1})
		collections = any != nil || err != nil
	}
	needed := map[byte]bool{codec.RecordUUID: true, codec.RecordSequence: used,
		codec.RecordNextID: collections}
	for _, r := range []struct {
		kind byte
		name string
	}{
		{codec.RecordSequence, "commit sequence"},
		{codec.RecordNextID, "number of the next collection"}, {codec.RecordUUID, "UUID"},
	} {
		if complete && !seen[r.kind] && needed[r.kind] {
			v.found(report.Finding{Record: r.name, Problem: "missing"}, codec.DatabaseKey(r.kind))
		}
	}
}

// marks checks the form of the marks of programs; their contents are the programs' own.
func (v *verifier) marks() {
	about := report.Finding{Record: "marks"}
	v.walkPrefix([]byte{codec.KindMark}, about, func(key, value []byte) {
		m, err := record.StoredMark(key, value)
		if err != nil {
			v.found(report.Finding{Record: fmt.Sprintf("mark %q", record.Shortened(m.Name)),
				Problem: fault.Problem(err)}, key)
		}
	})
}

// catalogue checks names and descriptors, which lead to each other. It returns the readable descriptors by
// ascending number. The contents of a collection without a readable descriptor are not checked.
func (v *verifier) catalogue() []*record.Descriptor {
	found := func(name, what string, key []byte, format string, args ...any) {
		v.found(report.Finding{Collection: name, Record: what, Problem: fmt.Sprintf(format, args...)}, key)
	}
	v.at("names of collections")
	ids := map[string]uint32{} // by name
	v.walkPrefix([]byte{codec.KindName}, report.Finding{Record: "names of collections"},
		func(key, value []byte) {
			name := string(key[1:])
			if len(value) != 4 {
				found(name, "name of a collection", key, "%d bytes, not 4", len(value))
				v.lose(key)
				return
			}
			ids[name] = binary.BigEndian.Uint32(value)
		})
	all := map[uint32]*record.Descriptor{}
	v.walkPrefix([]byte{codec.KindCollection}, report.Finding{Record: "descriptors of collections"},
		func(key, value []byte) {
			id := codec.LastNumber(key)
			number := fmt.Sprintf("number %d", id)
			d, err := record.DecodeDescriptor(value)
			if err == nil && d.ID != id {
				err = fmt.Errorf("it is of number %d", d.ID)
			}
			if err != nil {
				found(number, "descriptor", key, "%s: what is in the collection is not looked at",
					fault.Problem(err))
				v.lose(key)
				v.known[id] = &knownCollection{name: number} // its keys are no strangers
				return
			}
			all[id] = d
			if of, named := ids[d.Name]; named && of != id {
				found(d.Name, "descriptor", key, "it is of collection %d, the name leads to %d", id, of)
			} else if name := codec.NameKey(d.Name); !named && !v.lost(name) {
				found(d.Name, "name of the collection", name, "missing")
			}
		})
	// The other way round: each name leads to a descriptor of that name.
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id := ids[name]
		key := codec.CollectionKey(codec.KindCollection, id)
		if d := all[id]; (d == nil || d.Name != name) && !v.lost(key) {
			found(name, "name of the collection", codec.NameKey(name),
				"it leads to collection %d, which has no descriptor of that name", id)
		}
	}
	next := uint32(math.MaxUint32) // database has reported that it is missing or unreadable
	if b, err := record.Get(v.snap, codec.DatabaseKey(codec.RecordNextID)); err == nil && len(b) == 4 {
		next = binary.BigEndian.Uint32(b)
	}
	for id, d := range all {
		if id == 0 || id >= next {
			found(d.Name, "descriptor", codec.CollectionKey(codec.KindCollection, id),
				"number %d, the number of the next collection is %d", id, next)
		}
	}
	return slices.SortedFunc(maps.Values(all),
		func(a, b *record.Descriptor) int { return cmp.Compare(a.ID, b.ID) })
}

// strangers looks for keys of unknown kinds, and of collections and spaces that do not exist. It seeks from
// one group of keys to the next, and reads one key of each. All other checks have run before, and filled
// known.
func (v *verifier) strangers() {
	v.at("other keys")
	from := []byte{0}
	for from != nil && v.err == nil {
		// Find the next key that can be read. skip reports what no walk has reported.
		var key []byte
		stop := report.Finding{Record: "keys"}
		for key == nil && from != nil && v.err == nil {
			var err error
			if key, err = v.first(from); err != nil {
				from = v.skip(0, 1, from, nil, stop, err)
			} else if key == nil {
				return
			}
		}
		if from == nil || v.err != nil {
			return
		}
		from = v.stranger(key)
	}
}

// first returns the first key that is from or greater, nil if there is none. It fails also if
// the key is there and its value cannot be read.
func (v *verifier) first(from []byte) (key []byte, err error) {
	it, err := v.snap.NewIter(iterFrom(from))
	if err != nil {
		return nil, err
	}
	if it.First() {
		key = slices.Clone(it.Key())
		_, err = it.ValueAndErr()
	} else {
		err = it.Error()
	}
	_ = it.Close()
	return key, err
}

// stranger checks that the first key of a group belongs to an existing part. It returns where the next group
// begins; nil: there is none. A group is all keys of a kind, a collection or a space, depending on how
// much of the key is known.
func (v *verifier) stranger(key []byte) (next []byte) {
	found := func(f report.Finding, format string, args ...any) {
		f.Problem = fmt.Sprintf(format, args...)
		v.found(f, key)
	}
	kind := key[0]
	scope := record.KindOf(kind).Scope
	length := scope.KeyBytes()
	switch {
	// Nothing more of this kind is read: there may be very many.
	case scope == 0:
		found(report.Finding{Record: "key"}, "of unknown kind %02x; others of that kind are not looked at",
			kind)
		return codec.PrefixEnd([]byte{kind})
	case scope == record.OfDatabase:
		return []byte{kind + 1} // database and catalogue have looked at all of them
	case len(key) < length:
		found(report.Finding{Record: "key"}, "%d bytes, keys of kind %02x are longer", len(key), kind)
		return record.KeyAfter(key)
	}
	id := binary.BigEndian.Uint32(key[1:])
	c := v.known[id]
	if c == nil {
		found(report.Finding{Collection: fmt.Sprintf("number %d", id), Record: "keys"},
			"there is no such collection; its keys of kind %02x are not looked at", kind)
		return codec.PrefixEnd(key[:5])
	}
	if scope == record.OfCollection || c.spaces == nil {
		return codec.PrefixEnd(key[:5])
	}
	space := binary.BigEndian.Uint32(key[5:])
	switch projections, known := c.spaces[space]; {
	case !known:
		found(report.Finding{Collection: c.name, Space: report.Space(space), Record: "keys"},
			"there is no such space; its keys of kind %02x are not looked at", kind)
	case kind == codec.KindProjection && !projections:
		found(report.Finding{Collection: c.name, Space: report.Space(space), Record: "keys"},
			"the space has no projections; its keys of kind %02x are not looked at", kind)
	}
	return codec.PrefixEnd(key[:length])
}

// The other checks read records through the store, and see what a search would see. Damage where
// nothing is read today would be met by a compaction tomorrow, so all blocks are checked here.

// tables checks the checksums of all blocks of the store's tables. So it covers blocks that reading all
// records does not reach: replaced values, filters and indexes. It reads a table that several virtual tables
// share once for each of them. Compactions go on meanwhile.
func (v *verifier) tables(fsys vfs.FS, dir string, kv *pebble.DB) {
	v.at("tables")
	levels, err := kv.SSTables()
	if err != nil {
		v.found(report.Finding{Record: "tables", Problem: "they cannot be listed: " + fault.Problem(err)},
			nil)
		return
	}
	options := store.PebbleOptions(&store.Config{FS: fsys}, &store.Log{}, false) // only for MakeReaderOptions
	options.EnsureDefaults()
	for _, level := range levels {
		for _, table := range level {
			number := uint64(table.FileNum)
			if table.Virtual {
				// The table is a part of the file of another one.
				number = uint64(table.BackingSSTNum)
			}
			if v.err == nil {
				v.err = v.ctx.Err()
			}
			if v.err != nil {
				return
			}
			name := fmt.Sprintf("%06d.sst", number)
			err := v.table(fsys, fsys.PathJoin(store.Path(fsys, dir), name), options.MakeReaderOptions())
			if errors.Is(err, fs.ErrPermission) { // that is no damage
				v.err = fault.Annotate(err, "verify")
				return
			}
			// A table that is gone has been compacted meanwhile. If it were missing, the store
			// would not have opened.
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				record := "table " + name
				v.found(report.Finding{Record: record, Problem: strings.TrimPrefix(fault.Problem(err),
					record+": ")}, nil)
			}
		}
	}
}

// table checks the blocks of one table, by its file and not through the store's cache.
func (v *verifier) table(fsys vfs.FS, path string, options sstable.ReaderOptions) (err error) {
	r, err := store.OpenTable(v.ctx, fsys, path, options)
	if err != nil {
		return err
	}
	return errors.Join(r.ValidateBlockChecksums(), r.Close())
}

// The side file stands beside the store. It must not promise more commits than the store has.

// beside compares the side file, in dir, with the store. side and err are the results of reading the side
// file before the snapshot was taken.
func (v *verifier) beside(fsys vfs.FS, dir string, side store.Commits, err error) {
	i, bad := record.ReadIdentity(v.snap, dir)
	if bad != nil {
		return // database has said so
	}
	found := func(format string, args ...any) {
		v.found(report.Finding{Record: store.SideFile, Problem: fmt.Sprintf(format, args...)}, nil)
	}
	// Commits that came after the side file was read are no finding: the store may be ahead of it,
	// but not behind.
	told, _ := store.CompareCommits(&i, side, err, spaces.Now())
	if told.Problem != "" {
		found("%s; whether commits are missing is not known", told.Problem)
	}
	for _, l := range told.Losses {
		found("%s", l)
	}
}
