package repair

import (
	"context"
	"fmt"
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

// A damagedStore is a store that is read file by file, as it may not open, or not be
// readable as one: its tables and logs each on its own, so that a part that is damaged
// hides nothing that stands elsewhere. Nothing is written to it.
type damagedStore struct {
	fs     vfs.FS
	dir    string
	reader sstable.ReaderOptions

	tables []damagedTable
	logs   wal.Logs
	listed bool // the manifest says which tables and logs those are
}

// A damagedTable is a table of a damaged store.
type damagedTable struct {
	number     uint64
	path       string
	transforms sstable.IterTransforms // the sequence number that an ingested table has got
	lo, hi     []byte                 // what counts of it is from lo up to and without hi; nil: everything
	from, to   []byte                 // its keys are from from up to and without to; nil: not known
}

func (t *damagedTable) name() string { return fmt.Sprintf("table %06d.sst", t.number) }

// openDamaged finds out which tables and logs a store has: those that its manifest
// names, or where that cannot be read all that are there. why says what is wrong then.
func openDamaged(ctx context.Context, disk *store.Config, dir string) (s *damagedStore, why error, err error) {
	s = &damagedStore{fs: disk.FS, dir: dir}
	po := store.PebbleOptions(disk, store.NewLog(disk.Signals), false) // for its form
	po.EnsureDefaults()
	s.reader = po.MakeReaderOptions()
	all, err := wal.Scan(wal.Dir{FS: disk.FS, Dirname: dir})
	if err != nil {
		return nil, nil, fault.Annotate(err, "read %s", dir)
	}
	for range 2 { // once more, before it is given up
		if why = s.list(disk, all, false); why == nil {
			return s, nil, nil
		}
		// A log that is damaged keeps a store from opening, too.
		if err := s.list(disk, all, true); err == nil {
			return s, nil, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
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

// list opens the store for reading to learn which tables and logs count. With bare it
// does so without logs: those that the store began to read count, with all later ones.
func (s *damagedStore) list(disk *store.Config, all wal.Logs, bare bool) error {
	fsys := &listingFS{FS: store.ReadFS{FS: disk.FS}, bare: bare}
	return work.Safely(func() error {
		log := store.NewLog(disk.Signals)
		po := store.PebbleOptions(disk, log, false)
		po.FS, po.ReadOnly, po.DisableConsistencyCheck = fsys, true, true
		kv, err := store.OpenPebble(s.dir, po, log)
		if first := fsys.first(); !bare && first >= 0 { // whether or not it could be read
			s.logs = slices.DeleteFunc(slices.Clone(all), func(l wal.LogicalLog) bool { return int64(l.Num) < first })
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
				if x.Virtual {
					t.number, t.lo, t.hi = uint64(x.BackingSSTNum), t.from, t.to
				}
				if x.SmallestSeqNum == x.LargestSeqNum {
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

// listingFS shows a store as one that can be opened if its manifest can be read: with
// markers where these are gone, and without the file of options, which says nothing that
// is needed. It notes which logs are read.
type listingFS struct {
	vfs.FS
	bare bool // show no logs

	mu   sync.Mutex
	logs []int64 // that were opened
}

const (
	manifestPrefix = "MANIFEST-"
	manifestMarker = "marker.manifest."
	formatMarker   = "marker.format-version."
)

// List lists what is to be seen in a folder.
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
			of := name[strings.LastIndexByte(name, '.')+1:]
			if !slices.Contains(names, of) {
				continue
			}
			marked = true
		case strings.HasPrefix(name, formatMarker):
			format = true
		case strings.HasPrefix(name, manifestPrefix):
			if len(name) > len(newest) || len(name) == len(newest) && name > newest {
				newest = name
			}
		}
		out = append(out, name)
	}
	if !marked && newest != "" {
		out = append(out, manifestMarker+"000001."+newest)
	}
	if !format {
		out = append(out, fmt.Sprintf("%s000001.%03d", formatMarker, uint64(store.PebbleFormat)))
	}
	return out, nil
}

// Open opens a file for reading.
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

// first returns the number of the first log that was opened, -1 where none was.
func (f *listingFS) first() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.logs) == 0 {
		return -1
	}
	return slices.Min(f.logs)
}
