package db_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A histogram counts each time in the bucket whose bounds it is within, and its quantiles
// are at most twice those of the times.
func TestLatencies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOf(rapid.Custom(func(t *rapid.T) time.Duration {
			near := rapid.SampledFrom([]time.Duration{0, 1, time.Microsecond, 4096 * time.Microsecond,
				40 * time.Second}).Draw(t, "near")
			return near + time.Duration(rapid.Int64Range(-3, 1<<rapid.IntRange(0, 36).Draw(t, "bits")).Draw(t,
				"more"))
		})).Draw(t, "times")
		var l signal.Latencies
		want := event.Latencies{Count: uint64(len(times))}
		for i, d := range times {
			l.Observe(d)
			times[i] = max(d, 0)
			want.Sum += times[i]
			for b := range event.LatencyBuckets {
				if times[i] <= event.LatencyBound(b) {
					want.Buckets[b]++
					break
				}
			}
		}
		got := l.Stats()
		stopIf(t, got != want, "%v: %+v, want %+v", times, got, want)
		slices.Sort(times)
		for _, q := range []float64{0, .5, .99, 1} {
			if len(times) == 0 {
				stopIf(t, got.Quantile(q) != 0, "a quantile of nothing")
				continue
			}
			is := times[max(int(math.Ceil(q*float64(len(times)))), 1)-1]
			x := got.Quantile(q)
			stopIf(t, x < is && q > 0 || q > 0 && x > max(2*is, time.Microsecond) &&
				x != event.LatencyBound(event.LatencyBuckets-1), "%v: quantile %v is %v, not %v", times, q,
				is, x)
		}
	})
}

// What is counted is what was done.
func TestActivity(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(60, synth.Config{})
	putAll(t, c, items[:50]) // one batch
	for _, it := range items[50:] {
		need(c.Put(ctx, it))(t)
	}
	need(c.Merge(ctx, &db.Item{Key: "k1", Payload: []byte("x")}))(t)
	gives(t, 2)(c.Delete(ctx, "k0", "k1", "none"))
	err := c.PutIf(ctx, items[5], nil)
	stopIf(t, err == nil, "no conflict")
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, d.WaitForIndex(ctx))
	before := dbkit.MustStats(t, d).Activity
	if before.Writes.Count != 13 || before.WriteErrors != 1 || before.Conflicts != 1 ||
		before.ItemsPut != 61 || before.ItemsDeleted != 2 || before.Commits.Count != before.Syncs.Count ||
		before.CommitRequests < 13 || before.CommitBytes == 0 || before.Waiting != 0 ||
		len(before.Running) > 0 || before.Searches != nil {
		t.Errorf("%+v", before)
	}
	if i := slices.IndexFunc(before.Operations,
		func(o event.OperationStats) bool { return o.Op == event.OpTrain }); i < 0 ||
		before.Operations[i].Done != 1 {
		t.Errorf("%+v", before.Operations)
	}
	type kind struct{ op, plan string }
	want, hits := map[kind]uint64{}, 0
	for i, plan := range []db.Plan{db.PlanAuto, db.PlanMemory, db.PlanScan, db.PlanFilter, db.PlanDisk,
		db.PlanBlockScan, db.PlanAuto, db.PlanAuto} {
		q := db.Query{From: "text", Vector: items[i].Vectors["text"], K: 3 + i, Plan: plan,
			Where: "label = 'class1' OR year > 0"}
		e, _, err := c.Explain(ctx, q, -1) // not counted
		must(t, err)
		r, err := c.Search(ctx, q)
		must(t, err)
		want[kind{"search", e.Plan}]++
		hits += len(r.Hits)
		e, _, err = c.Explain(ctx, q, 4)
		stopIf(t, err != nil, "%v", err)
		runs, err := c.SearchRadius(ctx, q, 4)
		must(t, err)
		n := dbkit.MustStats(t, d).Activity.Snapshots
		failIf(t, n != 1, "%d are open", n)
		runs.Close()
		want[kind{"search_radius", e.Plan}]++
	}
	all := need(c.SearchAll(ctx, []db.Query{{Key: "k7"}, {Key: "k8", K: 2}}))(t)
	want[kind{"search_all", ""}]++
	hits += len(all[0].Hits) + len(all[1].Hits)
	_, err = c.Search(ctx, db.Query{Key: "none"})
	stopIf(t, err == nil, "found")
	a := dbkit.MustStats(t, d).Activity
	got := map[kind]uint64{}
	for _, s := range a.Searches {
		got[kind{string(s.Op), s.Plan}] = s.Count
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || a.Hits != uint64(hits) || a.SearchErrors != 1 ||
		a.Snapshots != 0 {
		t.Errorf("%v, want %v; %d hits, want %d; %d errors, %d open", got, want, a.Hits, hits, a.SearchErrors,
			a.Snapshots)
	}
	m := mustBackup(t, d, mustFolder(t), db.BackupOptions{})
	b := dbkit.MustStats(t, d).Activity.LastBackup
	failIf(t, b == nil || b.ID != m.ID || b.Sequence != m.Sequence || b.BytesTotal != m.BytesTotal,
		"%+v, not %+v", b, m)
}

// What goes on is told as long as it does.
func TestRunningOperations(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	var during []event.RunningOperation
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}
	opt.Progress = func(phase string, done, total int64) {
		if phase == "encode" && during == nil {
			during = dbkit.MustStats(t, d).Activity.Running
			failIf(t, len(during) == 1 && (during[0].Done != int64(done) || during[0].Total != int64(total)),
				"%+v, not %d of %d", during, done, total)
		}
	}
	dbkit.MustTrain(t, c, opt)
	failIf(t, len(during) != 1 || during[0].Op != event.OpTrain || during[0].Collection != "main" ||
		during[0].Stage != "encode", "%+v", during)
	// A callback that panics ends it, too.
	opt.Progress = func(string, int64, int64) { panic("the callback") }
	func() {
		defer func() { _ = recover() }()
		_, _ = c.Train(ctx, opt)
	}()
	must(t, d.WaitForIndex(ctx))
	a := dbkit.MustStats(t, d).Activity
	failIf(t, len(a.Running) != 0, "%+v", a.Running)
}

// Stats open no file, and ask for the sizes of files only where something has changed, or once a
// second, however often they are asked for.
func TestStatsReadNoDisk(t *testing.T) {
	var asking atomic.Bool
	var walks, others atomic.Int64
	fsys := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		// others go on in the background
		if !asking.Load() || !strings.Contains(string(debug.Stack()), "(*DB).Stats(") {
			return nil
		}
		switch {
		case op.Kind == errorfs.OpList && op.Path == "db":
			walks.Add(1)
		case op.Kind != errorfs.OpStat && op.Kind != errorfs.OpList:
			others.Add(1)
		}
		return nil
	}))
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, db.State(d).Engine.FlushAll(ctx))
	dbkit.MustStats(t, d)
	asking.Store(true)
	for range 100 {
		dbkit.MustStats(t, d)
	}
	asking.Store(false)
	// The store may still have told of a file or two that it has removed.
	if walks, others := walks.Load(), others.Load(); walks > 10 || others != 0 {
		t.Errorf("the folder was looked through %d times, and there were %d other calls of the file system",
			walks, others)
	}
	walks.Store(0)
	putAll(t, c, dbkit.Pairs(1, synth.Config{}))
	asking.Store(true)
	dbkit.MustStats(t, d)
	failIf(t, walks.Load() != 1, "after a write the folder was looked through %d times", walks.Load())
	asking.Store(false)
}

// spans is a Tracer that notes its calls, which the database may make at once.
type spans struct {
	mu     sync.Mutex
	calls  []event.Call
	inside []string // what the context says that the call was made in
	ends   []string
}

type spanKey struct{}

func (s *spans) Start(ctx context.Context, call event.Call) (context.Context, event.Span) {
	in, _ := ctx.Value(spanKey{}).(string)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.inside = append(s.calls, call), append(s.inside, in)
	return context.WithValue(ctx, spanKey{}, string(call.Op)), &endOfSpan{s, call.Op}
}

type endOfSpan struct {
	s  *spans
	op event.Op
}

func (e *endOfSpan) End(err error, attrs ...slog.Attr) {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.ends = append(e.s.ends, fmt.Sprint(e.op, " ", err != nil, " ", attrs))
}

// Each call has one span, which ends with it.
func TestTracer(t *testing.T) {
	var s spans
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), Tracer: &s})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
	need(c.Put(ctx, &db.Item{Key: "a", Code: []byte{1}}))(t)
	q := db.Query{Code: []byte{1}, Plan: db.PlanScan}
	need(c.Search(context.WithValue(ctx, spanKey{}, "request"), q))(t)
	_, err := c.Search(ctx, db.Query{Code: []byte{1, 2}})
	stopIf(t, err == nil, "found")
	runs := must1[*db.Runs](t)(c.SearchRadius(ctx, q, 1))
	stopIf(t, runs.Close() != nil, "the runs do not close")
	need(c.SearchAll(ctx, []db.Query{q, q}))(t)
	must(t, d.Compact(ctx))
	var ops []string
	for i, call := range s.calls {
		if call.Op == event.OpIndex {
			failIf(t, s.inside[i] != "compact", "a span of indexing within %q", s.inside[i])
			continue
		}
		ops = append(ops, string(call.Op)+" "+s.inside[i])
		failIf(t, call.Dir != db.State(d).Engine.Dir, "%+v", call)
	}
	want := []string{"write ", "search request", "search ", "search_radius ", "search_all ", "compact "}
	failIf(t, !slices.Equal(ops, want), "%q, want %q", ops, want)
	for _, want := range []string{
		"write false [changes=1]", "search false [plan=scan hits=1]", "search true []",
		"search_radius false [plan=scan hits=1]", "search_all false [queries=2 hits=2]", "compact false []",
	} {
		failIf(t, !slices.Contains(s.ends, want), "%q has no %q", s.ends, want)
	}
	dbkit.MustClose(t, d)
	failIf(t, len(s.ends) != len(s.calls), "%d spans, %d ends", len(s.calls), len(s.ends))
}

// What is indexed as it comes has no span of its own.
func TestTracerOfBackground(t *testing.T) {
	t.Parallel()
	var s spans
	indexed := make(chan *event.Event, 64)
	d := dbkit.MustOpen(t, "db",
		&db.Options{FS: vfs.NewMem(), Tracer: &s, EventListener: func(_ context.Context, e *event.Event) {
			if e.Name == "fddhdb.index.done" {
				indexed <- e
			}
		}})
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	b := d.NewBatch()
	for i := range 20_000 {
		b.Put(c, &db.Item{Key: fmt.Sprint(i), Code: codeAt(i)})
	}
	must(t, b.Commit(ctx))
	select {
	case <-indexed:
	case <-time.After(time.Minute):
		t.Error("nothing was indexed in a minute")
	}
	dbkit.MustClose(t, d)
	for _, call := range s.calls {
		failIf(t, call.Op == event.OpIndex, "%+v", call)
	}
}
