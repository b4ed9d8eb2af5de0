package store

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// A write that would fill the disk is refused before it begins. So Pebble never meets a full
// disk in its log, after which the database could not go on. The reserve is space that is kept
// free for what Pebble writes of itself. On top of it, room is kept for the tables of what
// only the log has: they are written later, by the next opening at the latest, which could not
// succeed without that room.
//
// Tables may take some of the reserve, but not all: a database that cannot write its log and its
// manifest any more fails. What other programs leave it on a full disk is its spare file.
const (
	maxReserve     = 256 << 20   // bytes of the reserve, by default
	reservePart    = 20          // or that part of the file system, where it is less
	FreeingFloor   = 64 << 10    // bytes that deletions and flushes leave free, or a quarter of the reserve if that is less
	roomToDelete   = 32 << 10    // bytes above that floor with which some items can be deleted: advice goes by it
	tableFloor     = 4 << 20     // bytes that compactions and bulk loads leave, or half of the reserve
	WrittenTwice   = 2           // times that a commit is written: to the log and to a table
	maxUnmeasured  = time.Second // that a measurement counts, at most
	bytesPerSecond = 1 << 30     // at most, of all who write to the disk, between measurements
)

// A Reserve refuses writes when too little space would be left for them. It measures the
// file system the more often the less that is: while so much is free that a second of
// writing cannot matter, once a second, and before each write where the end is near. Safe
// for concurrent use. All numbers are bytes.
//
// Admit and its kin take mu, ask the disk and the store, and are for callers outside of the
// store. admitTable and short are for the file system below it: they take no lock.
type Reserve struct {
	FS   vfs.FS
	Dir  string // of the database: errors name it, and it is measured while Path is not there yet
	Path string // that is measured: the folder of the store, which may be on a disk of its own
	Want int64  // Options.ReserveBytes: to keep free; 0: as much as is usual; negative: nothing, and all is admitted

	signals *signal.Sender // hears that the disk is full, and that it is not any more; nil: nobody does

	// What was found last, for db.Activity: whoever asks must not wait for the disk.
	Full  atomic.Bool  // a write was refused, and none that takes space has been admitted since
	Found atomic.Int64 // free on the disk
	Left  atomic.Int64 // to be kept free

	pending atomic.Int64 // what unflushed has said last
	spare   atomic.Int64 // of the spare file, when it was last looked for
	given   atomic.Bool  // the spare file has been given up: compactions may take as much as flushes

	mu      sync.Mutex // guards the fields below
	free    int64      // on the disk, when it was last measured
	keep    int64      // to be kept free, by the size of the disk then
	written int64      // admitted since
	at      time.Time  // of the measurement; zero: measure before the next write

	unspared bool // the spare file could not be made

	// unflushed returns how many bytes the log has that are in no table; nil: no store is open
	// to write. It takes the lock of the store, and is called with mu held.
	unflushed func() int64
}

// Counts sets how to ask for the bytes that the log has and no table, when the store is open to
// write. Room for them, and the spare file, are kept from then on.
func (r *Reserve) Counts(unflushed func() int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unflushed = unflushed
}

// NewReserve returns the reserve of the database in dir, which need not be there yet. It asks
// the disk when the first write comes.
func NewReserve(cfg *Config, dir string) *Reserve {
	return &Reserve{FS: cfg.FS, Dir: dir, Path: cfg.FS.PathJoin(dir, StoreName), Want: cfg.ReserveBytes, signals: cfg.Signals}
}

// LookAgain makes the next write measure, as what is free has changed, and not by what was
// admitted. A nil Reserve measures nothing.
func (r *Reserve) LookAgain() {
	if r == nil { // a repair keeps none
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
}

// Admit refuses a write of about so many bytes if that would eat into the reserve, or, where
// it frees space later, into the last of it. Callers count what goes to the log and to a table
// (WrittenTwice), and 0 bytes ask whether anything may be written at all. Bytes that are
// admitted count as written until the disk is measured again. The error is a
// *fault.DiskFullError, and nothing has happened.
func (r *Reserve) Admit(bytes int64, frees bool) error {
	if r.Want < 0 {
		r.admitted(frees)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	later := func() int64 { // for the tables of what the log has; what frees space need not leave that
		if frees {
			return 0
		}
		return r.pending.Load()
	}
	take := func() bool { return r.take(bytes, func() int64 { return r.kept(frees) + later() }) }
	if !take() && !(frees && r.giveUpSpare() && take()) {
		err := &fault.DiskFullError{
			Dir: r.Dir, Free: r.free, Reserve: r.kept(frees), Needed: bytes + later(),
			Stuck: frees || r.free+r.spareBytes() < roomToDelete+r.kept(true),
		}
		r.refused(err)
		return err
	}
	r.admitted(frees, slog.Int64("free", r.free))
	return nil
}

// admitTable refuses to write so many bytes of a table if that would leave too little for the
// log and the manifest. flush says that the table is one of a memtable. The error is ENOSPC,
// as of the operating system. It takes no lock: see short.
func (r *Reserve) admitTable(bytes int64, flush bool) error {
	if r == nil || r.Want < 0 {
		return nil
	}
	free, keep := r.look()
	floor := min(keep/2, tableFloor) + r.pending.Load()
	if flush || r.given.Load() {
		floor = min(keep/4, FreeingFloor)
	}
	if free-bytes < floor {
		return syscall.ENOSPC
	}
	return nil
}

// plentyFree is how much is free on a disk that is not short of room.
const plentyFree = 32 * maxAhead

// short reports whether the disk is short of room. It takes no lock: the store asks while it
// holds its own lock, and measure asks the store with mu held.
func (r *Reserve) short() bool {
	if r == nil || r.Want < 0 {
		return false
	}
	free, keep := r.look()
	return free < keep+plentyFree
}

// look asks the file system how much is free, and returns also how much of that to keep free.
// A file system that does not know has room without end.
func (r *Reserve) look() (free, keep int64) {
	usage, err := r.FS.GetDiskUsage(r.Path)
	if err != nil { // it is being made
		usage, err = r.FS.GetDiskUsage(r.Dir)
	}
	if err != nil {
		return math.MaxInt64, 0
	}
	if keep = r.Want; keep == 0 {
		keep = int64(min(maxReserve, usage.TotalBytes/reservePart))
	}
	return int64(min(usage.AvailBytes, math.MaxInt64)), keep
}

// take counts bytes as written, unless they would leave less than a floor, which depends on
// what is measured. It measures where it has to. The caller has mu, as have those of measure
// and kept.
func (r *Reserve) take(bytes int64, floor func() int64) bool {
	margin := func() int64 { return r.free - r.written - bytes - floor() }
	if m := margin(); m < 0 || time.Since(r.at) >= trustedFor(m) {
		r.measure()
		if margin() < 0 {
			return false
		}
	}
	r.written += bytes
	return true
}

// admitted notes that writes go on.
func (r *Reserve) admitted(frees bool, attrs ...slog.Attr) {
	if !frees && r.Full.Load() && r.Full.CompareAndSwap(true, false) {
		r.signals.Happened(event.DiskFreed, slog.LevelInfo, event.Event{Attrs: attrs})
	}
}

// refused notes that something could not be written for want of space.
func (r *Reserve) refused(err *fault.DiskFullError) {
	if r == nil { // a repair keeps none
		return
	}
	if r.Full.CompareAndSwap(false, true) {
		r.signals.Happened(event.DiskFull, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{
			slog.Int64("free", err.Free), slog.Int64("reserve", err.Reserve), slog.Int64("needed", err.Needed),
		}})
	}
}

// kept returns how much is to stay free.
func (r *Reserve) kept(frees bool) int64 {
	if frees {
		return min(r.keep/4, FreeingFloor)
	}
	return r.keep
}

// trustedFor returns how long a measurement counts that leaves a margin of so many bytes: as
// long as it takes at least to write them, and at most maxUnmeasured.
func trustedFor(margin int64) time.Duration {
	if margin >= bytesPerSecond {
		return maxUnmeasured
	}
	return time.Duration(float64(max(margin, 0)) / bytesPerSecond * float64(maxUnmeasured))
}

// measure notes how much is free, what is to be kept of it, and what the log has.
func (r *Reserve) measure() {
	r.at, r.written = time.Now(), 0
	if r.free, r.keep = r.look(); r.free == math.MaxInt64 {
		r.pending.Store(0)
		return
	}
	if r.unflushed != nil {
		r.pending.Store(r.unflushed())
		r.keepSpare()
	}
	r.Found.Store(r.free)
	r.Left.Store(r.keep)
}

// FullDisk turns an error of the operating system, that the disk of the database or a quota is
// full, into a *fault.DiskFullError, and notes that for events and Activity. It returns any
// other error as it is.
func (e *Engine) FullDisk(err error) error {
	if !fault.DiskFullAnew(err) {
		return err
	}
	full := &fault.DiskFullError{Dir: e.Dir, Err: err}
	if usage, err := e.cfg.FS.GetDiskUsage(e.Dir); err == nil {
		full.Free = int64(min(usage.AvailBytes, math.MaxInt64))
		full.Stuck = full.Free+e.Reserve.spareBytes() < roomToDelete+FreeingFloor
	}
	e.Reserve.refused(full)
	return full
}
