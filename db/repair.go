package db

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
)

// RepairOptions say how a database is to be repaired. The zero value repairs what is
// damaged.
type RepairOptions struct {
	// Shallow looks for damage as Verify does without Deep, which takes less time where
	// nothing is wrong: codes, projections and statistics that do not follow from what they
	// are made of stay as they are if nothing else is damaged.
	Shallow bool

	// DryRun makes everything that a repair makes, and takes it away again, so that what
	// cannot be saved is known before.
	DryRun bool

	// Progress hears how many records have been read so far; the stage names what is being
	// done, and the total is not known. It is called by the goroutine that called Repair.
	Progress event.Progress
}

// A Repairing says what came of a repair.
type Repairing struct {
	Damaged    bool    `json:"-"`                 // false: nothing was to be repaired
	Findings   int     `json:"-"`                 // what could not be saved
	Items      int     `json:"items"`             // of all collections, afterwards
	CodesKept  int     `json:"codes_kept"`        // items of learned collections whose codes in a space are those that were stored
	CodesMade  int     `json:"codes_made"`        // and those that were made again, from labels or features
	DamagedDir string  `json:"damaged,omitempty"` // the folder in that of the database where the damaged store is now
	Seconds    float64 `json:"seconds"`
}

// Repair makes a sound database of a damaged one that nobody has open. It reads what can
// be read of the store, table by table where that does not open any more; makes a new
// store of it, in which everything that follows from something else is made again from
// that; verifies it, deeply; and only then puts it in the place of the old one, which
// stays beside it as it is, for the caller to delete. Where a deep VerifyFolder would find
// nothing, nothing is done, and after a repair it finds nothing; see also
// RepairOptions.Shallow.
//
// It calls found, unless that is nil, with what could not be saved, and with what had to be
// guessed. What is
// kept is kept bit for bit: items with row numbers, features, labels, fields and payload,
// spaces with their numbers, revisions, and the codes that are stored, where they are
// those that their revision gives. Made again are sets, indexes, counters, keys from rows
// and rows from keys, other codes, and where something of them is lost the statistics of
// a space. An item whose record is lost is lost; one whose key is lost gets another, of
// the form "lost+found/ROW". A space whose model is lost is dropped, and its items stay.
// Where a block of a table is lost, what was written before under the same keys, and is
// kept still, stands in for it; and where the store does not say any more which of its
// tables count, all do: either may bring back what had been replaced or deleted. Commits
// that are missing, by what is known to have been durable, stay missing: a repair names
// them, also where nothing else is wrong, and acknowledges them with that, as
// AcknowledgeLosses does.
//
// An error, a context that ends, and a process that is killed leave either the old store
// or the new one in place, and Repair can be called again. It needs disk space for a
// second store, and time for reading everything three times and making all codes
// again. Memory is that of a deep Verify; and what the logs of the store hold.
//
// A folder that holds no database gives ErrNotDatabase, one of a newer version
// ErrFormat, one that is open ErrLocked.
func Repair(ctx context.Context, dir string, options *Options, opt RepairOptions, found func(report.Finding) error) (_ *Repairing, err error) {
	start := time.Now()
	opts := options.withDefaults()
	opts.disk.Signals.About(dir)
	defer opts.disk.Signals.Wait()
	marked, marker, err := repairable(&opts, dir)
	if err != nil {
		return nil, err
	}
	if dir, err = store.Canonical(opts.FS, dir); err != nil {
		return nil, err
	}
	lock, err := store.LockFolder(opts.FS, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if !opt.DryRun {
		if err := store.FinishRepair(opts.FS, dir); err != nil {
			return nil, fault.Annotate(err, "repair %s", dir)
		}
	}
	r := &repairer{ctx: ctx, opts: opts, dir: dir, opt: opt, report: orNobody(found), marked: marked, marker: marker}
	err = work.Safely(r.run)
	r.done.Seconds = time.Since(start).Seconds()
	return &r.done, fault.Annotate(err, "repair %s", dir)
}

// repairable looks for a store in a folder, and whether the marker is that of a database
// that this version reads, and of which format.
func repairable(opts *settings, dir string) (marked bool, format int, err error) {
	names, err := opts.FS.List(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, 0, fmt.Errorf("fddhdb: repair %s: %w", dir, err)
	}
	if !slices.Contains(names, store.StoreName) && !slices.Contains(names, store.RepairedName) {
		return false, 0, fmt.Errorf("%w: %s: there is none", fault.ErrNotDatabase, dir)
	}
	if !slices.Contains(names, store.MarkerName) {
		return false, 0, nil
	}
	format, err = store.ReadMarker(opts.FS, dir)
	if errors.Is(err, fault.ErrNotDatabase) {
		return false, 0, nil // its store will tell
	}
	return err == nil, format, err
}

// A repairer is what is known while a database is repaired.
type repairer struct {
	ctx    context.Context
	opts   settings
	dir    string
	opt    RepairOptions
	report func(report.Finding) error
	err    error // of report
	done   Repairing
	marked bool // the marker of the database is sound
	marker int  // the format that it names then

	identity record.Identity // of what has been made
}

// found reports something that could not be saved.
func (r *repairer) found(f report.Finding) {
	if r.err != nil {
		return
	}
	r.done.Findings++
	r.err = r.report(f)
}

func (r *repairer) at(records int, format string, args ...any) {
	if r.opt.Progress != nil {
		r.opt.Progress(fmt.Sprintf(format, args...), int64(records), 0)
	}
}

func (r *repairer) run() error {
	// That there is something is enough: to find everything may take long.
	verify := verifyOptions{Deep: !r.opt.Shallow, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verifyStore(r.ctx, &r.opts.disk, r.dir, verify, func(report.Finding) error { return errUnsound })
	if cerr := r.ctx.Err(); cerr != nil {
		return cerr
	}
	if err != nil && !isDamage(err) {
		return err
	}
	r.done.Damaged = err != nil || !r.marked
	if err == nil {
		r.done.Items = v.Items
		return r.beside()
	}
	if err := r.room(); err != nil {
		return err
	}
	if err := r.clear(); err != nil {
		return err
	}
	err = r.remake()
	if err == nil && !r.opt.DryRun {
		err = r.replace()
	}
	// What is made is of use only when it is complete.
	return errors.Join(err, r.opts.FS.RemoveAll(r.path(store.RepairingName)))
}

// isDamage reports whether an error can be about what is stored: a newer format, a file that
// may not be read and a machine that has run out of something are not.
func isDamage(err error) bool {
	for _, other := range []error{fault.ErrFormat, fs.ErrPermission, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, other) {
			return false
		}
	}
	return !fault.IsDiskFull(err)
}

func (r *repairer) path(name string) string { return r.opts.FS.PathJoin(r.dir, name) }

// StoreName returns the name of the store that is to be repaired: in a trial, which
// changes nothing, it may not have got its own yet.
func (r *repairer) storeName() string {
	if _, err := r.opts.FS.Stat(r.path(store.StoreName)); r.opt.DryRun && errors.Is(err, fs.ErrNotExist) {
		return store.RepairedName
	}
	return store.StoreName
}

// room refuses a repair for which there is not enough disk space.
func (r *repairer) room() error {
	usage, err := r.opts.FS.GetDiskUsage(r.dir)
	if err != nil {
		return nil // who cannot tell has to try
	}
	store := r.path(r.storeName())
	names, err := r.opts.FS.List(store)
	if err != nil {
		return err
	}
	size := uint64(64 << 20)
	for _, name := range names {
		info, err := r.opts.FS.Stat(r.opts.FS.PathJoin(store, name))
		if err == nil && !strings.HasSuffix(name, ".log") {
			size += uint64(info.Size())
		}
	}
	if usage.AvailBytes < size {
		return fmt.Errorf("%w: %s: a second store of some %d bytes is made, and %d are free: make room, or repair a copy elsewhere", fault.ErrDiskFull, r.dir, size, usage.AvailBytes)
	}
	return nil
}

// clear removes what a repair that was interrupted has left.
func (r *repairer) clear() error {
	for _, name := range []string{store.RepairingName, store.RepairedName} {
		if name == r.storeName() {
			continue
		}
		if err := r.opts.FS.RemoveAll(r.path(name)); err != nil {
			return err
		}
	}
	return nil
}

// remake makes the new store, in a folder of its own.
func (r *repairer) remake() (err error) {
	damaged, why, err := openDamaged(r.ctx, &r.opts, r.path(r.storeName()))
	if err != nil {
		return err
	}
	m := &mender{repairer: r, format: record.MinFormat - 1, collections: map[uint32]*seenCollection{}}
	s := &salvage{ctx: r.ctx, store: damaged, found: r.found}
	if why != nil {
		s.found(report.Finding{Record: "store", Problem: "it does not say which of its tables count, so all do, and what had been replaced or deleted may come back: " + fault.Problem(why)})
	}
	if err := m.open(); err != nil {
		return err
	}
	defer func() {
		if cerr := m.close(); err == nil { // else it is what that has led to
			err = cerr
		}
	}()
	r.at(0, "reading tables")
	if err := m.salvage(s); err != nil {
		return err
	}
	if err := m.mend(); err != nil {
		return err
	}
	// So that nothing waits to be deleted that is in the way of the next repair.
	r.at(0, "compacting")
	if err := m.compact(); err != nil {
		return err
	}
	opt := verifyOptions{Deep: true, Progress: r.opt.Progress, StoreOnly: true}
	v, err := verify(r.ctx, r.opts.FS, m.engine.Dir, m.store, opt, func(f report.Finding) error {
		return fmt.Errorf("fddhdb: repair: what was made is not sound, and nothing was changed: %s (key %s)", f, f.Key)
	})
	if err == nil {
		r.done.Items = v.Items
	}
	return err
}

// A mender makes a sound store of what has been read of a damaged one.
type mender struct {
	*repairer
	engine *store.Engine // of the new store
	store  *pebble.DB
	batch  *pebble.Batch

	format      int                    // of the database; below MinFormat: not known
	uuid        [record.UUIDBytes]byte // likewise; zero: not known, or there is none
	lost        record.KeyRanges       // keys of which something could not be read
	newest      uint64                 // sequence number of the storage engine
	collections map[uint32]*seenCollection
}

// A seenCollection is what the keys say that there is of a collection.
type seenCollection struct {
	rows   uint64 // one more than the last that was seen
	spaces map[uint32]bool
	fields map[uint16]bool // that are indexed
}

// open makes the new store.
func (m *mender) open() error {
	fsys := m.opts.FS
	dir := m.path(store.RepairingName)
	if err := store.MakeDir(fsys, dir); err != nil {
		return err
	}
	m.engine = store.NewEngine(&m.opts.disk, dir)
	path := fsys.PathJoin(dir, store.StoreName)
	var err error
	if _, err = m.engine.Make(path); err != nil {
		return err
	}
	if m.store, err = store.Open(path, &m.opts.disk, m.engine.Log, false); err != nil {
		return err
	}
	m.engine.DB = m.store
	m.batch = m.store.NewBatch()
	return nil
}

// compact rewrites the store. Where no tables can be written, Pebble would try for ever.
func (m *mender) compact() error {
	if err := m.engine.FlushAll(m.ctx); err != nil {
		return err
	}
	return m.engine.Rewrite(m.ctx, []byte{0}, []byte{0xff})
}

// close closes the store, which makes all of it durable.
func (m *mender) close() error {
	if m.store == nil {
		return nil
	}
	return errors.Join(m.batch.Close(), m.store.Close(), m.engine.Log.Err())
}

// take has the new store take tables over.
func (m *mender) take(t *store.Tables, work work.Task) error {
	if err := m.engine.KeepUp(false); err != nil {
		return err
	}
	if err := t.Take(m.ctx, work); err != nil {
		return fault.Annotate(m.engine.FullDisk(err), "bulk load")
	}
	return nil
}

// salvage puts what can be read of the damaged store into the new one.
func (m *mender) salvage(s *salvage) error {
	t := m.engine.Tables(0)
	ours := m.marked
	work := t.Task(func(stream *store.Stream) error {
		return s.each(func(key, value []byte) error {
			if m.err != nil {
				return m.err
			}
			if s.records%lookEvery == 0 {
				m.at(s.records, "reading tables")
			}
			if err := codec.CheckKey(key); err != nil {
				m.found(about(key, report.Finding{Record: "key", Problem: fault.Problem(err) + ": it is left out"}))
				return nil
			}
			switch kind := key[0]; kind {
			case codec.KindDatabase:
				if key[1] == codec.RecordFormat && len(value) == 4 {
					if f := binary.BigEndian.Uint32(value); f > record.NewestFormat {
						return &fault.FormatError{Dir: m.dir, Found: int(f), Supported: record.NewestFormat}
					}
					ours, m.format = true, int(binary.BigEndian.Uint32(value))
				}
				if key[1] == codec.RecordUUID && len(value) == record.UUIDBytes {
					m.uuid = [record.UUIDBytes]byte(value)
				}
			case codec.KindName:
			default:
				ours = ours || kind == codec.KindCollection
				m.see(key, value)
			}
			if key[0] == codec.KindFieldRows || len(value) > 0 && codec.EmptySum(key, value) {
				return nil // made again; nothing
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
	m.lost, m.newest = s.lost, s.newest
	return m.err
}

// see takes note of what a key says that there is.
func (m *mender) see(key, value []byte) {
	id := binary.BigEndian.Uint32(key[1:])
	c := m.collections[id]
	if c == nil {
		c = &seenCollection{spaces: map[uint32]bool{}, fields: map[uint16]bool{}}
		m.collections[id] = c
	}
	switch kind := key[0]; {
	case kind == codec.KindItem || kind == codec.KindFeatures:
		c.rows = max(c.rows, uint64(binary.BigEndian.Uint32(key[5:]))+1)
	case kind == codec.KindKey && len(value) == 4:
		c.rows = max(c.rows, uint64(binary.BigEndian.Uint32(value))+1)
	case kind == codec.KindFieldRows:
		field, _, _ := codec.FieldRowsKeyParts(key)
		c.fields[field] = true
	case kind >= codec.KindSpace && kind <= codec.KindSubstring:
		c.spaces[binary.BigEndian.Uint32(key[5:])] = true
	}
}

// lostAny reports whether something under keys with a prefix could not be read.
func (m *mender) lostAny(prefix []byte) bool {
	from, to := m.lost.Overlapping(prefix, codec.PrefixEnd(prefix))
	return from < to
}

// mendBytes is how large a batch of changes to the new store gets.
const mendBytes = 4 << 20

func (m *mender) written(err error) error {
	if err == nil && m.batch.Len() > mendBytes {
		err = m.flush()
	}
	return err
}

func (m *mender) set(key, value []byte) error { return m.written(m.batch.Set(key, value, nil)) }
func (m *mender) delete(key []byte) error     { return m.written(m.batch.Delete(key, nil)) }
func (m *mender) merge(key, value []byte) error {
	return m.written(m.batch.Merge(key, value, nil))
}

// deleteAll deletes all keys with a prefix.
func (m *mender) deleteAll(prefix []byte) error {
	return m.written(m.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil))
}

// flush applies the changes.
func (m *mender) flush() error {
	if err := errors.Join(m.err, m.ctx.Err()); err != nil {
		return err
	}
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

// clearBlock takes entries out of a block.
func (m *mender) clearBlock(key []byte, width int, offsets ...byte) error {
	e := codec.NewBlockEdit(width)
	for _, o := range offsets {
		e.Clear(o)
	}
	return m.merge(key, e.Append(nil, false))
}

// blocks calls f with all blocks under a prefix that can be decoded, and deletes others.
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
