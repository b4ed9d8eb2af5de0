package db

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

// storeFormat pins Pebble's own format, so that a newer library does not
// migrate a database by being linked.
const storeFormat = pebble.FormatValueSeparation

// mergerName stands in every store; changing it makes old ones unreadable.
const mergerName = "fddhdb.blocks-and-layers"

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

// valueMerger fits codec.Merger to Pebble's interface.
type valueMerger struct{ m *codec.Merger }

func (v valueMerger) MergeNewer(value []byte) error { v.m.Newer(value); return nil }
func (v valueMerger) MergeOlder(value []byte) error { v.m.Older(value); return nil }
func (v valueMerger) Finish(includesBase bool) ([]byte, io.Closer, error) {
	b, err := v.m.Finish(includesBase)
	return b, nil, err
}

// storeLogger passes Pebble's words on, and keeps the failure after which the
// database refuses writes. What Pebble calls fatal must not end the process that
// embeds the database; failFS makes sure that nothing comes of going on.
type storeLogger struct {
	signals *signal.Sender // nil: nobody hears
	failed  atomic.Pointer[error]

	flushes, compactions tableTrouble

	// unflushed hears that a flush has failed; holds one.
	unflushed chan struct{}

	// trouble hears that the store could not do something in the background; holds one.
	trouble chan struct{}

	// progress hears that a flush or a compaction has ended; holds one.
	progress chan struct{}

	work storeWork
}

func newStoreLogger(s *signal.Sender) *storeLogger {
	return &storeLogger{signals: s, trouble: make(chan struct{}, 1), unflushed: make(chan struct{}, 1), progress: make(chan struct{}, 1)}
}

func (l *storeLogger) Infof(format string, args ...any) {
	l.say(event.StoreMessage, slog.LevelDebug, format, args)
}

func (l *storeLogger) Errorf(format string, args ...any) {
	l.say(event.StoreError, slog.LevelError, format, args)
}

func (l *storeLogger) say(name event.Name, level slog.Level, format string, args []any) {
	if l.signals.Heard(context.Background(), level) {
		l.signals.Happened(name, level, event.Event{Attrs: []slog.Attr{slog.String("message", fmt.Sprintf(format, args...))}})
	}
}

func (l *storeLogger) Fatalf(format string, args ...any) {
	l.fail(fmt.Errorf(format, args...))
}

// fail records the first failure.
func (l *storeLogger) fail(err error) {
	if l.failed.CompareAndSwap(nil, &err) {
		l.signals.Happened(event.Failed, slog.LevelError, event.Event{Err: err})
	}
}

// err returns the failure, wrapped in ErrFailed, or nil.
func (l *storeLogger) err() error {
	if err := l.failed.Load(); err != nil {
		return fmt.Errorf("%w: close it and open it again: %w", fault.ErrFailed, *err)
	}
	return nil
}

// missesFiles reports whether a store could not be opened because a file of it is
// gone or has another length, which Pebble does not call corruption.
func missesFiles(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, pebble.ErrDBNotPristine) ||
		strings.Contains(err.Error(), "object size mismatch")
}

// A storeConfig is what a store needs to know of the options of a database.
type storeConfig struct {
	fs           vfs.FS
	cacheBytes   int64
	cache        *pebble.Cache // of an open database; nil: the store makes one of cacheBytes
	reserveBytes int64         // Options.ReserveBytes
	room         *reserve      // of an open database; nil: tables may fill the disk
	signals      *signal.Sender
}

// An engine is the store of a database with what keeps both from harm: the reserve of disk
// space, and the log of failures, after the first of which nothing is acknowledged. Safe for
// concurrent use.
type engine struct {
	*pebble.DB // nil until it is open
	cfg        *storeConfig
	dir        string // of the database
	log        *storeLogger
	reserve    *reserve // nil: a repair keeps none
}

// newEngine returns an engine whose store is to be opened.
func newEngine(cfg *storeConfig, dir string) *engine {
	return &engine{cfg: cfg, dir: dir, log: newStoreLogger(cfg.signals), reserve: cfg.room}
}

// tables returns tables for the store when it has so many commits.
func (e *engine) tables(sequence uint64) *bulkTables {
	return newBulkTables(e.DB, e.log, e.cfg, e.dir, sequence)
}

// makeStore makes an empty store. Pebble writes the first log of a new store
// before it takes up its format, so that the store is opened once for that.
func (e *engine) makeStore(path string) (record.Identity, error) {
	i := record.Identity{Format: record.NewestFormat, UUID: record.NewUUID()}
	kv, err := openStore(path, e.cfg, e.log, true)
	if err != nil {
		return i, err
	}
	return i, errors.Join(i.Store(kv), e.log.err(), kv.Close())
}

// checkStore checks that a store is one of ours.
func (e *engine) checkStore(path string) (record.Identity, error) {
	kv, err := openStore(path, e.cfg, e.log, false)
	if err != nil {
		return record.Identity{}, err
	}
	i, err := record.ReadIdentity(kv, e.dir)
	return i, errors.Join(err, kv.Close())
}

// storeOptions returns the options of a store, which must exist unless create.
func storeOptions(cfg *storeConfig, logger *storeLogger, create bool) *pebble.Options {
	po := &pebble.Options{
		FS:                 &failFS{FS: cfg.fs, log: logger},
		FormatMajorVersion: storeFormat,
		Merger:             merger,
		Logger:             logger,
		CacheSize:          cfg.cacheBytes,
		Cache:              cfg.cache,
		MemTableSize:       memtableBytes,
		ErrorIfNotExists:   !create,
		EventListener:      logger.listener(),
	}
	po.MemTableStopWritesThreshold, po.L0StopWritesThreshold = noLimit, noLimit // see keepUp
	po.Experimental.DisableIngestAsFlushable = func() bool { return true }      // see bulkTables.ingest
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // an import asks for every key whether it is there
	}
	return po
}

// tableOptions returns the options of tables that a store is to take over. They
// go as low as they can, so that they are written like those of the lowest level.
func tableOptions(cfg *storeConfig) sstable.WriterOptions {
	po := storeOptions(cfg, newStoreLogger(cfg.signals), false)
	po.EnsureDefaults()
	return po.MakeWriterOptions(len(po.Levels)-1, storeFormat.MaxTableFormat())
}

// openStore opens the Pebble store at path, which must exist unless create.
func openStore(path string, cfg *storeConfig, logger *storeLogger, create bool) (*pebble.DB, error) {
	po := storeOptions(cfg, logger, create)
	po.FS = &failFS{FS: cfg.fs, log: logger, dir: path, room: cfg.room}
	kv, err := openPebble(path, po, logger)
	if err == nil && logger.err() != nil {
		return nil, errors.Join(logger.err(), kv.Close())
	}
	return kv, err
}
