package db_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/signal"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/internal/testfs"
	"github.com/fddhdb/fddhdb/model/fit"
)

// heard collects events, in the order in which they come.
type heard struct {
	mu  sync.Mutex
	all []*event.Event
}

func (h *heard) listen(_ context.Context, e *event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

// of returns the events of a name.
func (h *heard) of(name event.Name) (some []*event.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		if e.Name == name {
			some = append(some, e)
		}
	}
	return some
}

func attrOf(e *event.Event, key string) (v slog.Value) {
	for _, a := range e.Attributes() {
		if a.Key == key {
			v = a.Value
		}
	}
	return v
}

// logged is a handler that keeps what is logged, as text.
type logged struct {
	mu    sync.Mutex
	lines []string
}

func (r *logged) Enabled(context.Context, slog.Level) bool { return true }
func (r *logged) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *logged) WithGroup(string) slog.Handler            { return r }
func (r *logged) Handle(_ context.Context, x slog.Record) error {
	var attrs []slog.Attr
	x.Attrs(func(a slog.Attr) bool { attrs = append(attrs, a); return true })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, fmt.Sprint(x.Time.UnixNano(), x.Level, x.Message, attrs))
	return nil
}

// What a database does is told as it says itself, from begin to end, and the log has the same.
func TestEvents(t *testing.T) {
	t.Parallel()
	var h heard
	var log logged
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), EventListener: h.listen,
		Logger: slog.New(&log)})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(80, synth.Config{})
	putAll(t, c, items[:60])
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}
	first := dbkit.MustTrain(t, c, opt)
	putAll(t, c, items[60:])
	update := need(c.Update(ctx, db.UpdateOptions{}))(t)
	reindexed := need(c.Reindex(ctx, db.ReindexOptions{}))(t)
	must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "place", Type: db.String}},
		IndexFields: []string{"title"},
		Encoders:    []db.Encoder{{"text", db.InputText, []string{"encode"}, nil, false}}}))
	must(t, c.RenameLabel(ctx, items[0].Labels[0], "renamed"))
	repo := mustFolder(t)
	m := need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	must(t, errors.Join(
		c.Activate(ctx, reindexed.Space), c.Activate(ctx, reindexed.Space), errOf(c.Rollback(ctx)),
		c.DropSpace(ctx, reindexed.Space),
		d.Checkpoint(ctx, "copy", db.CheckpointOptions{IndexOnly: true}), d.Compact(ctx),
		errOf(d.Verify(ctx, db.VerifyOptions{},
			func(f report.Finding) error { return errors.New(f.String()) })),
	))
	cancelled, cancel := context.WithCancel(ctx)
	opt.Progress = func(string, int64, int64) { cancel() }
	errorIs(t, errOf(c.Train(cancelled, opt)), context.Canceled)
	_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 7}})
	stopIf(t, err == nil, "trained with 7 bits")
	need(db.Restore(ctx, repo, "again", &db.Options{FS: db.OptionsOf(d).FS, EventListener: h.listen},
		db.RestoreOptions{}))(t)
	must(t, d.DropCollection(ctx, "main"))
	dbkit.MustClose(t, d)

	type fields struct {
		Collection      string
		Space, Revision uint32
		Items, Bytes    int64
		Level           slog.Level
	}
	for name, want := range map[event.Name][]fields{
		"fddhdb.database.opened":    {{}},
		"fddhdb.collection.created": {{Collection: "main"}},
		"fddhdb.train.done": {{Collection: "main", Space: uint32(first.Space), Revision: 1,
			Items: int64(first.Items)}},
		"fddhdb.train.failed": {{Collection: "main"}, {Collection: "main", Level: slog.LevelWarn}},
		"fddhdb.update.done": {{Collection: "main", Space: uint32(first.Space),
			Revision: update.Revision, Items: int64(update.Items)}},
		"fddhdb.reindex.done": {{Collection: "main", Space: uint32(reindexed.Space),
			Revision: reindexed.Revision, Items: 80}},
		"fddhdb.space.activated": {{Collection: "main", Space: uint32(reindexed.Space)},
			{Collection: "main", Space: uint32(first.Space)}},
		"fddhdb.space.dropped":      {{Collection: "main", Space: uint32(reindexed.Space)}},
		"fddhdb.collection.altered": {{Collection: "main"}},
		"fddhdb.label.renamed":      {{Collection: "main"}},
		"fddhdb.backup.done":        {{Bytes: m.BytesTotal}},
		"fddhdb.restore.done":       {{Bytes: m.BytesTotal}},
		"fddhdb.checkpoint.done":    {{}},
		"fddhdb.compact.done":       {{}},
		"fddhdb.verify.done":        {{Items: 80}},
		"fddhdb.collection.dropped": {{Collection: "main"}},
		"fddhdb.database.closed":    {{}},
		"fddhdb.database.failed":    nil,
		"fddhdb.store.error":        nil,
	} {
		var got []fields
		for _, e := range h.of(name) {
			got = append(got, fields{e.Collection, e.Space, e.Revision, e.Items, e.Bytes, e.Level})
		}
		failIf(t, !slices.Equal(got, want), "%s: %+v, want %+v", name, got, want)
	}
	if e := h.of("fddhdb.backup.done")[0]; attrOf(e, "id").String() != m.ID ||
		attrOf(e, "bytes_new").Int64() != m.BytesNew || e.Dir != db.State(d).Engine.Dir {
		t.Errorf("%+v", e)
	}
	e := h.of("fddhdb.train.failed")[0]
	failIf(t, !errors.Is(e.Err, context.Canceled), "%+v", e)
	checkOrder(t, h.all)
	var lines []string
	for _, e := range h.all {
		if e.Op != event.OpRestore {
			lines = append(lines, fmt.Sprint(e.Time.UnixNano(), e.Level, e.Name, e.Attributes()))
		}
	}
	// of the restore
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, "again") })
	failIf(t, !slices.Equal(lines, log.lines), "logged %d, heard of %d", len(log.lines), len(lines))
	documented := eventsInTable(t)
	for _, e := range h.all {
		checkDocumented(t, documented, e)
	}
}

// checkOrder checks that each operation begins before it goes on, and ends once.
func checkOrder(t *testing.T, all []*event.Event) {
	t.Helper()
	type one struct {
		op     event.Op
		number uint64
	}
	phases := map[one][]event.Phase{}
	for _, e := range all {
		if e.Operation != 0 {
			phases[one{e.Op, e.Operation}] = append(phases[one{e.Op, e.Operation}], e.Phase)
		}
		failIf(t, e.Op != "" && e.Name != event.NameOf(e.Op, e.Phase) || e.Time.IsZero() || e.Dir == "",
			"%+v", e)
	}
	failIf(t, len(phases) == 0, "no operation")
	for what, p := range phases {
		for i, phase := range p {
			last := phase == event.PhaseDone || phase == event.PhaseFailed
			if (i == 0) != (phase == event.PhaseBegin) || (i == len(p)-1) != last {
				t.Errorf("%v: %v", what, p)
				break
			}
		}
	}
}

// A listener may be slow and may use the database: nothing waits for it but Close.
func TestListenerUsesTheDatabase(t *testing.T) {
	goOn, entered, opened := make(chan struct{}), make(chan struct{}), make(chan *db.DB, 1)
	var found []string
	listener := func(ctx context.Context, e *event.Event) {
		if e.Name != event.CollectionCreated {
			return
		}
		d := <-opened
		close(entered)
		<-goOn
		names, err := d.Collections()
		c, cerr := d.CreateCollection(ctx, "of-the-listener", db.Schema{Bits: 8})
		if err = errors.Join(err, cerr); err == nil {
			_, err = c.Put(ctx, &db.Item{Key: "x", Code: []byte{1}})
		}
		fine(t, err)
		found = names
	}
	d := dbkit.MustOpen(t, "db",
		&db.Options{FS: vfs.NewMem(), EventListener: func(ctx context.Context, e *event.Event) {
			if e.Collection != "of-the-listener" {
				listener(ctx, e)
			}
		}})
	opened <- d
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
	<-entered
	for i := range 2 * signal.MaxQueuedEvents {
		level := slog.LevelInfo
		if i >= signal.MaxQueuedEvents {
			level = slog.LevelError
		}
		db.State(d).Signals.Happened("test", level, event.Event{Items: int64(i)})
	}
	need(c.Put(ctx, &db.Item{Key: "a", Code: []byte{1}}))(t)
	// Half of the room is for errors.
	n := dbkit.MustStats(t, d).Activity.EventsDropped
	failIf(t, n != signal.MaxQueuedEvents, "%d events were dropped", n)
	close(goOn)
	db.State(d).Signals.Wait()
	failIf(t, !slices.Equal(found, []string{"main"}), "the listener found %v", found)
	dbkit.MustClose(t, d)
}

// A listener that panics, or ends its goroutine as t.FailNow does, hears of nothing any more;
// the log says so, and the database goes on.
func TestListenerPanics(t *testing.T) {
	t.Run("panic", func(t *testing.T) { testListenerEnds(t, func() { panic("the listener") }) })
	t.Run("goexit", func(t *testing.T) { testListenerEnds(t, runtime.Goexit) })
}

func testListenerEnds(t *testing.T, end func()) {
	var log logged
	calls := 0
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), Logger: slog.New(&log),
		EventListener: func(context.Context, *event.Event) {
			calls++
			end()
		}})
	need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
	dbkit.MustClose(t, d)
	n := 0
	for _, l := range log.lines {
		if strings.Contains(l, string(event.ListenerPanicked)) {
			n++
		}
	}
	failIf(t, calls != 1 || n != 1 || !strings.Contains(log.lines[len(log.lines)-1], string(event.Closed)),
		"%d calls, %d said so: %q", calls, n, log.lines)
}

// What happens to a database: its disk breaks, it has lost commits, its disk is full.
func TestEventsOfTrouble(t *testing.T) {
	t.Run("failed", func(t *testing.T) {
		var h heard
		fsys, broken := breakable()
		d, c := openNew(t, "db", &db.Options{FS: fsys, EventListener: h.listen}, db.Schema{Bits: 8})
		broken.Store(true)
		for range 2 {
			errorIs(t, errOf(c.Put(ctx, &db.Item{Key: "a", Code: []byte{1}})), db.ErrFailed)
		}
		a := dbkit.MustStats(t, d).Activity
		failIf(t, !a.Failed || a.WriteErrors != 2, "%+v", a)
		_ = d.Close()
		e := h.of(event.Failed)
		failIf(t, len(e) != 1 || !strings.Contains(e[0].Err.Error(), "the disk is gone") ||
			e[0].Level != slog.LevelError, "%+v", e)
	})
	t.Run("missing commits", func(t *testing.T) {
		var h heard
		mem := killed(t, 9, 7, db.Options{NoSync: true})
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem, EventListener: h.listen})
		lost := d.Recovery().Missing()
		a := dbkit.MustStats(t, d).Activity
		failIf(t, a.LostCommits != lost, "%d commits are lost, not %d", a.LostCommits, lost)
		if lost > 0 {
			need(d.AcknowledgeLosses(ctx))(t)
		}
		a = dbkit.MustStats(t, d).Activity
		failIf(t, a.LostCommits != 0, "%d commits are lost, acknowledged", a.LostCommits)
		dbkit.MustClose(t, d)
		e := h.of(event.CommitsMissing)
		failIf(t, (lost > 0) != (len(e) == 1) || lost > 0 && attrOf(e[0], "missing").Uint64() != lost,
			"%d lost: %+v", lost, e)
		must(t, mem.Remove("db/COMMITS"))
		d = dbkit.MustOpen(t, "db", &db.Options{FS: mem, EventListener: h.listen})
		problem := d.Recovery().Problem
		dbkit.MustClose(t, d)
		e = h.of(event.CommitsUnknown)
		failIf(t, len(e) != 1 || attrOf(e[0], "problem").String() != problem || problem == "", "%q: %+v",
			problem, e)
	})
	t.Run("disk full without a reserve", func(t *testing.T) {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), ReserveBytes: -1})
		defer dbkit.MustClose(t, d)
		_ = db.State(d).Engine.FullDisk(syscall.ENOSPC) // as a bulk load says
		failIf(t, !dbkit.MustStats(t, d).Activity.DiskFull, "it is not full")
		need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
		failIf(t, dbkit.MustStats(t, d).Activity.DiskFull, "it is full, though writes go on")
	})
	t.Run("disk full", func(t *testing.T) {
		var h heard
		disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1}
		d := dbkit.MustOpen(t, "db", &db.Options{FS: disk, ReserveBytes: 100 << 20, EventListener: h.listen})
		tell(disk, d, 10<<30)
		c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8}))(t)
		put := func() error { return errOf(c.Put(ctx, &db.Item{Key: "a", Code: []byte{1}})) }
		for _, full := range []bool{false, true, true, false, false} {
			free := int64(1 << 30)
			if full {
				free = 1 << 20
			}
			tell(disk, d, free)
			err := put()
			stopIf(t, full != errors.Is(err, db.ErrDiskFull), "%v", err)
			a := dbkit.MustStats(t, d).Activity
			failIf(t, a.DiskFull != full || a.FreeBytes != free || a.ReserveBytes != 100<<20, "%+v", a)
		}
		dbkit.MustClose(t, d)
		full, freed := h.of(event.DiskFull), h.of(event.DiskFreed)
		failIf(t, len(full) != 1 || attrOf(full[0], "free").Int64() != 1<<20 || attrOf(full[0],
			"reserve").Int64() != 100<<20 || len(freed) != 1, "full %+v, freed %+v", full, freed)
	})
}

// Updates in the background are told of, and so is what becomes of them.
func TestEventsInTheBackground(t *testing.T) {
	t.Parallel()
	done := make(chan *event.Event, 16)
	d := dbkit.MustOpen(t, t.TempDir(),
		&db.Options{UpdateItems: 10, EventListener: func(_ context.Context, e *event.Event) {
			if e.Name == "fddhdb.update.done" {
				done <- e
			}
		}})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(80, synth.Config{})
	train(t, c, items[:60], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	putAll(t, c, items[60:])
	select {
	case e := <-done:
		failIf(t, e.Collection != "main" || e.Space != 1 || e.Operation == 0, "%+v", e)
	case <-time.After(time.Minute):
		t.Error("no update in a minute")
	}
	dbkit.MustClose(t, d)
}

// eventsInTable returns the names of events of the table in docs/OPERATIONS.md, with what
// it says of their fields.
func eventsInTable(t *testing.T) map[event.Name]string {
	t.Helper()
	text := need(os.ReadFile("../docs/OPERATIONS.md"))(t)
	all := map[event.Name]string{}
	row := regexp.MustCompile("(?m)^\\| `(fddhdb\\.[a-z.]+)` \\| (\\w+) \\|([^|]*)\\| ([^|]+) \\|$")
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		all[event.Name(m[1])] = m[2] + " " + m[3]
	}
	return all
}

// checkDocumented checks that the table has an event, its level, and its fields.
func checkDocumented(t *testing.T, table map[event.Name]string, e *event.Event) {
	t.Helper()
	name, level := e.Name, strings.ToLower(e.Level.String())
	switch e.Phase {
	case event.PhaseBegin, event.PhaseProgress, event.PhaseFailed: // these are the same for all
		name, level = event.NameOf("op", e.Phase), ""
	}
	says, has := table[name]
	failIf(t, !has || level != "" && !strings.HasPrefix(says, level+" "),
		"docs/OPERATIONS.md does not have %s at level %s: %q", name, level, says)
	for _, a := range e.Attributes() {
		switch a.Key {
		case "dir", "collection", "operation", "duration", "error":
		default:
			if !strings.Contains(says, "`"+a.Key+"`") && name != "fddhdb.op.failed" {
				t.Errorf("docs/OPERATIONS.md does not have %s of %s", a.Key, e.Name)
			}
		}
	}
}

// The table of docs/OPERATIONS.md has all events.
func TestEventsAreDocumented(t *testing.T) {
	table := eventsInTable(t)
	source := need(os.ReadFile("event/event.go"))(t)
	want := []event.Name{"fddhdb.op.begin", "fddhdb.op.progress", "fddhdb.op.failed"}
	for _, m := range regexp.MustCompile(`Name = "([a-z.]+)"`).FindAllSubmatch(source, -1) {
		want = append(want, event.Name(m[1]))
	}
	long, _, _ := strings.Cut(string(source), "// Calls that are short")
	for _, m := range regexp.MustCompile(`Op = "([a-z_]+)"`).FindAllStringSubmatch(long, -1) {
		want = append(want, event.NameOf(event.Op(m[1]), event.PhaseDone))
	}
	for _, name := range want {
		_, has := table[name]
		failIf(t, !has, "not in docs/OPERATIONS.md: %s", name)
	}
	for name := range table {
		failIf(t, !slices.Contains(want, name), "only in docs/OPERATIONS.md: %s", name)
	}
}

// The event of a reindexing that was interrupted says that it goes on; that of a training
// that was, which leaves everything as it was, does not.
func TestEventsOfInterruptions(t *testing.T) {
	t.Parallel()
	h := &heard{}
	fsys := vfs.NewMem()
	opts := &db.Options{FS: fsys, EventListener: h.listen}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema, dbkit.Pairs(500, synth.Config{})...)
	training := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}
	dbkit.MustTrain(t, c, training)
	interrupted := func(f func(ctx context.Context, stop func()) error) {
		t.Helper()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		errorIs(t, f(ctx, cancel), context.Canceled)
	}
	interrupted(func(ctx context.Context, stop func()) error {
		training := training
		training.Progress = func(phase string, _, _ int64) {
			if phase == "encode" {
				stop()
			}
		}
		_, err := c.Train(ctx, training)
		return err
	})
	interrupted(func(ctx context.Context, stop func()) error {
		_, err := c.Reindex(ctx, db.ReindexOptions{Rate: 100_000, Progress: func(_ string, done, _ int64) {
			if done > 0 {
				stop()
			}
		}})
		return err
	})
	dbkit.MustClose(t, d)
	said := func(name event.Name) (e *event.Event) {
		t.Helper()
		all := h.of(name)
		stopIf(t, len(all) != 1, "%d events %s", len(all), name)
		return all[0]
	}
	e := said("fddhdb.train.failed")
	failIf(t, attrOf(e, "resumes").Any() != nil || e.Level != slog.LevelInfo, "training: %+v", e)
	left := said("fddhdb.reindex.failed")
	failIf(t, attrOf(left, "resumes").Any() != true || left.Space == 0 || left.Level != slog.LevelInfo,
		"reindexing: %+v", left)
	checkDocumented(t, eventsInTable(t), left)

	d = dbkit.MustOpen(t, "db", opts)
	c = need(d.Collection("main"))(t)
	must(t, complete(c))
	dbkit.MustClose(t, d)
	e = said("fddhdb.reindex.done")
	failIf(t, e.Space != left.Space || attrOf(e, "resumes").Any() != nil, "completed: %+v", e)
}

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
	putEach(t, c, items[50:])
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
		q.Include = db.IncludeExplain
		r, err := c.Search(ctx, q)
		must(t, err)
		want[kind{"search", r.Explain.Plan}]++
		hits += len(r.Hits)
		runs, err := c.SearchRadius(ctx, q, 4)
		must(t, err)
		n := dbkit.MustStats(t, d).Activity.Snapshots
		failIf(t, n != 1, "%d are open", n)
		want[kind{"search_radius", need(runs.First(ctx, 1))(t).Explain.Plan}]++
		runs.Close()
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
	m := need(d.Backup(ctx, mustFolder(t), db.BackupOptions{}))(t)
	b := dbkit.MustStats(t, d).Activity.LastBackup
	failIf(t, b == nil || b.ID != m.ID || b.Sequence != m.Sequence || b.BytesTotal != m.BytesTotal,
		"%+v, not %+v", b, m)
}

// What goes on is told as long as it does.
func TestRunningOperations(t *testing.T) {
	d, c, _ := openPairs(t, -1, 60, synth.Config{})
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
	d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema, dbkit.Pairs(60, synth.Config{})...)
	defer dbkit.MustClose(t, d)
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

// What Stats says of the distances of queries is what a linear scan finds.
func TestQueryDistances(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(200, synth.Config{Noise: 3})
	for i, it := range items {
		if i%2 == 0 {
			it.Labels = nil
		}
		if i%5 == 0 {
			delete(it.Vectors, "image")
		}
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 30}})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 64, Anchors: 30}})
	s := need(c.Stats(ctx))(t)
	failIf(t, s.QueryDistances != nil, "before any search: %+v", s.QueryDistances)
	stored := dbkit.AllItems(t, c)
	nearest := func(q db.Query) int {
		code, _ := need2(c.EncodeQuery(ctx, q))(t)
		best := math.MaxInt
		for _, it := range stored {
			if q.To == "" || it.Vectors[q.To] != nil {
				best = min(best, hamming(code, it.Code))
			}
		}
		return best
	}
	var queries []db.Query
	var distances []int
	for i, it := range dbkit.Pairs(60, synth.Config{Noise: 3, Seed: 9}) {
		q := db.Query{From: "text", To: "image", Vector: it.Vectors["text"], K: 1 + i%7}
		switch i % 4 {
		case 1:
			q = db.Query{From: "image", Vector: it.Vectors["image"]}
		case 2:
			q.Rerank, q.K = db.RerankNone, len(items)
		case 3:
			q.Rerank, q.K = db.RerankAsymmetric, len(items)
		}
		distances = append(distances, nearest(q))
		if i >= 40 {
			queries = append(queries, q)
		} else if _, err := c.Search(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	need(c.SearchAll(ctx, queries))(t)
	want := summaryOf(slices.Clone(distances))
	check := func(what string) {
		t.Helper()
		diff := cmp.Diff(want, need(c.Stats(ctx))(t).QueryDistances, nearly)
		failIf(t, diff != "", "%s: %s", what, diff)
	}
	check("after searches")
	// What is no query of its own, finds nothing, or is of another space does not count.
	x := db.Query{From: "text", Vector: items[3].Vectors["text"], K: 5}
	one := need(c.InSpace(1, 0))(t)
	r := need(one.Search(ctx, x))(t)
	x.After = r.Next
	need(one.Search(ctx, x))(t)
	for _, q := range []db.Query{{Key: "k3"}, {Key: "k3", From: "text"},
		{From: "text", Vector: x.Vector, Where: "label = 'none'"}} {
		need(c.Search(ctx, q))(t)
	}
	check("after others")
	must(t, c.Activate(ctx, 1))
	if s := need(c.Stats(ctx))(t).QueryDistances; s == nil || s.Queries != 1 {
		t.Errorf("in space 1: %+v", s)
	}
	must(t, c.Activate(ctx, 2))
	check("in space 2 again")
	d, _ = reopen(t, d, db.State(d).Engine.Dir, nil)
	defer d.Close()
	s = need(dbkit.MustCollection(t, d, "main").Stats(ctx))(t)
	failIf(t, s.QueryDistances != nil, "reopened: %+v", s.QueryDistances)
}

// summaryOf sums up distances by sorting them.
func summaryOf(distances []int) *report.Distances {
	n := len(distances)
	if n == 0 {
		return nil
	}
	slices.Sort(distances)
	sum := 0
	for _, d := range distances {
		sum += d
	}
	return &report.Distances{
		Queries: n, Mean: float64(sum) / float64(n),
		P50: distances[int(math.Ceil(float64(n)/2))-1], P90: distances[int(math.Ceil(float64(9*n)/10))-1],
	}
}

// nearly compares floats up to rounding, and all else exactly.
var nearly = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(a)) })

func TestDistancesOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		distances := rapid.SliceOfN(rapid.IntRange(0, 16), 0, 40).Draw(t, "distances")
		counts := make([]int64, 17)
		for _, d := range distances {
			counts[d]++
		}
		equal(t, summaryOf(distances), state.DistancesOf(counts), nearly)
	})
}
