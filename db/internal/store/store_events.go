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
	"github.com/fddhdb/fddhdb/db/report"
)

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
			l.signals.Happened(event.Corruption, slog.LevelError, event.Event{Err: info.Details, Attrs: []slog.Attr{slog.String("file", info.Path)}})
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
		memtables: int64(m.MemTable.Size), sublevels: int(m.Levels[0].Sublevels), Debt: int64(m.Compact.EstimatedDebt),
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
