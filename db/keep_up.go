package db

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/db/event"
)

// Writers must not be faster than flushes and compactions for long. Pebble makes them wait
// inside a commit or an ingestion, where nothing can end the wait: for ever, where no flush
// succeeds as the disk is full, or no compaction as a table is damaged. So its own limits are
// out of reach, and the committer waits here, before it takes up a request; where waiting
// is in vain the request is refused.
const (
	maxMemtables = 3 * memtableBytes // bytes of all: one that is written to, and two that are flushed
	maxSublevels = 12                // runs of tables in level 0, all of which a read may have to look at

	memtableBytes = 32 << 20
	noLimit       = 1 << 10 // of Pebble's, in either of these
)

// keepUp waits until the store may take another commit. What frees disk space does not wait
// for compactions.
func (e *engine) keepUp(frees bool) error {
	if f := e.log.work.look(e.DB); f != nil && f.slow(frees) == "" {
		return nil
	}
	began := time.Time{}
	defer func() {
		if !began.IsZero() {
			e.log.resumed(began)
		}
	}()
	for {
		// The figures are fresh: cached ones may be older than the last flush or compaction,
		// and nothing would end the wait.
		reason := figuresOf(e.DB.Metrics()).slow(frees)
		switch reason {
		case "":
			return nil
		case slowFlushes:
			if err := e.log.flushes.err(); err != nil {
				return e.behind("what is in memory cannot be written into tables", err)
			}
		case slowCompactions:
			err := e.log.compactions.err()
			if one := e.log.compactions.first(); pebble.IsCorruptionError(one) {
				err = one // another try will not help
			}
			if err != nil {
				return e.behind("tables cannot be compacted", err)
			}
		}
		if err := e.log.err(); err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
			e.log.work.stalled.Store(true)
			e.log.signals.Happened(event.Stalled, slog.LevelWarn, event.Event{Attrs: []slog.Attr{slog.String("reason", reason)}})
		}
		<-e.log.progress
	}
}

// Reasons to wait, as events tell them.
const (
	slowFlushes     = "memtables wait to be flushed"
	slowCompactions = "tables wait to be compacted"
)

// slow returns why writers have to wait, or "". What frees disk space does not wait for
// compactions.
func (f *storeFigures) slow(frees bool) string {
	switch {
	case f.memtables >= maxMemtables:
		return slowFlushes
	case f.sublevels >= maxSublevels && !frees:
		return slowCompactions
	}
	return ""
}

// resumed tells that writers go on.
func (l *storeLogger) resumed(began time.Time) {
	took := time.Since(began)
	l.work.stalled.Store(false)
	l.work.stalls.Observe(took)
	l.signals.Happened(event.Resumed, slog.LevelInfo, event.Event{Duration: took})
}

// progressed wakes keepUp: a flush or a compaction has ended, in one way or another.
func (l *storeLogger) progressed() {
	select {
	case l.progress <- struct{}{}:
	default: // it will look
	}
}
