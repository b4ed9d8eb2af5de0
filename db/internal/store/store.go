package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// PebbleFormat pins Pebble's own format, so that linking a newer library does not migrate a database.
const PebbleFormat = pebble.FormatValueSeparation

// mergerName is part of every store; changing it makes old stores unreadable.
const mergerName = "fddhdb.blocks-and-layers"

// merger makes Pebble combine the values written with Merge under one key, see codec.Merger.
var merger = &pebble.Merger{
	Name: mergerName,
	Merge: func(key, value []byte) (pebble.ValueMerger, error) {
		m, err := codec.NewMerger(key, value)
		if err != nil {
			return nil, err
		}
		return valueMerger{m}, nil
	},
}

// valueMerger adapts codec.Merger to Pebble's interface.
type valueMerger struct{ m *codec.Merger }

func (v valueMerger) MergeNewer(value []byte) error { v.m.Newer(value); return nil }
func (v valueMerger) MergeOlder(value []byte) error { v.m.Older(value); return nil }
func (v valueMerger) Finish(includesBase bool) ([]byte, io.Closer, error) {
	b, err := v.m.Finish(includesBase)
	return b, nil, err
}

// A Log tracks the health of a store: the first failure, after which the database refuses writes, troubles
// with flushes and compactions, and work in progress. It is Pebble's logger and event listener. A failure
// that Pebble calls fatal must not end the process that embeds the database; failFS makes it safe to go on.
//
// A store has one Log for its life, and two open stores never share one. Safe for concurrent use. Pebble
// calls it with locks of the store held, so its methods do not wait.
type Log struct {
	signals *signal.Sender // gets messages of Pebble; nil: no events

	// Failed is the first failure, nil before; it is never reset. Err wraps it.
	Failed atomic.Pointer[error]

	flushes, compactions tableTrouble // results of their last attempts

	// unflushed signals a failed flush; holds one. FlushAll waits for it.
	unflushed chan struct{}

	// trouble signals a failure of the store in the background; holds one. Rewrite waits for it.
	trouble chan struct{}

	// progress signals the end of a flush or a compaction; holds one. KeepUp waits for it.
	progress chan struct{}

	Work Work // background work of the store
}

// NewLog returns the log of a store to open.
func NewLog(s *signal.Sender) *Log {
	return &Log{signals: s, trouble: make(chan struct{}, 1), unflushed: make(chan struct{}, 1),
		progress: make(chan struct{}, 1)}
}

// Infof, Errorf and Fatalf implement pebble.Logger.

func (l *Log) Infof(format string, args ...any) {
	l.say(event.StoreMessage, slog.LevelDebug, format, args)
}

func (l *Log) Errorf(format string, args ...any) {
	l.say(event.StoreError, slog.LevelError, format, args)
}

// say makes an event of a message of Pebble, if a listener hears events of this level.
func (l *Log) say(name event.Name, level slog.Level, format string, args []any) {
	if l.signals.Heard(context.Background(), level) {
		l.signals.Happened(name, level,
			event.Event{Attrs: []slog.Attr{slog.String("message", fmt.Sprintf(format, args...))}})
	}
}

func (l *Log) Fatalf(format string, args ...any) {
	l.Fail(fmt.Errorf(format, args...))
}

// Fail records the first failure. From now on the committer acknowledges nothing, and failFS leaves the vital
// files unchanged. The database has to be opened again.
func (l *Log) Fail(err error) {
	if l.Failed.CompareAndSwap(nil, &err) {
		l.signals.Happened(event.Failed, slog.LevelError, event.Event{Err: err})
	}
}

// Err returns the failure, wrapped in ErrFailed, or nil. It costs one atomic load.
func (l *Log) Err() error {
	if err := l.Failed.Load(); err != nil {
		return fmt.Errorf("%w: close it and open it again: %w", fault.ErrFailed, *err)
	}
	return nil
}

// MissesFiles reports whether pebble.Open failed because a file of the store is missing or has another
// length, which Pebble does not call corruption.
func MissesFiles(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBDoesNotExist) ||
		errors.Is(err, pebble.ErrDBNotPristine) ||
		strings.Contains(err.Error(), "object size mismatch")
}

// A Config has the options of a database that a store needs. Package db fills it in, and shares it with all
// parts of the database; once the database is open, it does not change.
type Config struct {
	FS           vfs.FS         // see WithKinds
	CacheBytes   int64          // of blocks in memory, without Cache
	Cache        *pebble.Cache  // of an open database, which releases it; nil: each store makes its own
	ReserveBytes int64          // Options.ReserveBytes, see Reserve.Want
	Room         *Reserve       // of an open database; nil: tables may fill the disk
	Signals      *signal.Sender // gets events; nil: no events
}

// An Engine is the store of a database with its protection: the reserve of disk space, and the log of
// failures, which stops all acknowledgements after the first failure. Safe for concurrent use, once DB is
// set.
//
// A writer asks Admit before it writes to DB, and Log.Err afterwards: Pebble does not return
// the error of a failed sync.
type Engine struct {
	*pebble.DB          // nil until the store is open; state.Database.Open sets it
	cfg        *Config  // of the database; not written to
	Dir        string   // of the database; errors name it
	Log        *Log     // of the store
	Reserve    *Reserve // Config.Room; nil: of a repair, which must call neither Admit nor CompactAll
}

// NewEngine returns the engine of the database in dir. OpenDatabase or Open then opens its store, with
// Engine.Log.
func NewEngine(cfg *Config, dir string) *Engine {
	return &Engine{cfg: cfg, Dir: dir, Log: NewLog(cfg.Signals), Reserve: cfg.Room}
}

// Tables returns the Tables of the next commit; sequence is the number of the last one. Only the committer
// may take them.
func (e *Engine) Tables(sequence uint64) *Tables {
	return newTables(e.DB, e.Log, e.cfg, e.Dir, sequence)
}

// Make makes the store of a new, empty database at path, durably, and closes it; for Create. Pebble writes
// the first log of a new store before it adopts its format, so the store is opened once for that.
func (e *Engine) Make(path string) (record.Identity, error) {
	i := record.Identity{UUID: record.NewUUID()}
	kv, err := Open(path, e.cfg, e.Log, true)
	if err != nil {
		return i, err
	}
	return i, errors.Join(i.Store(kv), e.Log.Err(), kv.Close())
}

// Check opens the store at path, closes it, and returns its identity; for Create.
func (e *Engine) Check(path string) (record.Identity, error) {
	kv, err := Open(path, e.cfg, e.Log, false)
	if err != nil {
		return record.Identity{}, err
	}
	i, err := record.ReadIdentity(kv, e.Dir)
	return i, errors.Join(err, kv.Close())
}

// PebbleOptions returns the options of a store, which must exist unless create is set. logger is the Log of
// the store, and also the listener. Open and OpenToRead set another file system. Merger and format are part
// of every stored database.
func PebbleOptions(cfg *Config, logger *Log, create bool) *pebble.Options {
	po := &pebble.Options{
		FS:                 &failFS{FS: cfg.FS, log: logger},
		FormatMajorVersion: PebbleFormat,
		Merger:             merger,
		Logger:             logger,
		CacheSize:          cfg.CacheBytes,
		Cache:              cfg.Cache,
		MemTableSize:       memtableBytes,
		ErrorIfNotExists:   !create,
		EventListener:      logger.listener(),
	}
	po.MemTableStopWritesThreshold, po.L0StopWritesThreshold = noLimit, noLimit // see KeepUp
	po.Experimental.DisableIngestAsFlushable = func() bool { return true }      // see Tables.ingest
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // an import looks up every key
	}
	return po
}

// TableOptions returns the options of tables to ingest, see Tables. Ingestion puts tables as low as possible,
// so they are written like tables of the lowest level.
func TableOptions(cfg *Config) sstable.WriterOptions {
	po := PebbleOptions(cfg, NewLog(cfg.Signals), false)
	po.EnsureDefaults()
	o := po.MakeWriterOptions(len(po.Levels)-1, PebbleFormat.MaxTableFormat())
	o.WritingToLowestLevel = false // true would omit deletions, and lower levels may have the keys
	return o
}

// NewCache returns a cache of about so many bytes of blocks. Pebble counts memtables in its size. A store
// that is open to write has two or three of memtableBytes, which would use up a cache of the default size, so
// each look-up of a key would read its filters from disk. So the cache is larger by two memtables, but at
// most twice as large.
func NewCache(bytes int64, readOnly bool) *pebble.Cache {
	if !readOnly {
		bytes += min(bytes, 2*memtableBytes)
	}
	return pebble.NewCache(bytes)
}

// Open opens the Pebble store at path to write. It must exist unless create is set. Below it is a failFS,
// which reports the first vital failure to logger. A vital failure during the opening is an error at once.
func Open(path string, cfg *Config, logger *Log, create bool) (*pebble.DB, error) {
	po := PebbleOptions(cfg, logger, create)
	po.FS = &failFS{FS: cfg.FS, log: logger, dir: path, room: cfg.Room}
	kv, err := OpenPebble(path, po, logger)
	if err == nil && logger.Err() != nil {
		return nil, errors.Join(logger.Err(), kv.Close())
	}
	return kv, err
}

// Work has figures of the store's background work. The store updates them under its locks, so the methods do
// not wait. Safe for concurrent use.
type Work struct {
	Flushes, Compactions atomic.Int64      // in progress
	Stalled              atomic.Bool       // the committer waits in KeepUp
	Stalls               signal.Latencies  // each wait of the committer
	Ended                signal.Operations // flushes and compactions since opening

	// Changes counts changes of the files and figures of the store, as far as the store reports them. Figures
	// that take long to make, such as the size on disk, are kept until it changes.
	Changes atomic.Uint64

	looking sync.Mutex              // held while the figures are renewed; only tried, never waited for
	seen    atomic.Uint64           // Changes at the last renewal
	Figures atomic.Pointer[Figures] // of that time; state.Database.Open stores the first
}

// listener returns the callbacks for Pebble's events. Pebble calls them with its locks held.
func (l *Log) listener() *pebble.EventListener {
	w := &l.Work
	changed := func() { w.Changes.Add(1) }
	return &pebble.EventListener{
		FlushBegin: func(pebble.FlushInfo) { w.Flushes.Add(1) },
		FlushEnd: func(info pebble.FlushInfo) {
			w.Flushes.Add(-1)
			changed()
			err := info.Err
			if err != nil && strings.Contains(err.Error(), "pebble: empty table") {
				err = nil // the memtable was empty
			}
			l.flushes.ended(err)
			if info.Err != nil {
				select {
				case l.unflushed <- struct{}{}:
				default: // a signal is pending
				}
			}
			l.progressed()
			if err != info.Err {
				return
			}
			bytes := int64(0)
			for _, t := range info.Output {
				bytes += int64(t.Size)
			}
			l.ended(event.OpFlush, info.TotalDuration, bytes, err)
		},
		CompactionBegin: func(pebble.CompactionInfo) { w.Compactions.Add(1); changed() },
		CompactionEnd: func(info pebble.CompactionInfo) {
			w.Compactions.Add(-1)
			changed()
			bytes := int64(0)
			for _, t := range info.Output.Tables {
				bytes += int64(t.Size)
			}
			err := info.Err
			if errors.Is(err, pebble.ErrCancelledCompaction) {
				err = nil // gave way to an ingestion
			} else {
				l.compactions.ended(err)
			}
			l.progressed()
			l.ended(event.OpCompaction, info.TotalDuration, bytes, err)
		},
		TableDeleted:    func(pebble.TableDeleteInfo) { changed() },
		TableIngested:   func(pebble.TableIngestInfo) { changed() },
		BlobFileDeleted: func(pebble.BlobFileDeleteInfo) { changed() },
		ManifestCreated: func(pebble.ManifestCreateInfo) { changed() },
		WALCreated:      func(pebble.WALCreateInfo) { changed() },
		WALDeleted:      func(pebble.WALDeleteInfo) { changed() },
		// A reader of damaged data gets an error, and the rest goes on. By default this would be fatal.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.signals.Happened(event.Corruption, slog.LevelError,
				event.Event{Err: info.Details, Attrs: []slog.Attr{slog.String("file", info.Path)}})
		},
	}
}

// ended counts a flush or a compaction, and reports it.
func (l *Log) ended(op event.Op, took time.Duration, bytes int64, err error) {
	l.Work.Ended.Count(op, took, err != nil, false)
	e := event.Event{Op: op, Phase: event.PhaseDone, Bytes: bytes, Duration: took, Err: err}
	level := slog.LevelDebug
	if err != nil {
		e.Phase, level = event.PhaseFailed, slog.LevelError
	}
	l.signals.Happened(event.NameOf(op, e.Phase), level, e)
}

// Figures describe the store at one moment. They do not change.
type Figures struct {
	Live, Obsolete int64 // bytes on disk that count, and that wait for deletion or are still being read
	Memory         int64 // bytes, without the cache of blocks
	Tables         int   // on all levels
	Amplification  int   // runs of tables that a read of one key may have to search
	memtables      int64 // bytes, see slow
	sublevels      int   // runs of tables in level 0, see slow
	Debt           int64 // roughly the bytes that compactions have yet to write
}

// Look returns the figures of the store. If the store has changed, it renews them, which takes a lock of the
// store for some microseconds; so frequent calls cost little. While another goroutine renews them, it returns
// the old ones.
func (w *Work) Look(kv *pebble.DB) *Figures {
	if changes := w.Changes.Load(); changes != w.seen.Load() && w.looking.TryLock() {
		w.seen.Store(changes)
		w.Figures.Store(FiguresOf(kv.Metrics()))
		w.looking.Unlock()
	}
	return w.Figures.Load()
}

// FiguresOf extracts the figures from Pebble's metrics.
func FiguresOf(m *pebble.Metrics) *Figures {
	f := &Figures{
		Obsolete: int64(m.WAL.ObsoletePhysicalSize +
			m.Table.Local.ObsoleteSize + m.Table.Local.ZombieSize +
			m.BlobFiles.Local.ObsoleteSize + m.BlobFiles.Local.ZombieSize),
		Memory: int64(m.MemTable.Size + m.MemTable.ZombieSize),
		Tables: int(m.Total().TablesCount), Amplification: m.ReadAmp(),
		memtables: int64(m.MemTable.Size), sublevels: int(m.Levels[0].Sublevels),
		Debt: int64(m.Compact.EstimatedDebt),
	}
	f.Live = int64(m.DiskSpaceUsage()) - f.Obsolete
	return f
}

// Stats returns figures of the store, with its flushes and compactions.
func (e *Engine) Stats() report.StoreStats {
	w := &e.Log.Work
	f := w.Look(e.DB)
	return report.StoreStats{
		Tables: f.Tables, LiveBytes: f.Live, ReadAmplification: f.Amplification, CompactionDebtBytes: f.Debt,
		Flushing: int(w.Flushes.Load()), Compacting: int(w.Compactions.Load()),
		Stalled: w.Stalled.Load(), Stalls: w.Stalls.Stats(),
	}
}

// CacheStats returns figures of the cache of blocks.
func (e *Engine) CacheStats() report.CacheStats {
	m := e.cfg.Cache.Metrics()
	return report.CacheStats{Bytes: m.Size, Hits: m.Hits, Misses: m.Misses}
}

// A scheduler decides when the store may compact: whenever the store wants to, except during the pause after
// a failed compaction. Pebble's own scheduler tries again at once, and a damaged table of level 0 then keeps
// a processor busy forever.
//
// Pebble calls the exported methods: pebble.CompactionScheduler, and the handle of a compaction, which is the
// scheduler too.
//
// Lock order: the locks of the store, then mu. Only run makes calls that take locks of the store, and without
// mu: GetAllowedWithoutPermission takes none.
type scheduler struct {
	trouble *tableTrouble          // of compactions
	store   pebble.DBForCompaction // set by Register, before run begins
	poke    chan struct{}          // wakes run; holds one
	stop    chan struct{}          // closed by Unregister
	stopped sync.WaitGroup         // of run

	mu      sync.Mutex // guards the fields below
	running int        // compactions
	closed  bool       // no compaction may begin
}

// How often the scheduler asks the store whether it wants to compact, as the answer may change without a
// call: lookAgain after a call, and ever less often in a store that does nothing, so that it costs no
// processor. lookRare suits stores with one compaction at a time, Pebble's default. With more, Pebble may
// allow another compaction without a call, and that would wait for so long.
const (
	lookAgain = 100 * time.Millisecond
	lookRare  = 10 * time.Second
)

// newScheduler returns the scheduler of a store that is not open yet.
func newScheduler(trouble *tableTrouble) *scheduler {
	return &scheduler{trouble: trouble, poke: make(chan struct{}, 1), stop: make(chan struct{})}
}

// Register begins to schedule for a store.
func (s *scheduler) Register(_ int, store pebble.DBForCompaction) {
	s.store = store
	s.stopped.Go(s.run)
}

// Unregister ends scheduling, and returns after the last call of the store. Pebble calls it when the store is
// closed, OpenPebble when opening has failed. A second call does nothing.
func (s *scheduler) Unregister() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	s.mu.Unlock()
	s.stopped.Wait()
}

// run grants waiting compactions, after each change and now and then, until Unregister.
func (s *scheduler) run() {
	wait := lookAgain
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-s.poke:
			wait = lookAgain
		case <-timer.C:
			wait = min(2*wait, lookRare)
		}
		for s.take() {
			if waiting, _ := s.store.GetWaitingCompaction(); !waiting || !s.store.Schedule(s) {
				s.giveBack()
				break
			}
			wait = lookAgain
		}
		if s.trouble.rest() > 0 {
			wait = lookAgain
		}
		timer.Reset(wait)
	}
}

// take counts another compaction, if one may begin.
func (s *scheduler) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.trouble.rest() > 0 || s.running >= s.store.GetAllowedWithoutPermission() {
		return false
	}
	s.running++
	return true
}

// giveBack uncounts a compaction that has ended, or that the store no longer wants.
func (s *scheduler) giveBack() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
}

// TrySchedule tells the store whether it may compact now.
func (s *scheduler) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	if !s.take() {
		s.UpdateGetAllowedWithoutPermission() // the store wants to compact: look again soon
		return false, nil
	}
	return true, s
}

// UpdateGetAllowedWithoutPermission is called when the store may want more compactions.
func (s *scheduler) UpdateGetAllowedWithoutPermission() {
	select {
	case s.poke <- struct{}{}:
	default: // run will look
	}
}

// Done is called when a compaction has ended.
func (s *scheduler) Done() {
	s.giveBack()
	s.UpdateGetAllowedWithoutPermission()
}

// Started, MeasureCPU and CumulativeStats are for schedulers that share processors.
func (*scheduler) Started()                                          {}
func (*scheduler) MeasureCPU(pebble.CompactionGoroutineKind)         {}
func (*scheduler) CumulativeStats(pebble.CompactionGrantHandleStats) {}

// Writers must not stay faster than flushes and compactions. Pebble would make them wait inside a commit or
// an ingestion, where nothing can end the wait: forever, if no flush succeeds because the disk is full, or no
// compaction because a table is damaged. So Pebble's own limits are out of reach (noLimit), and the committer
// waits here, before it starts a request. If waiting is useless, it refuses the request.
const (
	maxMemtables = 3 * memtableBytes // bytes of all memtables: one being written, two being flushed
	maxSublevels = 12                // runs of tables in level 0, all of which a read may have to search

	memtableBytes = 32 << 20
	noLimit       = 1 << 10 // for both limits of Pebble
)

// KeepUp waits until the store may take another commit. Usually it does not wait, and costs the reading of a
// few numbers. frees says that the commit will free disk space: it does not wait for compactions, which may
// need space themselves. An error says why waiting is useless: an ErrDiskFull, an ErrCorrupt, the failure of
// the database, or another error of the disk. Only the committer calls KeepUp, because progress wakes one
// waiter.
func (e *Engine) KeepUp(frees bool) error {
	if f := e.Log.Work.Look(e.DB); f != nil && f.slow(frees) == "" {
		return nil
	}
	began := time.Time{}
	defer func() {
		if !began.IsZero() {
			e.Log.resumed(began)
		}
	}()
	for {
		// Read fresh figures: cached ones may be older than the last flush or compaction, and nothing would
		// end the wait.
		reason := FiguresOf(e.DB.Metrics()).slow(frees)
		switch reason {
		case "":
			return nil
		case slowFlushes:
			if err := e.Log.flushes.err(); err != nil {
				return e.behind("what is in memory cannot be written into tables", err)
			}
		case slowCompactions:
			err := e.Log.compactions.err()
			if one := e.Log.compactions.first(); pebble.IsCorruptionError(one) {
				err = one // another try will not help
			}
			if err != nil {
				return e.behind("tables cannot be compacted", err)
			}
		}
		if err := e.Log.Err(); err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
			e.Log.Work.Stalled.Store(true)
			e.Log.signals.Happened(event.Stalled, slog.LevelWarn,
				event.Event{Attrs: []slog.Attr{slog.String("reason", reason)}})
		}
		<-e.Log.progress
	}
}

// Reasons to wait, for events.
const (
	slowFlushes     = "memtables wait to be flushed"
	slowCompactions = "tables wait to be compacted"
)

// slow returns why writers have to wait, or "". A commit that frees disk space does not wait for compactions.
func (f *Figures) slow(frees bool) string {
	switch {
	case f.memtables >= maxMemtables:
		return slowFlushes
	case f.sublevels >= maxSublevels && !frees:
		return slowCompactions
	}
	return ""
}

// resumed reports that writers go on, after a wait since began.
func (l *Log) resumed(began time.Time) {
	took := time.Since(began)
	l.Work.Stalled.Store(false)
	l.Work.Stalls.Observe(took)
	l.signals.Happened(event.Resumed, slog.LevelInfo, event.Event{Duration: took})
}

// progressed wakes KeepUp: a flush or a compaction has succeeded or failed.
func (l *Log) progressed() {
	select {
	case l.progress <- struct{}{}:
	default: // KeepUp will look
	}
}

// A tableTrouble has the results of the last attempts of one kind, flushes or compactions. Pebble tries again
// at once, as often as it takes; so after a failure each attempt waits twice as long as the one before.
// Nothing is lost meanwhile: the log has all data to flush, and the tables to compact still exist. But
// memtables that cannot be flushed fill the memory, so writes are refused after some failures.
//
// An attempt counts as a whole: if it has written three tables and finds no room for the fourth, it has
// failed. The zero value has no failure. Safe for concurrent use.
type tableTrouble struct {
	mu    sync.Mutex // guards the fields below
	fails int        // in a row
	last  error      // of the latest attempt; nil: success
	until time.Time  // when the next attempt may begin
}

const (
	patience = 4           // failed attempts in a row that mean trouble
	maxRest  = time.Second // longest pause between two attempts
)

// ended records the result of an attempt.
func (t *tableTrouble) ended(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.fails, t.last, t.until = 0, nil, time.Time{}
		return
	}
	t.fails++
	t.last = err
	t.until = time.Now().Add(min(time.Millisecond<<min(t.fails, 16), maxRest))
}

// rest returns the pause before the next attempt.
func (t *tableTrouble) rest() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails == 0 {
		return 0
	}
	return max(0, time.Until(t.until))
}

// err returns the last failure if there is trouble, after patience failed attempts in a row; else nil.
func (t *tableTrouble) err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fails < patience {
		return nil
	}
	return t.last
}

// first returns the last failure, even a single one.
func (t *tableTrouble) first() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// Admit refuses a write of about so many bytes if there is no room for it, see Reserve.Admit. If flushes fail
// although there may be room, it refuses all writes except writes that free space, until a flush succeeds. It
// waits only for the disk to report its free space.
func (e *Engine) Admit(bytes int64, frees bool) error {
	if err := e.Log.flushes.err(); err != nil && !frees {
		return e.behind("what is in memory cannot be written into tables", err)
	}
	return e.Reserve.Admit(bytes, frees)
}

// behind returns the error of a refused write: the store cannot catch up. what names the failing work, err is
// the error of the last attempt.
func (e *Engine) behind(what string, err error) error {
	if fault.IsDiskFull(err) {
		return e.FullDisk(fmt.Errorf("%s: %w", what, err))
	}
	return fault.ReadError(fmt.Errorf("%s, which is tried again all the time: %w", what, err), "store in %s",
		e.Dir)
}

// FlushAll is the function FlushAll with the error of a full disk as a *fault.DiskFullError.
func (e *Engine) FlushAll(ctx context.Context) error {
	return e.FullDisk(FlushAll(ctx, e.DB, e.Log))
}

// FlushAll writes the memtables to tables and returns when the tables are durable. If that fails, Pebble
// tries forever. FlushAll gives up after openingTries failed flushes, when tableTrouble reports trouble, or
// when the context ends. The log keeps the unflushed data, and Pebble goes on trying. Concurrent calls may
// take each other's signal of a failure, and then wait for a few tries more.
func FlushAll(ctx context.Context, kv *pebble.DB, log *Log) error {
	select {
	case <-log.unflushed: // of earlier failures
	default:
	}
	flushed, err := kv.AsyncFlush()
	if err != nil {
		return err
	}
	for tries := 0; tries < openingTries; tries++ {
		select {
		case <-flushed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-log.unflushed:
		}
		if err := errors.Join(log.Err(), log.flushes.err()); err != nil {
			return err
		}
	}
	return errors.New("the tables of what is in memory could not be written, which will be tried again")
}
