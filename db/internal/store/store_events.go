package store

import (
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/signal"
)

// Work is what the store does by itself, as it tells, under its locks. Safe for
// concurrent use.
type Work struct {
	Flushes, Compactions atomic.Int64 // that are going on
	Stalled              atomic.Bool
	Stalls               signal.Latencies
	Ended                signal.Operations

	Changes atomic.Uint64 // of its files and figures
	looking sync.Mutex
	seen    atomic.Uint64 // changes, when its figures were last looked at
	Figures atomic.Pointer[Figures]
}

// listener returns what the store tells.
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
				err = nil // nothing was in memory
			}
			l.flushes.ended(err)
			if info.Err != nil {
				select {
				case l.unflushed <- struct{}{}:
				default: // it is known
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
				err = nil // in favour of tables that are taken over
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
		// Whoever reads what is damaged gets an error; the rest goes on. By
		// default this would be fatal.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			l.signals.Happened(event.Corruption, slog.LevelError, event.Event{Err: info.Details, Attrs: []slog.Attr{slog.String("file", info.Path)}})
		},
	}
}

// ended counts a flush or a compaction, and tells of it.
func (l *Log) ended(op event.Op, took time.Duration, bytes int64, err error) {
	l.Work.Ended.Count(op, took, err != nil, false)
	e := event.Event{Op: op, Phase: event.PhaseDone, Bytes: bytes, Duration: took, Err: err}
	level := slog.LevelDebug
	if err != nil {
		e.Phase, level = event.PhaseFailed, slog.LevelError
	}
	l.signals.Happened(event.NameOf(op, e.Phase), level, e)
}

// Figures are what the store knows of itself.
type Figures struct {
	Live, Obsolete        int64 // bytes on disk
	Memory                int64 // bytes, without the cache of blocks
	Tables, Amplification int
	memtables             int64 // bytes
	sublevels             int   // runs of tables in level 0
	Debt                  int64
}

// Look returns the figures of the store. It looks at them anew where something has
// changed, which takes a lock of the store for some microseconds, so that asking often
// costs nothing; while somebody else looks it returns what was known before.
func (w *Work) Look(kv *pebble.DB) *Figures {
	if changes := w.Changes.Load(); changes != w.seen.Load() && w.looking.TryLock() {
		w.seen.Store(changes)
		w.Figures.Store(FiguresOf(kv.Metrics()))
		w.looking.Unlock()
	}
	return w.Figures.Load()
}

func FiguresOf(m *pebble.Metrics) *Figures {
	f := &Figures{
		Obsolete: int64(m.WAL.ObsoletePhysicalSize +
			m.Table.Local.ObsoleteSize + m.Table.Local.ZombieSize +
			m.BlobFiles.Local.ObsoleteSize + m.BlobFiles.Local.ZombieSize),
		Memory: int64(m.MemTable.Size + m.MemTable.ZombieSize),
		Tables: int(m.Total().TablesCount), Amplification: m.ReadAmp(),
		memtables: int64(m.MemTable.Size), sublevels: int(m.Levels[0].Sublevels), Debt: int64(m.Compact.EstimatedDebt),
	}
	f.Live = int64(m.DiskSpaceUsage()) - f.Obsolete
	return f
}
