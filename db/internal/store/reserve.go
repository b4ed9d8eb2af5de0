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

// What is written is refused while it is the caller's, so that the storage engine never
// meets a full disk in its log, after which the database could not go on. The reserve is
// for what the engine writes of itself. On top of it, room is kept for the tables of what the
// log has: they are written later, by opening at the latest, which could not succeed without.
//
// Tables may take of the reserve, but not all: a database that cannot write its log and its
// manifest any more fails, and cannot be opened even to delete something.
const (
	maxReserve     = 256 << 20 // by default
	reservePart    = 20        // of the file system, where that is less
	FreeingFloor   = 64 << 10  // what deletions and flushes leave, or a quarter of the reserve if that is less
	tableFloor     = 4 << 20   // what compactions and bulk loads leave, or half of it
	WrittenTwice   = 2         // a commit is written to the log and to a table
	maxUnmeasured  = time.Second
	bytesPerSecond = 1 << 30 // at most, of all who write to the disk, between measurements
)

// A Reserve refuses writes when too little space would be left for them. It measures the
// file system the more often the less that is: while so much is free that a second of
// writing cannot matter, once a second, and before each write where the end is near. Safe
// for concurrent use.
type Reserve struct {
	FS   vfs.FS
	Dir  string // of the database
	Path string // that is measured
	Want int64  // Options.ReserveBytes

	signals *signal.Sender // nil: nobody hears

	// What was found last, for Activity: whoever asks must not wait for the disk.
	Full        atomic.Bool // and no write has been admitted since
	Found, Left atomic.Int64

	pending atomic.Int64 // unflushed, when that was last asked

	mu      sync.Mutex
	free    int64 // when it was last measured
	keep    int64 // likewise
	written int64 // admitted since
	at      time.Time

	// unflushed returns how many bytes the log has that are in no table; nil: none. It takes
	// the lock of the store.
	unflushed func() int64
}

// Counts sets unflushed, when the store is open.
func (r *Reserve) Counts(unflushed func() int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unflushed = unflushed
}

func NewReserve(cfg *Config, dir string) *Reserve {
	return &Reserve{FS: cfg.FS, Dir: dir, Path: cfg.FS.PathJoin(dir, StoreName), Want: cfg.ReserveBytes, signals: cfg.Signals}
}

// LookAgain makes the next write measure: what is free has changed, and not by what was admitted.
func (r *Reserve) LookAgain() {
	if r == nil { // a repair keeps none
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
}

// Admit refuses a write of about so many bytes if that would eat into the reserve, or,
// where it frees space later, into the last of it. The error is a *DiskFullError.
func (r *Reserve) Admit(bytes int64, frees bool) error {
	if r.Want < 0 {
		r.admitted(frees)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	later := func() int64 { // what frees space is not to wait for tables of what came before
		if frees {
			return 0
		}
		return r.pending.Load()
	}
	if !r.take(bytes, func() int64 { return r.kept(frees) + later() }) {
		err := &fault.DiskFullError{Dir: r.Dir, Free: r.free, Reserve: r.kept(frees), Needed: bytes + later()}
		r.refused(err)
		return err
	}
	r.admitted(frees, slog.Int64("free", r.free))
	return nil
}

// admitTable refuses to write so many bytes of a table where that would leave too little for
// the log and the manifest. The error is what the operating system says of a full disk. It
// takes no lock: see short.
func (r *Reserve) admitTable(bytes int64, flush bool) error {
	if r == nil || r.Want < 0 {
		return nil
	}
	free, keep := r.look()
	floor := min(keep/2, tableFloor) + r.pending.Load()
	if flush {
		floor = min(keep/4, FreeingFloor)
	}
	if free-bytes < floor {
		return syscall.ENOSPC
	}
	return nil
}

// plentyFree is how much is free on a disk that is not short of room.
const plentyFree = 32 * maxAhead

// short reports whether the disk is short of room. It takes no lock, as the store asks while
// it holds its own, which measure wants.
func (r *Reserve) short() bool {
	if r == nil || r.Want < 0 {
		return false
	}
	free, keep := r.look()
	return free < keep+plentyFree
}

// look asks the file system what is free, and returns also what is to stay so. One that
// does not know has no end.
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

// take counts bytes as written, unless they would leave less than a floor. It measures
// where it has to.
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

// kept returns what is to stay free.
func (r *Reserve) kept(frees bool) int64 {
	if frees {
		return min(r.keep/4, FreeingFloor)
	}
	return r.keep
}

// trustedFor returns how long it takes to write so many bytes at the least.
func trustedFor(margin int64) time.Duration {
	if margin >= bytesPerSecond {
		return maxUnmeasured
	}
	return time.Duration(float64(max(margin, 0)) / bytesPerSecond * float64(maxUnmeasured))
}

// measure notes what there is.
func (r *Reserve) measure() {
	r.at, r.written = time.Now(), 0
	if r.free, r.keep = r.look(); r.free == math.MaxInt64 {
		r.pending.Store(0)
		return
	}
	if r.unflushed != nil {
		r.pending.Store(r.unflushed())
	}
	r.Found.Store(r.free)
	r.Left.Store(r.keep)
}

// FullDisk words the error of the operating system that the disk of the database, or a
// quota, is full, and notes that.
func (e *Engine) FullDisk(err error) error {
	if !fault.DiskFullAnew(err) {
		return err
	}
	full := &fault.DiskFullError{Dir: e.Dir, Err: err}
	if usage, err := e.cfg.FS.GetDiskUsage(e.Dir); err == nil {
		full.Free = int64(min(usage.AvailBytes, math.MaxInt64))
	}
	e.Reserve.refused(full)
	return full
}
