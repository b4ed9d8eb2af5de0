package db

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/mih"
)

// searchOps are the calls that Activity.Searches tells of by plan.
var searchOps = [...]event.Op{event.OpSearch, event.OpSearchRadius, event.OpCountRadius}

const plans = mih.PlanBlockScan + 1

// counters are what Activity is made of. Safe for concurrent use.
type counters struct {
	opened       time.Time
	searches     [len(searchOps)][plans]signal.Latencies
	searchAll    signal.Latencies
	searchErrors atomic.Uint64
	hits         atomic.Uint64

	writes      signal.Latencies
	writeErrors atomic.Uint64
	conflicts   atomic.Uint64

	lost       atomic.Uint64 // commits
	lastBackup atomic.Pointer[LastBackup]
}

// searched counts a search that has ended, and ends its span.
func (c *counters) searched(call *signal.Call, op event.Op, plan mih.Plan, hits int, err error) {
	switch {
	case err != nil:
		c.searchErrors.Add(1)
	case op == event.OpSearch:
		c.searches[0][plan].Observe(call.Took())
		c.hits.Add(uint64(hits))
	case op == event.OpSearchRadius:
		c.searches[1][plan].Observe(call.Took())
	default:
		c.searches[2][plan].Observe(call.Took())
	}
	if call.Span != nil {
		if err != nil {
			call.Span.End(err)
			return
		}
		call.Span.End(nil, slog.String("plan", plan.String()), slog.Int("hits", hits))
	}
}

// searchedAll counts a SearchAll that has ended, and ends its span.
func (c *counters) searchedAll(call *signal.Call, queries, hits int, err error) {
	if err != nil {
		c.searchErrors.Add(1)
	} else {
		c.searchAll.Observe(call.Took())
		c.hits.Add(uint64(hits))
	}
	if call.Span != nil {
		call.Span.End(err, slog.Int("queries", queries), slog.Int("hits", hits))
	}
}

// iterated counts an iteration that has ended, and ends its span. Its time is not counted: it
// depends on the loop that reads the hits.
func (c *counters) iterated(call *signal.Call, hits int, err error) {
	c.hits.Add(uint64(hits))
	if err != nil {
		c.searchErrors.Add(1)
	}
	if call.Span != nil {
		call.Span.End(err, slog.Int("hits", hits))
	}
}

// wrote counts a write that has ended, and ends its span.
func (c *counters) wrote(call *signal.Call, changes int, err error) {
	if err != nil {
		c.writeErrors.Add(1)
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
