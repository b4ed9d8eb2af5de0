package repair

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/wal"

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
