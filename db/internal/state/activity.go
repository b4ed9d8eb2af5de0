package state

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
)

// writeFigures count finished calls of writers. Safe for concurrent use.
type writeFigures struct {
	writes    signal.Latencies // calls that stored something
	errors    atomic.Uint64
	conflicts atomic.Uint64 // part of errors
}

// Wrote counts a finished write and ends its span.
func (d *Database) Wrote(call *signal.Call, changes int, err error) {
	c := &d.calls
	if err != nil {
		c.errors.Add(1)
		if errors.Is(err, fault.ErrConflict) {
			c.conflicts.Add(1)
		}
	} else {
		c.writes.Observe(call.Took())
	}
	if call.Span != nil {
		call.Span.End(err, slog.Int("changes", changes))
	}
}

// Activity returns what the database has done and is doing, without the figures of the packages above.
func (d *Database) Activity() report.Activity {
	c, done, e := &d.calls, &d.Committer.Figures, d.Engine
	a := report.Activity{
		Writes: c.writes.Stats(), WriteErrors: c.errors.Load(), Conflicts: c.conflicts.Load(),
		ItemsPut: done.Put.Load(), ItemsDeleted: done.Deleted.Load(),
		Waiting: int(done.Waiting.Load()), Commits: done.Commits.Stats(), CommitRequests: done.Requests.Load(),
		CommitBytes: done.Bytes.Load(), Syncs: done.Syncs.Stats(),
		Cache: e.CacheStats(), Store: e.Stats(),
		Snapshots: d.Pinned(),
		Failed:    e.Log.Failed.Load() != nil, DiskFull: e.Reserve.Full.Load(),
		FreeBytes: e.Reserve.Found.Load(), ReserveBytes: e.Reserve.Left.Load(),
		EventsDropped: d.Signals.Lost(),
	}
	a.Running, a.Operations = d.Signals.Operations.Stats()
	_, ofStore := e.Log.Work.Ended.Stats()
	a.Operations = append(a.Operations, ofStore...)
	slices.SortFunc(a.Operations, func(a, b event.OperationStats) int { return strings.Compare(string(a.Op), string(b.Op)) })
	return a
}
