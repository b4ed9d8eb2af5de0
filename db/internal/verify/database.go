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

// databaseRecords are the records of the whole database, by the byte behind their kind.
var databaseRecords = [...]struct {
	name  string
	bytes int
}{
	codec.RecordUUID:     {"UUID", record.UUIDBytes},
	codec.RecordSequence: {"commit sequence", 8},
	codec.RecordNextID:   {"number of the next collection", 4},
}

// database checks the records of the whole database, and the form of the marks of programs, whose contents
// are the programs' own. A database that never had a collection needs only the UUID.
func (v *verifier) database() {
	v.at("database")
	seen := map[byte]bool{}
	complete := v.walk([]byte{codec.KindDatabase}, func(key, value []byte) {
		kind := key[1]
		seen[kind] = true
		switch {
		case int(kind) >= len(databaseRecords):
			v.bad(key, 0, "there is no record %d", kind)
		case len(value) != databaseRecords[kind].bytes:
			v.bad(key, 0, "%d bytes, not %d", len(value), databaseRecords[kind].bytes)
		}
	})
	v.walk([]byte{codec.KindMark}, func(key, value []byte) {
		if _, err := record.StoredMark(key, value); err != nil {
			v.bad(key, 0, "%s", fault.Problem(err))
		}
	})
	// Whether there is any key of another kind than those above, and of another than marks.
	some := func(from, to byte) bool {
		key, err := v.first([]byte{from}, []byte{to})
		return key != nil || err != nil
	}
	collections := some(codec.KindName, codec.KindMark) || some(codec.KindMark+1, 0xff)
	needed := [...]bool{codec.RecordUUID: true, codec.RecordNextID: collections,
		codec.RecordSequence: collections || some(codec.KindMark, codec.KindMark+1)}
	for kind, needed := range needed {
		if complete && needed && !seen[byte(kind)] {
			v.bad(codec.DatabaseKey(byte(kind)), 0, "missing")
		}
	}
}

// catalogue checks names and descriptors, which lead to each other. It returns the readable descriptors by
// ascending number. The contents of a collection without a readable descriptor are not checked.
func (v *verifier) catalogue() []*record.Descriptor {
	v.at("names of collections")
	ids := map[string]uint32{} // by name
	v.walk([]byte{codec.KindName}, func(key, value []byte) {
		if len(value) != 4 {
			v.undecoded(key, 0, fmt.Errorf("%d bytes, not 4", len(value)))
			return
		}
		ids[string(key[1:])] = binary.BigEndian.Uint32(value)
	})
	next := uint32(math.MaxUint32) // database has reported that it is missing or unreadable
	if b, err := record.Get(v.snap, codec.DatabaseKey(codec.RecordNextID)); err == nil && len(b) == 4 {
		next = binary.BigEndian.Uint32(b)
	}
	all := map[uint32]*record.Descriptor{}
	v.walk([]byte{codec.KindCollection}, func(key, value []byte) {
		id := codec.LastNumber(key)
		d, err := record.DecodeDescriptor(value)
		if err == nil && d.ID != id {
			err = fmt.Errorf("it is of number %d", d.ID)
		}
		if err != nil {
			v.undecoded(key, 0, fmt.Errorf("%w: what is in the collection is not looked at", err))
			v.known[id] = &knownCollection{name: fmt.Sprintf("number %d", id)} // its keys are no strangers
			return
		}
		all[id], v.known[id] = d, &knownCollection{name: d.Name, d: d}
		if of, named := ids[d.Name]; named && of != id {
			v.bad(key, 0, "it is of collection %d, the name leads to %d", id, of)
		} else if name := codec.NameKey(d.Name); !named && !v.lost(name) {
			v.bad(name, 0, "missing")
		}
		if id == 0 || id >= next {
			v.bad(key, 0, "number %d, the number of the next collection is %d", id, next)
		}
	})
	// The other way round: each name leads to a descriptor of that name.
	for _, name := range slices.Sorted(maps.Keys(ids)) {
		id := ids[name]
		if d := all[id]; (d == nil || d.Name != name) &&
			!v.lost(codec.CollectionKey(codec.KindCollection, id)) {
			v.bad(codec.NameKey(name), 0, "it leads to collection %d, which has no descriptor of that name",
				id)
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
	for from := []byte{0}; from != nil && v.err == nil; {
		key, err := v.first(from, nil)
		switch {
		case err != nil:
			from = v.skip(0, 1, from, nil, err) // reports what no walk has reported
		case key == nil:
			return
		default:
			from = v.stranger(key)
		}
	}
}

// stranger checks that the first key of a group belongs to an existing part. It returns where the next group
// begins; nil: there is none. A group is all keys of a kind, a collection or a space, depending on how
// much of the key is known.
func (v *verifier) stranger(key []byte) (next []byte) {
	kind := key[0]
	scope := record.KindOf(kind).Scope
	found := func(f report.Finding, format string, args ...any) {
		f.Key, f.Problem = fmt.Sprintf("%x", key), fmt.Sprintf(format, args...)
		v.found(f)
	}
	switch {
	// Nothing more of this kind is read: there may be very many.
	case scope == 0:
		found(report.Finding{Record: "key"}, "of unknown kind %02x; others of that kind are not looked at",
			kind)
		return codec.PrefixEnd([]byte{kind})
	case scope == record.OfDatabase:
		return []byte{kind + 1} // database and catalogue have looked at all of them
	case len(key) < scope.KeyBytes():
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
	space := report.Space(binary.BigEndian.Uint32(key[5:]))
	switch {
	case !c.spaces[uint32(space)]:
		found(report.Finding{Collection: c.name, Space: space, Record: "keys"},
			"there is no such space; its keys of kind %02x are not looked at", kind)
	case kind == codec.KindProjection && c.d.CodesOnly():
		found(report.Finding{Collection: c.name, Space: space, Record: "keys"},
			"the space has no projections; its keys of kind %02x are not looked at", kind)
	}
	return codec.PrefixEnd(key[:scope.KeyBytes()])
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
		v.found(report.Finding{Record: "tables", Problem: "they cannot be listed: " + fault.Problem(err)})
		return
	}
	options := store.PebbleOptions(&store.Config{FS: fsys}, &store.Log{}, false) // only for MakeReaderOptions
	options.EnsureDefaults()
	for _, table := range slices.Concat(levels...) {
		number := uint64(table.FileNum)
		if table.Virtual {
			// The table is a part of the file of another one.
			number = uint64(table.BackingSSTNum)
		}
		if v.err = cmp.Or(v.err, v.ctx.Err()); v.err != nil {
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
			v.found(report.Finding{Record: record,
				Problem: strings.TrimPrefix(fault.Problem(err), record+": ")})
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

// beside compares the side file, which must not promise more commits than the store has. side and err are the
// results of reading the side file before the snapshot was taken.
func (v *verifier) beside(dir string, side store.Commits, err error) {
	i, bad := record.ReadIdentity(v.snap, dir)
	if bad != nil {
		return // database has said so
	}
	found := func(problem string) { v.found(report.Finding{Record: store.SideFile, Problem: problem}) }
	// Commits that came after the side file was read are no finding: the store may be ahead of it,
	// but not behind.
	told, _ := store.CompareCommits(&i, side, err, spaces.Now())
	if told.Problem != "" {
		found(told.Problem + "; whether commits are missing is not known")
	}
	for _, l := range told.Losses {
		found(l.String())
	}
}
