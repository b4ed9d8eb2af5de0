package search

import (
	"log/slog"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/mih"
)

// ops are the calls that are counted by plan.
var ops = [...]event.Op{event.OpSearch, event.OpSearchRadius}

const plans = mih.PlanBlockScan + 1

// figures count finished searches. Safe for concurrent use.
type figures struct {
	byPlan [len(ops)][plans]signal.Latencies // searches answered
	all    signal.Latencies                  // answered calls of SearchAll
	errors atomic.Uint64                     // calls that returned an error
	hits   atomic.Uint64                     // items returned
}

// Searched counts a finished search and ends its span.
func (c *figures) Searched(call *signal.Call, op event.Op, plan mih.Plan, hits int, err error) {
	switch {
	case err != nil:
		c.errors.Add(1)
	case op == event.OpSearch:
		c.byPlan[0][plan].Observe(call.Took())
		c.hits.Add(uint64(hits))
	default:
		c.byPlan[1][plan].Observe(call.Took())
	}
	if call.Span != nil {
		if err != nil {
			call.Span.End(err)
			return
		}
		call.Span.End(nil, slog.String("plan", plan.String()), slog.Int("hits", hits))
	}
}

// SearchedAll counts a finished SearchAll and ends its span.
func (c *figures) SearchedAll(call *signal.Call, queries, hits int, err error) {
	if err != nil {
		c.errors.Add(1)
	} else {
		c.all.Observe(call.Took())
		c.hits.Add(uint64(hits))
	}
	if call.Span != nil {
		call.Span.End(err, slog.Int("queries", queries), slog.Int("hits", hits))
	}
}

// Activity fills in the figures of searches.
func (t *Tools) Activity(a *report.Activity) {
	f := &t.figures
	a.SearchErrors, a.Hits = f.errors.Load(), f.hits.Load()
	a.KeyCacheBytes, a.KeyCacheMisses = t.Keys.Size.Load(), t.Keys.Misses.Load()
	for i, op := range ops {
		for plan := range f.byPlan[i] {
			if l := f.byPlan[i][plan].Stats(); l.Count > 0 {
				a.Searches = append(a.Searches, report.SearchStats{Op: op, Plan: mih.Plan(plan).String(), Latencies: l})
			}
		}
	}
	if l := f.all.Stats(); l.Count > 0 {
		a.Searches = append(a.Searches, report.SearchStats{Op: event.OpSearchAll, Latencies: l})
	}
}
