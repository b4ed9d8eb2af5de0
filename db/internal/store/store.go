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

// PebbleFormat pins Pebble's own format, so that a newer library does not
// migrate a database by being linked.
const PebbleFormat = pebble.FormatValueSeparation

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

// Log passes Pebble's words on, and keeps the failure after which the
// database refuses writes. What Pebble calls fatal must not end the process that
// embeds the database; failFS makes sure that nothing comes of going on.
type Log struct {
	signals *signal.Sender // nil: nobody hears
	Failed  atomic.Pointer[error]

	flushes, compactions tableTrouble

	// unflushed hears that a flush has failed; holds one.
	unflushed chan struct{}

	// trouble hears that the store could not do something in the background; holds one.
	trouble chan struct{}

	// progress hears that a flush or a compaction has ended; holds one.
	progress chan struct{}

	Work Work
}

func NewLog(s *signal.Sender) *Log {
	return &Log{signals: s, trouble: make(chan struct{}, 1), unflushed: make(chan struct{}, 1), progress: make(chan struct{}, 1)}
}

func (l *Log) Infof(format string, args ...any) {
	l.say(event.StoreMessage, slog.LevelDebug, format, args)
}

func (l *Log) Errorf(format string, args ...any) {
	l.say(event.StoreError, slog.LevelError, format, args)
}

func (l *Log) say(name event.Name, level slog.Level, format string, args []any) {
	if l.signals.Heard(context.Background(), level) {
		l.signals.Happened(name, level, event.Event{Attrs: []slog.Attr{slog.String("message", fmt.Sprintf(format, args...))}})
	}
}

func (l *Log) Fatalf(format string, args ...any) {
	l.Fail(fmt.Errorf(format, args...))
}

// Fail records the first failure.
func (l *Log) Fail(err error) {
	if l.Failed.CompareAndSwap(nil, &err) {
		l.signals.Happened(event.Failed, slog.LevelError, event.Event{Err: err})
	}
}

// Err returns the failure, wrapped in ErrFailed, or nil.
func (l *Log) Err() error {
	if err := l.Failed.Load(); err != nil {
		return fmt.Errorf("%w: close it and open it again: %w", fault.ErrFailed, *err)
	}
	return nil
}

// MissesFiles reports whether a store could not be opened because a file of it is
// gone or has another length, which Pebble does not call corruption.
func MissesFiles(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, pebble.ErrDBDoesNotExist) || errors.Is(err, pebble.ErrDBNotPristine) ||
		strings.Contains(err.Error(), "object size mismatch")
}

// A Config is what a store needs to know of the options of a database.
type Config struct {
	FS           vfs.FS
	CacheBytes   int64
	Cache        *pebble.Cache // of an open database; nil: the store makes one of cacheBytes
	ReserveBytes int64         // Options.ReserveBytes
	Room         *Reserve      // of an open database; nil: tables may fill the disk
	Signals      *signal.Sender
}

// An Engine is the store of a database with what keeps both from harm: the reserve of disk
// space, and the log of failures, after the first of which nothing is acknowledged. Safe for
// concurrent use.
type Engine struct {
	*pebble.DB // nil until it is open
	cfg        *Config
	Dir        string // of the database
	Log        *Log
	Reserve    *Reserve // nil: a repair keeps none
}

// NewEngine returns an engine whose store is to be opened.
func NewEngine(cfg *Config, dir string) *Engine {
	return &Engine{cfg: cfg, Dir: dir, Log: NewLog(cfg.Signals), Reserve: cfg.Room}
}

// Tables returns tables for the store when it has so many commits.
func (e *Engine) Tables(sequence uint64) *Tables {
	return newTables(e.DB, e.Log, e.cfg, e.Dir, sequence)
}

// Make makes an empty store. Pebble writes the first log of a new store
// before it takes up its format, so that the store is opened once for that.
func (e *Engine) Make(path string) (record.Identity, error) {
	i := record.Identity{Format: record.NewestFormat, UUID: record.NewUUID()}
	kv, err := Open(path, e.cfg, e.Log, true)
	if err != nil {
		return i, err
	}
	return i, errors.Join(i.Store(kv), e.Log.Err(), kv.Close())
}

// Check checks that a store is one of ours.
func (e *Engine) Check(path string) (record.Identity, error) {
	kv, err := Open(path, e.cfg, e.Log, false)
	if err != nil {
		return record.Identity{}, err
	}
	i, err := record.ReadIdentity(kv, e.Dir)
	return i, errors.Join(err, kv.Close())
}

// PebbleOptions returns the options of a store, which must exist unless create.
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
	po.MemTableStopWritesThreshold, po.L0StopWritesThreshold = noLimit, noLimit // see keepUp
	po.Experimental.DisableIngestAsFlushable = func() bool { return true }      // see Tables.ingest
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // an import asks for every key whether it is there
	}
	return po
}

// TableOptions returns the options of tables that a store is to take over. They
// go as low as they can, so that they are written like those of the lowest level.
func TableOptions(cfg *Config) sstable.WriterOptions {
	po := PebbleOptions(cfg, NewLog(cfg.Signals), false)
	po.EnsureDefaults()
	return po.MakeWriterOptions(len(po.Levels)-1, PebbleFormat.MaxTableFormat())
}

// Open opens the Pebble store at path, which must exist unless create.
func Open(path string, cfg *Config, logger *Log, create bool) (*pebble.DB, error) {
	po := PebbleOptions(cfg, logger, create)
	po.FS = &failFS{FS: cfg.FS, log: logger, dir: path, room: cfg.Room}
	kv, err := OpenPebble(path, po, logger)
	if err == nil && logger.Err() != nil {
		return nil, errors.Join(logger.Err(), kv.Close())
	}
	return kv, err
}
