package store

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
)

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
			e.Log.signals.Happened(event.Stalled, slog.LevelWarn, event.Event{Attrs: []slog.Attr{slog.String("reason", reason)}})
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
