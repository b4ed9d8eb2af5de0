package db

import (
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"

	"github.com/fddhdb/fddhdb/codec"
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

// storeLogger passes Pebble's words on. Pebble reports a failed write of its
// log or manifest by Fatalf and expects the process to end; a library must not
// do that to its host, so the failure is kept and the database refuses further
// writes.
type storeLogger struct {
	log    *slog.Logger
	failed atomic.Pointer[error]
}

func (l *storeLogger) Infof(format string, args ...any) {
	l.log.Debug("store", "message", fmt.Sprintf(format, args...))
}

func (l *storeLogger) Errorf(format string, args ...any) {
	l.log.Error("store", "message", fmt.Sprintf(format, args...))
}

func (l *storeLogger) Fatalf(format string, args ...any) {
	l.fail(fmt.Errorf(format, args...))
}

// fail records the first failure.
func (l *storeLogger) fail(err error) {
	if l.failed.CompareAndSwap(nil, &err) {
		l.log.Error("database has failed", "error", err)
	}
}

// err returns the failure, wrapped in ErrFailed, or nil.
func (l *storeLogger) err() error {
	if err := l.failed.Load(); err != nil {
		return fmt.Errorf("%w: %w: close it and open it again", ErrFailed, *err)
	}
	return nil
}

// openStore opens the Pebble store at path, which must exist unless create.
func openStore(path string, opts *Options, logger *storeLogger, create bool) (*pebble.DB, error) {
	po := &pebble.Options{
		FS:                 opts.FS,
		FormatMajorVersion: storeFormat,
		Merger:             merger,
		Logger:             logger,
		CacheSize:          opts.CacheBytes,
		MemTableSize:       32 << 20,
		ErrorIfNotExists:   !create,
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10) // an import asks for every key whether it is there
	}
	return pebble.Open(path, po)
}
