package store

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// A write that would fill the disk is refused before it begins. So Pebble never finds the disk full when it
// writes its log, which would fail the database. The reserve is space kept free for the background writes of
// Pebble. In addition, Reserve keeps room for tables of the data that only the log has. They are written
// later, at the latest by the next opening, which would fail without that room.
//
// Tables may take part of the reserve, but not all: a database that cannot write its log and its manifest
// fails. On a disk that other programs have filled, the database has its spare file.
const (
	maxReserve     = 256 << 20   // bytes of the reserve, by default
	reservePart    = 20          // or this part of the file system, if that is less
	FreeingFloor   = 64 << 10    // bytes that deletions and flushes leave, at most a quarter of the reserve
	roomToDelete   = 32 << 10    // bytes above that floor that suffice to delete some items: for advice
	tableFloor     = 4 << 20     // bytes that compactions and bulk loads leave, at most half of the reserve
	WrittenTwice   = 2           // a commit is written to the log and to a table
	maxUnmeasured  = time.Second // longest life of a measurement
	bytesPerSecond = 1 << 30     // most that all programs write to the disk between measurements
)

// A Reserve refuses writes that would leave too little space. It measures the file system more often when
// less is free: once a second while a second of writing cannot matter, and before each write close to the
// limit. Safe for concurrent use. All numbers are bytes.
//
// Admit and most other methods take mu, ask the disk and the store, and are for callers outside the store.
// The file system below the store calls admitTable and short, which take no lock.
type Reserve struct {
	FS   vfs.FS
	Dir  string // of the database: errors name it, and it is measured until Path exists
	Path string // measured: the folder of the store, which may be on another disk
	Want int64  // Options.ReserveBytes, to keep free; 0: the default; negative: none, all writes are admitted

	signals *signal.Sender // reports that the disk is full, and no longer full; nil: no events

	// Results of the last check, for report.Activity, which must not wait for the disk.
	Full  atomic.Bool  // a write was refused, and since then no write that takes space was admitted
	Found atomic.Int64 // free on the disk
	Left  atomic.Int64 // to be kept free

	pending atomic.Int64 // last result of unflushed
	spare   atomic.Int64 // size of the spare file at the last check
	given   atomic.Bool  // the spare file was given up: compactions may take as much as flushes

	mu      sync.Mutex // guards the fields below
	free    int64      // on the disk, at the last measurement
	keep    int64      // to be kept free, by the size of the disk at that time
	written int64      // admitted since then
	at      time.Time  // of the measurement; zero: measure before the next write

	unspared bool // the spare file could not be made

	// unflushed returns the bytes of the log that are in no table; nil: no store is open to write. It takes
	// the lock of the store, and is called with mu held.
	unflushed func() int64
}

// Counts sets unflushed, once the store is open to write. From then on the Reserve keeps room for these
// bytes, and the spare file.
func (r *Reserve) Counts(unflushed func() int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unflushed = unflushed
}

// NewReserve returns the reserve of the database in dir, which need not exist yet. It asks the disk at the
// first write.
func NewReserve(cfg *Config, dir string) *Reserve {
	return &Reserve{FS: cfg.FS, Dir: dir, Path: cfg.FS.PathJoin(dir, StoreName), Want: cfg.ReserveBytes,
		signals: cfg.Signals}
}

// LookAgain makes the next write measure: free space has changed, other than by admitted writes. A nil
// Reserve measures nothing.
func (r *Reserve) LookAgain() {
	if r == nil { // a repair keeps none
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = time.Time{}
}

// Admit refuses a write of about so many bytes if it would use the reserve. For a write that frees space
// later, only the last part of the reserve counts. Callers count the bytes of the log and of a table
// (WrittenTwice); 0 bytes ask whether any write is possible. Admitted bytes count as written until the next
// measurement. The error is a *fault.DiskFullError, and nothing has happened.
func (r *Reserve) Admit(bytes int64, frees bool) error {
	if r.Want < 0 {
		r.admitted(frees)
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	later := func() int64 { // room for tables of the log's data; writes that free space need not leave it
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

// admitTable refuses to write so many bytes of a table if too little would be left for the log and the
// manifest. flush says that the table comes from a memtable. The error is ENOSPC, as from the operating
// system. It takes no lock, see short.
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

// plentyFree is the free space, above the reserve, of a disk that is not short of room.
const plentyFree = 32 * maxAhead

// short reports whether the disk is short of room. It takes no lock: the store asks while it holds its own
// lock, and measure asks the store with mu held.
func (r *Reserve) short() bool {
	if r == nil || r.Want < 0 {
		return false
	}
	free, keep := r.look()
	return free < keep+plentyFree
}

// look asks the file system for the free space, and returns it with the part to keep free. A file system that
// does not know has unlimited room.
func (r *Reserve) look() (free, keep int64) {
	usage, err := r.FS.GetDiskUsage(r.Path)
	if err != nil { // Path does not exist yet
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

// take counts bytes as written, unless less than a floor would be left. The floor depends on the measurement.
// take measures if it must. The callers of take, measure and kept hold mu.
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

// admitted records that writes go on.
func (r *Reserve) admitted(frees bool, attrs ...slog.Attr) {
	if !frees && r.Full.Load() && r.Full.CompareAndSwap(true, false) {
		r.signals.Happened(event.DiskFreed, slog.LevelInfo, event.Event{Attrs: attrs})
	}
}

// refused records that a write failed for want of space.
func (r *Reserve) refused(err *fault.DiskFullError) {
	if r == nil { // a repair keeps none
		return
	}
	if r.Full.CompareAndSwap(false, true) {
		r.signals.Happened(event.DiskFull, slog.LevelWarn, event.Event{Err: err, Attrs: []slog.Attr{
			slog.Int64("free", err.Free), slog.Int64("reserve", err.Reserve),
			slog.Int64("needed", err.Needed),
		}})
	}
}

// kept returns the bytes that must stay free.
func (r *Reserve) kept(frees bool) int64 {
	if frees {
		return min(r.keep/4, FreeingFloor)
	}
	return r.keep
}

// trustedFor returns the life of a measurement that leaves a margin of so many bytes: the shortest time in
// which they can be written, and at most maxUnmeasured.
func trustedFor(margin int64) time.Duration {
	if margin >= bytesPerSecond {
		return maxUnmeasured
	}
	return time.Duration(float64(max(margin, 0)) / bytesPerSecond * float64(maxUnmeasured))
}

// measure records the free space, the part to keep, and the unflushed bytes of the log.
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

// FullDisk turns an error of the operating system about a full disk or quota into a *fault.DiskFullError, and
// records it for events and Activity. It returns other errors unchanged.
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

// A fileID identifies a file of a machine under all its names, by device and inode number.
type fileID struct{ device, number uint64 }

// DiskBytes returns the bytes on disk of a file, or of a folder with its content, as du counts them:
// allocated blocks, and a file with several names once. It follows links. It skips files that it cannot stat,
// because they have just gone or for want of permission. It visits every file.
func DiskBytes(fsys vfs.FS, path string) int64 { return diskBytesOnce(fsys, path, map[fileID]bool{}) }

// diskBytesOnce is DiskBytes without the files in seen. It adds files with several names to seen.
func diskBytesOnce(fsys vfs.FS, path string, seen map[fileID]bool) int64 {
	info, err := fsys.Stat(path)
	if err != nil {
		return 0
	}
	bytes, id, several := taken(info)
	if several {
		if seen[id] {
			return 0
		}
		seen[id] = true
	}
	if !info.IsDir() {
		return bytes
	}
	names, err := fsys.List(path)
	if err != nil {
		return bytes
	}
	for _, name := range names {
		bytes += diskBytesOnce(fsys, fsys.PathJoin(path, name), seen)
	}
	return bytes
}

// A DiskFigure keeps the last result of DiskBytes, so that a figure need not visit every file each time. The
// zero value is empty. Safe for concurrent use.
type DiskFigure struct {
	mu       sync.Mutex // guards the fields below; held while it visits the folder
	at       time.Time
	sequence uint64 // last commit at that time
	changes  uint64 // changes of the store at that time
	bytes    int64
}

// diskEvery is how long a figure is valid without a known change: backups and bulk loads write without
// counting one.
const diskEvery = time.Second

// Now returns the bytes on disk of the folder of a database. sequence is the number of its last commit;
// changes counts other changes of the folder.
func (f *DiskFigure) Now(fsys vfs.FS, dir string, sequence, changes uint64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sequence != sequence || f.changes != changes || time.Since(f.at) >= diskEvery {
		f.sequence, f.changes, f.at = sequence, changes, time.Now()
		f.bytes = DiskBytes(fsys, dir)
	}
	return f.bytes
}

// plainSize returns the size of a file if the file system does not report blocks: its length, and 0 for a
// folder.
func plainSize(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}

// CollectionBytes estimates the bytes of the tables that hold the records of a collection, see
// db.CollectionStats.DiskBytes. r is a snapshot of the store.
func (e *Engine) CollectionBytes(ctx context.Context, r pebble.Reader, collection uint32) (int64, error) {
	total := int64(0)
	for _, kind := range record.Kinds(record.OfCollection) {
		n, err := e.bytesUnder(ctx, r, codec.CollectionKey(kind, collection))
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// countedBytes is the number of bytes up to which records are counted one by one. A few blocks have as much.
// For fewer records most of an estimate would be the first and the last block, which have other records too.
const countedBytes = 256 << 10

// errLarge ends the counting of records.
var errLarge = errors.New("more than are counted")

// bytesUnder estimates the bytes of the records with a prefix.
func (e *Engine) bytesUnder(ctx context.Context, r pebble.Reader, prefix []byte) (int64, error) {
	lo, hi := prefix, codec.PrefixEnd(prefix)
	counted := int64(0)
	err := record.ForEachIn(r, lo, hi, func(key, value []byte) error {
		if counted += int64(len(key) + len(value)); counted > countedBytes {
			return errLarge
		}
		return nil
	})
	large := errors.Is(err, errLarge)
	if err != nil && !large {
		return 0, err
	}
	n, err := e.DB.EstimateDiskUsage(lo, hi)
	switch {
	case err != nil:
		return 0, fault.ReadError(err, "sizes of tables")
	case n == 0: // no table has the records yet
		return counted, ctx.Err()
	case large:
		return int64(n), ctx.Err()
	}
	return min(int64(n), counted), ctx.Err() // compressed blocks may be smaller
}
