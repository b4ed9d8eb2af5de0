package db

import (
	"log/slog"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Writers must not be faster than flushes and compactions for long. Pebble makes them wait
// inside a commit or an ingestion, where nothing can end the wait: for ever, where no flush
// succeeds as the disk is full, or no compaction as a table is damaged. So its own limits are
// out of reach, and the committer waits here, before it takes up a request; where waiting
// is in vain the request is refused.
const (
	maxUnflushed = 2  // memtables that wait to be written; each has at most memtableBytes, or is one large commit
	maxSublevels = 12 // runs of tables in level 0, all of which a read may have to look at

	memtableBytes = 32 << 20
	noLimit       = 1 << 10 // of Pebble's, in either of these
)

// keepUp waits until the store may take another commit. What frees disk space does not wait
// for compactions.
func (l *storeLogger) keepUp(store *pebble.DB, frees bool) (err error) {
	began := time.Time{}
	defer func() {
		if !began.IsZero() {
			l.resumed(began)
		}
	}()
	for {
		f, reason := l.work.look(store), ""
		switch {
		case f.unflushed > maxUnflushed:
			reason, err = "memtables wait to be flushed", l.flushes.err()
		case f.sublevels >= maxSublevels && !frees:
			reason, err = "tables wait to be compacted", l.compactions.first()
		default:
			return nil
		}
		if err != nil {
			return err
		}
		if err := l.err(); err != nil {
			return err
		}
		if began.IsZero() {
			began = time.Now()
			l.work.stalled.Store(true)
			l.signals.happened(EventStalled, slog.LevelWarn, Event{Attrs: []slog.Attr{slog.String("reason", reason)}})
		}
		<-l.progress
	}
}

// resumed tells that writers go on.
func (l *storeLogger) resumed(began time.Time) {
	took := time.Since(began)
	l.work.stalled.Store(false)
	l.work.stalls.observe(took)
	l.signals.happened(EventResumed, slog.LevelInfo, Event{Duration: took})
}

// progressed wakes keepUp: a flush or a compaction has ended, in one way or another.
func (l *storeLogger) progressed() {
	select {
	case l.progress <- struct{}{}:
	default: // it will look
	}
}
