package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/signal"
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
	return &Log{signals: s, trouble: make(chan struct{}, 1), unflushed: make(chan struct{}, 1), progress: make(chan struct{}, 1)}
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
		l.signals.Happened(name, level, event.Event{Attrs: []slog.Attr{slog.String("message", fmt.Sprintf(format, args...))}})
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
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, pebble.ErrDBNotPristine) ||
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
