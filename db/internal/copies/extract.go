package copies

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/sstable"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// An extract writes a part of one view as a database of its own: into new tables, which its store ingests. It
// writes each key once, with the value that reading gives. So its files hold no replaced, deleted or excluded
// data.
//
// The rest must be sound without the excluded parts, as verify sees it. Collections, rows, codes and spaces
// keep their numbers.
type extract struct {
	c           *Copier                 // of the database that is copied
	v           *state.View             // the caller holds a reference to it
	collections []*state.CollectionView // that are copied, by ascending number
	indexOnly   bool                    // see indexOnlyParts
	identity    record.Identity         // of the copy
	room        *store.Reserve          // of the disk that the copy is on; set by writeFolder

	progress event.Progress // may be nil
	// guards done and total once tables are written, and calls of progress; held alone
	reporting   sync.Mutex
	done, total int64 // bytes of tables, written and estimated; total grows if done passes it
}

// newExtract returns the extract of a view that the options ask for. It returns nil if
// Pebble's checkpoint will do: for a copy of everything of a database that is open for
// writing. A collection that the view lacks is fault.ErrNotFound.
func (c *Copier) newExtract(v *state.View, opt CheckpointOptions) (*extract, error) {
	if opt.Collection == "" && !opt.IndexOnly && !c.readOnly {
		return nil, nil
	}
	x := &extract{c: c, v: v, indexOnly: opt.IndexOnly, progress: opt.Progress, identity: c.identity}
	x.identity.Sequence = v.Sequence
	if opt.Collection == "" {
		x.collections = slices.SortedFunc(v.Collections.Values(),
			func(a, b *state.CollectionView) int { return cmp.Compare(a.ID, b.ID) })
		return x, nil
	}
	cv, ok := v.Named(opt.Collection)
	if !ok {
		return nil, fault.NotFound("collection %q", opt.Collection)
	}
	x.collections = []*state.CollectionView{cv}
	return x, nil
}

// writeFolder makes a database in the folder dir, which is empty or new from store.NewFolder. It writes
// tables on half of the processors, because searches go on meanwhile. After an error the caller removes the
// remains. A panic of a writing goroutine comes up here.
func (x *extract) writeFolder(ctx context.Context, dir string) error {
	fsys := x.c.cfg.FS
	tables := &store.Tables{
		FS: fsys, Dir: fsys.PathJoin(dir, store.IngestName), Opts: store.TableOptions(x.c.cfg),
		Workers: work.Background(),
	}
	if err := fsys.MkdirAll(tables.Dir, 0o755); err != nil {
		return err
	}
	// The database itself may be on the same disk.
	x.room = &store.Reserve{FS: fsys, Dir: dir, Path: dir, Want: x.c.cfg.ReserveBytes}
	// A group is one task: its parts ascend, and no key of another group lies between them.
	var tasks []work.Task
	for _, group := range x.groups() {
		tasks = append(tasks, tables.Task(func(s *store.Stream) error { return x.copy(s, group) }))
	}
	if err := x.estimate(ctx); err != nil {
		return err
	}
	if err := tables.Make(ctx, tasks); err != nil {
		return err
	}
	// The marker is written last, when the store has all tables: until then dir is no database.
	err := store.Create(fsys, dir, func(path string) (record.Identity, error) {
		if err := x.storeOf(path, tables.Paths); err != nil {
			return x.identity, err
		}
		return x.identity, fsys.RemoveAll(tables.Dir)
	}, nil)
	if err == nil {
		x.finished()
	}
	return err
}

// storeOf makes a store at path that has these tables and nothing else. It opens the store
// twice, as Pebble takes up the format of a new store only when it is opened again.
func (x *extract) storeOf(path string, tables []string) error {
	cfg := *x.c.cfg
	// the blocks written here must not displace others in the cache of the database
	cfg.CacheBytes, cfg.Cache = 1<<20, nil
	for _, isNew := range []bool{true, false} {
		log := store.NewLog(cfg.Signals)
		kv, err := store.Open(path, &cfg, log, isNew)
		if err == nil {
			if !isNew {
				err = kv.Ingest(context.Background(), tables)
			}
			err = errors.Join(err, kv.Close())
		}
		if failed := log.Failed.Load(); failed != nil {
			err = *failed // err is nil, or an ErrFailed, which would be about the open database
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// A part is a range of keys to copy, [lo, hi).
type part struct {
	lo, hi []byte

	// change returns the value to write for a stored value, which it must not change or
	// keep. nil copies values as they are. An error is about damage.
	change func(value []byte) ([]byte, error)
}

// partOf returns all keys that begin with a prefix.
func partOf(prefix []byte) part { return part{lo: prefix, hi: codec.PrefixEnd(prefix)} }

// onlyKey returns one key.
func onlyKey(key []byte) part { return part{lo: key, hi: record.KeyAfter(key)} }

// firstKinds are the first kinds of the groups in which records are copied. A group has all kinds from its
// first one up to the first one of the next group, so that each kind is in one group. Each group is a task
// with tables of its own, which overlap no others. The slowest groups come first.
var firstKinds = []byte{
	codec.KindFeatures, codec.KindItem, codec.KindKey, codec.KindRowKeys,
	codec.KindProjection, codec.KindSubstring, codec.KindRowCodes, codec.KindCodes, codec.KindCodeRows,
	codec.KindSpace, codec.KindRows, codec.KindDatabase,
}

// groups returns the parts to copy, in the groups of firstKinds, each by ascending keys.
func (x *extract) groups() [][]part {
	groups, group := make([][]part, len(firstKinds)), 0
	for _, kind := range record.Kinds(record.OfDatabase) { // the first of all is in firstKinds
		if i := slices.Index(firstKinds, kind); i >= 0 {
			group = i
		}
		groups[group] = append(groups[group], x.parts(kind)...)
	}
	return groups
}

// parts returns the parts of a kind to copy, by ascending keys: of the database itself
// everything, with the UUID of the copy; all marks; the names of the collections, which are keys of
// their own; and what begins with the number of a collection.
func (x *extract) parts(kind byte) []part {
	var parts []part
	switch kind {
	case codec.KindDatabase:
		all, uuid := partOf([]byte{kind}), codec.DatabaseKey(codec.RecordUUID)
		own := onlyKey(uuid)
		own.change = func([]byte) ([]byte, error) { return x.identity.UUID[:], nil }
		return []part{{lo: all.lo, hi: own.lo}, own, {lo: own.hi, hi: all.hi}}
	case codec.KindMark:
		return []part{partOf([]byte{kind})}
	case codec.KindName:
		for _, cv := range slices.SortedFunc(slices.Values(x.collections),
			func(a, b *state.CollectionView) int { return cmp.Compare(a.Name, b.Name) }) {
			parts = append(parts, onlyKey(codec.NameKey(cv.Name)))
		}
		return parts
	}
	for _, cv := range x.collections {
		if x.indexOnly && !cv.CodesOnly() {
			parts = append(parts, indexOnlyParts(cv, kind)...)
		} else {
			parts = append(parts, partOf(codec.CollectionKey(kind, cv.ID)))
		}
	}
	return parts
}

// indexOnlyParts returns the parts of a kind in an index-only copy of a collection with modalities. It leaves
// out features, statistics, lessons and retractions, which only learning needs, and all references to them:
// statistics in descriptors, counters of lessons, rows that wait for the updater. It leaves out a space that
// is being built, because the copy could not complete it without features.
func indexOnlyParts(cv *state.CollectionView, kind byte) []part {
	of := record.KindOf(kind)
	if of.ForLearning {
		return nil
	}
	all := partOf(codec.CollectionKey(kind, cv.ID))
	switch kind {
	case codec.KindCollection:
		all.change = func([]byte) ([]byte, error) { return cv.WithoutVectors().Encode() }
	case codec.KindCounters:
		all.change = indexOnlyCounters
	}
	if of.Scope == record.OfCollection {
		return []part{all}
	}
	var parts []part
	for _, sp := range cv.Spaces {
		if sp.Numbers.Building {
			continue
		}
		p := partOf(codec.NumberKey(kind, cv.ID, sp.Space.ID))
		switch kind {
		case codec.KindSpace:
			p.change = indexOnlySpace
		case codec.KindOnlineRows: // rows with outdated codes stay so
			p = partOf(append(codec.NumberKey(kind, cv.ID, sp.Space.ID), codec.SetRecode))
		}
		parts = append(parts, p)
	}
	return parts
}

// indexOnlyCounters returns the counters of an index-only copy: the next numbers stay, and
// spaces have learned from nothing.
func indexOnlyCounters(value []byte) ([]byte, error) {
	n, err := codec.DecodeCounters(value)
	if err != nil {
		return nil, err
	}
	n.Spaces = slices.DeleteFunc(n.Spaces, func(s codec.SpaceCounters) bool { return s.Building })
	for i := range n.Spaces {
		n.Spaces[i].Taught, n.Spaces[i].Checkpoint = 0, 0
	}
	return n.Append(nil), nil
}

// indexOnlySpace returns the descriptor of a space without statistics, and without vectors in
// the copy of the collection's descriptor that it holds.
func indexOnlySpace(value []byte) ([]byte, error) {
	var d spaces.Reported
	if err := json.Unmarshal(value, &d); err != nil {
		return nil, err
	}
	d.Statistics = record.Chunked{}
	if d.Collection != nil {
		d.Collection = d.Collection.WithoutVectors()
	}
	return json.Marshal(d)
}

// lookEveryBytes is the number of bytes that are copied between two checks of free space and
// of the size of the table.
const lookEveryBytes = 1 << 20

// copy is the task that copies a group into a stream of tables. Merged values that sum up to
// nothing are left out: their key is one that a compaction would delete.
func (x *extract) copy(s *store.Stream, group []part) error {
	var table *sstable.Writer
	copied, reported := 0, uint64(0)
	for _, p := range group {
		err := record.ForEachIn(x.v.Snap, p.lo, p.hi, func(key, value []byte) error {
			// value is the sum of all edits under the key, which is written as one.
			if codec.Merged(key[0]) && codec.EmptySum(key, value) {
				return nil
			}
			if p.change != nil {
				var err error
				if value, err = p.change(value); err != nil {
					return fault.Corrupt(err, "key %x", key)
				}
			}
			if err := s.Set(key, value); err != nil {
				return err
			}
			if copied += len(key) + len(value); copied < lookEveryBytes {
				return nil
			}
			if err := x.room.Admit(int64(copied), false); err != nil {
				return err
			}
			copied = 0
			if s.W != table {
				table, reported = s.W, 0
			}
			size := table.Raw().EstimatedSize()
			x.report(int64(size - reported))
			if reported = size; size >= store.TableBytes { // the stream itself looks only every 512 keys
				s.Finish()
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// extractStage is the stage of progress of an extract.
const extractStage = "copy"

// estimate sets the total of the progress reports to Pebble's estimate of the size of the parts in its own
// tables. Without a progress function it does nothing.
func (x *extract) estimate(ctx context.Context) error {
	if x.progress == nil {
		return nil
	}
	for _, group := range x.groups() {
		for _, p := range group {
			n, err := x.c.db.Engine.DB.EstimateDiskUsage(p.lo, p.hi)
			if err != nil {
				return err
			}
			x.total += int64(n)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	return nil
}

// report adds to the bytes that have been written, and tells progress. Tasks call it.
func (x *extract) report(bytes int64) {
	if x.progress == nil {
		return
	}
	x.reporting.Lock()
	defer x.reporting.Unlock()
	x.done += bytes
	x.total = max(x.total, x.done)
	x.progress(extractStage, x.done, x.total)
}

// finished reports that all bytes are written. No task runs any more.
func (x *extract) finished() {
	if x.progress != nil {
		x.progress(extractStage, x.total, x.total)
	}
}
