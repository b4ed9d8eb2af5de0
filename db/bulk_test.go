package db_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// contents returns what the store says under each key, in words where one thing can be said in several ways.
// The descriptors of spaces hold the time, and so do those of revisions.
func contents(t testing.TB, d *db.DB) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, record.ForEach(db.State(d).Engine.DB, nil, func(key, value []byte) error {
		kind := key[0]
		switch {
		case bytes.Equal(key, codec.DatabaseKey(codec.RecordUUID)),
			bytes.Equal(key, codec.DatabaseKey(codec.RecordSequence)): // postings have commits of their own
			return nil
		case kind == codec.KindSpace || codec.EmptySum(key, value):
			return nil
		case kind == codec.KindRevision && bytes.HasPrefix(value, []byte("{")):
			var d spaces.RevisionDescriptor
			err := json.Unmarshal(value, &d)
			d.Created = time.Time{}
			b, merr := json.Marshal(d)
			all[string(key)] = string(b)
			return errors.Join(err, merr)
		case kind == codec.KindSubstring:
			numbers, err := codec.AppendPostingCodes(nil, value)
			all[string(key)] = fmt.Sprint(numbers)
			return err
		case kind == codec.KindRows || kind == codec.KindCodeRows || kind == codec.KindOnlineRows ||
			kind == codec.KindFieldRows || kind == codec.KindFieldWords || kind == codec.KindStale:
			l, err := codec.DecodeLayer(value)
			if err == nil {
				all[string(key)] = l.Added.String()
			}
			return err
		case codec.Merged(kind):
			b, err := codec.DecodeBlock(value)
			var s []byte
			for i := range b.Len() {
				s = append(hex.AppendEncode(append(strconv.AppendInt(s, int64(b.Offset(i)), 10), ": "...),
					b.Entry(i)), '\n')
			}
			all[string(key)] = string(s)
			return err
		}
		all[string(key)] = string(value)
		return nil
	}))
	return all
}

// sameContents compares two stores key by key.
func sameContents(t testing.TB, a, b *db.DB) {
	t.Helper()
	must(t, db.State(a).Post(ctx, 1))
	must(t, db.State(b).Post(ctx, 1))
	x, y := contents(t, a), contents(t, b)
	for key, value := range x {
		other, ok := y[key]
		stopIf(t, !ok || other != value, "key %x: %.200q, and %.200q (%v)", key, value, other, ok)
	}
	stopIf(t, len(x) != len(y), "%d keys and %d", len(x), len(y))
}

// sameAnswers compares what two collections say.
func sameAnswers(t testing.TB, a, b *db.Collection) {
	t.Helper()
	items := dbkit.AllItems(t, a)
	dbkit.EqualItems(t, items, dbkit.AllItems(t, b))
	sa, err := a.Stats(ctx)
	must(t, err)
	sb, err := b.Stats(ctx)
	must(t, err)
	for _, s := range []*db.CollectionStats{sa, sb} {
		s.QueryDistances = nil
		s.MemoryBytes, s.IndexBytes, s.RerankBytes = 0, 0, 0
	}
	equal(t, sa, sb)
	la, _ := a.Labels()
	lb, _ := b.Labels()
	stopIf(t, !slices.Equal(la, lb), "labels %v and %v", la, lb)
	for seed := range effort.Of(3, 2) {
		q := db.Query{K: 20}
		first := -1 // no radius, but the nearest
		if code := aCode(items, seed*len(items)/3); code != nil {
			q.Code = slices.Clone(code)
			q.Code[0] ^= 1 << seed
		} else {
			// on disk it is a long way to the nearest
			q.Code, first = dbkit.RandomCodes(1, sa.Bits, uint64(seed))[0], 2
		}
		for _, plan := range dbkit.AllPlans {
			q.Plan = plan
			for r := first; r < effort.Of(6, 3); r += 3 {
				ask := func(c *db.Collection) *db.Result {
					res, err := c.Search(ctx, q)
					if r >= 0 {
						res, err = dbkit.FirstWithin(c, q, r)
					}
					must(t, err)
					return res
				}
				if x, y := ask(a), ask(b); !oracle.SameHits(x.Hits, y.Hits) || x.Total != y.Total {
					t.Fatalf("plan %v, radius %d: %v and %v", plan, r, x.Hits, y.Hits)
				}
			}
		}
	}
}

// aCode returns the code of the first item from i on that has one, or nil.
func aCode(items []*db.Item, i int) []byte {
	for ; i < len(items); i++ {
		if items[i].Code != nil {
			return items[i].Code
		}
	}
	return nil
}

// A world is a database that goes through a history.
type world struct {
	t      testing.TB
	fs     vfs.FS
	d      *db.DB
	c      *db.Collection
	single bool         // store items one by one
	loads  atomic.Int64 // batches that were stored as tables
}

func newWorld(t testing.TB, schema db.Schema, single bool) *world {
	w := &world{t: t, fs: vfs.NewMem(), single: single}
	w.d = dbkit.MustOpen(t, "db", w.options())
	t.Cleanup(func() { w.d.Close() })
	var err error
	w.c, err = w.d.CreateCollection(ctx, "main", schema)
	stopIf(t, err != nil, "%v", err)
	return w
}

// options returns options to open the database with, which count the bulk loads.
func (w *world) options() *db.Options {
	return &db.Options{FS: w.fs, EventListener: func(_ context.Context, e *event.Event) {
		if e.Op == event.OpBulkLoad && e.Phase == event.PhaseDone && e.Level > slog.LevelDebug {
			w.loads.Add(1)
		}
	}}
}

// batch returns an empty batch. Of a world that stores items one by one it has a condition, which
// no bulk load has.
func (w *world) batch() *db.Batch {
	w.t.Helper()
	b := w.d.NewBatch()
	if w.single {
		must(w.t, b.Expect(w.c, "no item has this key", nil))
	}
	return b
}

func (w *world) reopen() {
	w.t.Helper()
	dbkit.MustClose(w.t, w.d)
	w.d = dbkit.MustOpen(w.t, "db", w.options())
	w.c = dbkit.MustCollection(w.t, w.d, "main")
}

func (w *world) put(items []*db.Item, more ...func(*db.Batch)) {
	w.t.Helper()
	b := w.batch()
	before := b.Len()
	for _, f := range more {
		f(b)
	}
	for _, it := range items {
		must(w.t, b.Put(w.c, it))
	}
	n := before + len(items) + len(more)
	stopIf(w.t, b.Len() != n, "a batch of %d for %d", b.Len(), n)
	must(w.t, b.Commit(ctx))
}

// bothWays tells the same history to a database that loads in bulk, as often as is
// said, and one that does not, and compares them.
func bothWays(t *testing.T, schema db.Schema, loads int, history func(w *world)) {
	t.Helper()
	bulk, single := newWorld(t, schema, false), newWorld(t, schema, true)
	for _, w := range []*world{bulk, single} {
		history(w)
	}
	for range 2 {
		sameContents(t, bulk.d, single.d)
		sameAnswers(t, bulk.c, single.c)
		bulk.reopen()
		single.reopen()
	}
	dbkit.MustClose(t, bulk.d) // by then all events have been told
	dbkit.MustClose(t, single.d)
	if b, s := bulk.loads.Load(), single.loads.Load(); b != int64(loads) || s != 0 {
		t.Fatalf("%d and %d bulk loads, not %d and 0", b, s, loads)
	}
	names, err := bulk.fs.List("db")
	failIf(t, err != nil || slices.Contains(names, store.IngestName), "the folder holds %v, %v", names, err)
}

func prefixed(p string) func(int) string {
	return func(i int) string { return fmt.Sprintf("%s%d", p, i) }
}

func TestBulkLoadOfCodesIsAsOneByOne(t *testing.T) {
	dbkit.LongTest(t)
	for _, bits := range []int{16, 72} {
		t.Run(fmt.Sprint(bits), func(t *testing.T) {
			bothWays(t, db.Schema{Bits: bits}, 3, func(w *world) {
				w.put(dbkit.CodeItems(bulkItems+700, bits, 1, nil))
				w.put(dbkit.CodeItems(300, bits, 2, prefixed("a")))
				need(w.c.Delete(ctx, "7", fmt.Sprint(bulkItems+204), "a9", fmt.Sprint(bulkItems+699)))(t)
				w.put(dbkit.CodeItems(bulkItems, bits, 1, prefixed("b"))) // codes that are there
				w.reopen()
				w.put(dbkit.CodeItems(10, bits, 4, nil))
				w.put(dbkit.CodeItems(bulkItems+1, bits, 5, nil))
				w.put(dbkit.CodeItems(20, bits, 1, prefixed("b"))) // replaces
			})
		})
	}
}

func TestBulkLoadWithLabelsFieldsAndPayloads(t *testing.T) {
	dbkit.LongTest(t)
	schema := db.Schema{Bits: 16, Fields: []db.Field{
		{Name: "year", Type: db.Int, Indexed: true}, {Name: "title", Type: db.String, Indexed: true},
		{Name: "price", Type: db.Float, Indexed: true}, {Name: "new", Type: db.Bool, Indexed: true},
		{Name: "note", Type: db.String},
	}}
	n := effort.Of(70_000, 3*bulkItems) // more than the rows of one container, if all are taken
	items := dbkit.CodeItems(n, 16, 1, nil)
	for i, it := range items {
		switch i % 4 {
		case 0:
			it.Fields = map[string]any{"price": float64(i%100) - 50, "new": i%8 == 0, "note": "x"}
		case 1:
			it.Labels = []string{fmt.Sprint("l", i%7), fmt.Sprint("m", i/1000), "z", "z"}
		case 2:
			it.Fields = map[string]any{"year": i - 9000, "title": fmt.Sprint(i % 1000)}
		case 3:
			it.Key, it.Payload = fmt.Sprint("key", i), []byte{byte(i)}
		}
	}
	bothWays(t, schema, 2, func(w *world) {
		w.put([]*db.Item{{Code: []byte{1, 2}, Labels: []string{"m1", "old"}}})
		register := func(b *db.Batch) { must(t, b.RegisterLabels(w.c, []string{"z", "old", "never", "l3"})) }
		w.put(items[:n-bulkItems], register)
		w.put(items[n-bulkItems:], register, register)
		need(w.c.Delete(ctx, "key3", "0", "1", fmt.Sprint(n/2)))(t)
	})
}

func TestBulkLoadOfFeatures(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.Pairs(2*bulkItems+600, synth.Config{Seed: 3})
	for i, it := range items {
		switch i % 9 {
		case 1:
			delete(it.Vectors, "image")
		case 2:
			it.Labels = nil
		case 3:
			it.Vectors, it.Labels = nil, nil // no code
		case 4:
			it.Fields = map[string]any{"price": float64(i)}
		}
	}
	bothWays(t, dbkit.PairsSchema, 2, func(w *world) {
		opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}, Rows: 300}
		w.put(items[:bulkItems+100]) // without a model
		dbkit.MustTrain(w.t, w.c, opt)
		w.put(items[bulkItems+100 : bulkItems+400])
		w.put(items[bulkItems+400:])
	})
}

// Automatic keys are those that one Put after the other would give.
func TestAutomaticKeysOfABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	at := func(keys map[int]string) func(int) string { return func(i int) string { return keys[i] } }
	later := func(n int) string { return fmt.Sprint(bulkItems + n) } // the counter is at bulkItems then
	for name, tc := range map[string]struct {
		first, then func(i int) string
		loads       int
	}{
		"given before the counter comes": {nil, at(map[int]string{3: later(900), 9: later(14), 10: later(9)}),
			2},
		"given after the counter came": {nil, at(map[int]string{bulkItems / 2: later(104)}), 1},
		"many in a row are taken":      {func(i int) string { return fmt.Sprint(i + 4) }, nil, 2},
		"some are taken":               {func(i int) string { return fmt.Sprint(i * 3) }, nil, 2},
		"all are given": {func(i int) string { return fmt.Sprint(i * 3) },
			func(i int) string { return fmt.Sprint(i*3 + 1) }, 2},
		"one is there":    {prefixed("k"), at(map[int]string{77: "k1000"}), 1},
		"one comes twice": {nil, at(map[int]string{77: "k", 1000: "k"}), 1},
		"long keys": {prefixed(strings.Repeat("x", 900)),
			prefixed(strings.Repeat("x", 899) + "\x01"), 2},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, db.Schema{Bits: 16}, tc.loads, func(w *world) {
				w.put(dbkit.CodeItems(bulkItems, 16, 1, tc.first))
				w.put(dbkit.CodeItems(bulkItems+7, 16, 2, tc.then))
				w.put(dbkit.CodeItems(2, 16, 3, nil))
			})
		})
	}
}

// What does not fit a bulk load is stored all the same.
func TestBatchesThatAreNoBulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.CodeItems(bulkItems+10, 16, 1, prefixed("k"))
	for name, change := range map[string]func(w *world, b *db.Batch) error{
		"merge": func(w *world, b *db.Batch) error {
			return b.Merge(w.c, &db.Item{Key: "k5", Payload: []byte("p")})
		},
		"delete": func(w *world, b *db.Batch) error { return b.Delete(w.c, "k4") },
		"label":  func(w *world, b *db.Batch) error { return b.RegisterLabels(w.c, []string{"late"}) },
		"twice": func(w *world, b *db.Batch) error {
			return b.Put(w.c, &db.Item{Key: "k9", Code: []byte{1, 1}})
		},
		"elsewhere too": func(w *world, b *db.Batch) error {
			return b.Put(dbkit.MustCollection(t, w.d, "other"), &db.Item{Code: []byte{1}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, db.Schema{Bits: 16}, 0, func(w *world) {
				need(w.d.CreateCollection(ctx, "other", db.Schema{Bits: 8}))(t)
				for _, late := range []bool{false, true} {
					b := w.batch()
					before := b.Len()
					for i, it := range items {
						must(t, b.Put(w.c, it))
						if i == len(items)-1 && late || i == 100 && !late {
							must(t, change(w, b))
						}
					}
					failIf(t, b.Len() != before+len(items)+1, "a batch of %d", b.Len())
					must(t, b.Commit(ctx))
				}
			})
		})
	}
}

func TestBadItemOfABulkLoad(t *testing.T) {
	d, c := openNew(t, t.TempDir(), nil, db.Schema{Bits: 16})
	defer d.Close()
	b := d.NewBatch()
	for _, it := range dbkit.CodeItems(2*bulkItems, 16, 1, nil) {
		must(t, b.Put(c, it))
	}
	errorIs(t, b.Put(c, &db.Item{Key: "x", Code: []byte{1}}), db.ErrInvalid, "code of 8 bits")
	errorIs(t, b.Commit(ctx), db.ErrInvalid)
	holds(t, c, 0)
}

// A context that ends while tables are made leaves the database as it was.
func TestCancelledBulkLoad(t *testing.T) {
	mem := vfs.NewMem()
	cancelled, cancel := context.WithCancel(ctx)
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if strings.Contains(op.Path, store.IngestName) && op.Kind == errorfs.OpFileSync {
			cancel()
		}
		return nil
	}))
	d, c := openNew(t, "db", &db.Options{FS: fsys}, db.Schema{Bits: 16})
	defer d.Close()
	b := d.NewBatch()
	for _, it := range dbkit.CodeItems(bulkItems, 16, 1, nil) {
		b.Put(c, it)
	}
	errorIs(t, b.Commit(cancelled), context.Canceled)
	n := len(dbkit.AllItems(t, c))
	failIf(t, n != 0, "%d items", n)
	putAll(t, c, dbkit.CodeItems(10, 16, 2, nil))
	s, err := c.Stats(ctx)
	failIf(t, err != nil || s.Items != 10 || s.CodedItems != 10 || s.DistinctCodes > 10, "%+v, %v", s, err)
	it, err := c.Get(ctx, "9")
	failIf(t, err != nil || len(it.Code) != 2, "%v, %v", it, err)
}

// bulkLife opens a database, puts items, loads some in bulk, again where that failed
// without failing the database, and puts one more. It returns what was acknowledged.
func bulkLife(fsys vfs.FS, noSync bool) (puts int, loaded, retried, unknown bool) {
	d, err := db.Open("db", &db.Options{FS: fsys, NoSync: noSync})
	if err != nil {
		return
	}
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	if err != nil {
		return
	}
	put := func(i int) {
		if errOf(c.Put(ctx, &db.Item{Key: fmt.Sprint("p", i), Code: []byte{1, 1}})) == nil {
			puts++
		}
	}
	put(0)
	for range 2 {
		b := d.NewBatch()
		for _, it := range dbkit.CodeItems(bulkItems, 16, 1, nil) {
			b.Put(c, it)
		}
		b.Mark("loaded", []byte("yes"))
		if err = b.Commit(ctx); err == nil {
			loaded = true
			break
		}
		if errors.Is(err, db.ErrFailed) {
			unknown = true
			break
		}
		retried = true
	}
	put(1)
	return puts, loaded, retried, unknown
}

// checkBulkLife checks what a file system holds after bulkLife.
func checkBulkLife(t *testing.T, what string, fsys vfs.FS, puts int, loaded, unknown bool) {
	t.Helper()
	d, err := db.Open("db", &db.Options{FS: fsys})
	must(t, err, what)
	defer d.Close()
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) && puts == 0 && !loaded {
		return
	} else if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	bulk, others, near := 0, 0, 0
	codes := map[string]bool{}
	for _, it := range dbkit.AllItems(t, c) {
		if bits.OnesCount8(it.Code[0]^1)+bits.OnesCount8(it.Code[1]^1) <= 2 {
			near++
		}
		if codes[string(it.Code)] = true; it.Key[0] == 'p' {
			others++
		} else {
			bulk++
		}
	}
	failIf(t, bulk != 0 && bulk != bulkItems || loaded && bulk == 0 || !loaded && !unknown && bulk > 0,
		"%s: %d items of a bulk load, acknowledged: %v, unknown: %v", what, bulk, loaded, unknown)
	if mark, err := d.Mark("loaded"); (err == nil) != (bulk > 0) || bulk > 0 && string(mark) != "yes" {
		t.Errorf("%s: %d items of a bulk load, and its mark is %q, %v", what, bulk, mark, err)
	}
	failIf(t, others < puts, "%s: %d other items of %d", what, others, puts)
	s, err := c.Stats(ctx)
	failIf(t, err != nil || s.Items != bulk+others || s.CodedItems != bulk+others ||
		s.DistinctCodes != len(codes), "%s: %+v, %d codes, %v", what, s, len(codes), err)
	for _, plan := range []db.Plan{db.PlanScan, db.PlanDisk} {
		res, err := dbkit.FirstWithin(c, db.Query{Code: []byte{1, 1}, K: 1, Plan: plan}, 2)
		failIf(t, err != nil || res.Total != near, "%s, plan %v: %d items are near, not %d, %v", what, plan,
			res.Total, near, err)
	}
	fine(t, errOf(c.Put(ctx, &db.Item{Code: []byte{3, 4}})), what, "afterwards")
	if names, err := fsys.List("db"); err != nil || slices.Contains(names, store.IngestName) {
		t.Errorf("%s: the folder holds %v, %v", what, names, err)
	}
}

// Whichever change to the file system fails, a bulk load is there whole or not at all;
// and as long as only its tables cannot be written, it fails alone.
func TestEveryFailedChangeAroundABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	alone := 0
	for k := range sampled(5) {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k}
		puts, loaded, retried, unknown := bulkLife(errorfs.Wrap(mem, fail), false)
		if retried {
			alone++
			failIf(t, !loaded || puts != 2,
				"change %d failed: the load failed for good, or what came after: %v, %d", k, loaded, puts)
		}
		checkBulkLife(t, fmt.Sprintf("change %d failed", k), mem, puts, loaded, unknown)
		if !fail.Fired {
			stopIf(t, !loaded || puts != 2, "without a failure, after %d changes: %d items, loaded: %v", k,
				puts, loaded)
			t.Logf("%d changes failed in turn, %d of them only the load", k, alone)
			break
		}
	}
	failIf(t, alone == 0, "no failure concerned the load alone")
}

// A read that fails while the store takes the tables costs the load alone.
func TestFailedReadsOfABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	var broken atomic.Bool
	fsys := failing(mem, dbkit.ErrInjected, func(op errorfs.Op) bool {
		return broken.Load() && op.Kind == errorfs.OpFileReadAt && strings.Contains(op.Path, store.IngestName)
	})
	w := &world{t: t, fs: fsys}
	w.d = dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer func() { w.d.Close() }()
	var err error
	w.c, err = w.d.CreateCollection(ctx, "main", db.Schema{Bits: 16})
	stopIf(t, err != nil, "%v", err)
	w.put(dbkit.CodeItems(20, 16, 1, nil))
	broken.Store(true)
	b := w.d.NewBatch()
	for _, it := range dbkit.CodeItems(bulkItems, 16, 2, nil) {
		b.Put(w.c, it)
	}
	err = b.Commit(ctx)
	stopIf(t, !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed), "%v", err)
	broken.Store(false)
	w.put(dbkit.CodeItems(bulkItems, 16, 2, nil))
	other := newWorld(t, db.Schema{Bits: 16}, true)
	other.put(dbkit.CodeItems(20, 16, 1, nil))
	other.put(dbkit.CodeItems(bulkItems, 16, 2, nil))
	sameContents(t, w.d, other.d)
	sameAnswers(t, w.c, other.c)
}

// A machine that stops at any change to the file system leaves a bulk load whole or
// not at all, and what was acknowledged before.
func TestCrashesAroundABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	for _, noSync := range []bool{false, true} {
		mem := dbkit.NewCrashFS()
		r := seed.Rand(t, 1, 2)
		var mu sync.Mutex // guards what follows, and r: the store writes in several goroutines
		var crashes []crash
		loading := false
		fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if loading = loading || strings.Contains(op.Path, store.IngestName); loading {
				for _, percent := range []int{0, 50} {
					crashes = append(crashes, crash{
						what: fmt.Sprintf("NoSync %v, before change %d (%s), %d%% of what is not synced",
							noSync, len(crashes), op.Path, percent),
						fs: mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r}),
					})
				}
			}
			return nil
		}))
		_, loaded, _, _ := bulkLife(fsys, noSync)
		stopIf(t, !loaded || len(crashes) < 50, "loaded: %v, %d crashes", loaded, len(crashes))
		for i, cr := range crashes {
			if !effort.Sampled(i, 5) && i < len(crashes)-2 {
				continue
			}
			puts := 1
			if noSync {
				puts = 0
			}
			atEnd := i >= len(crashes)-2 // when it is being closed
			checkBulkLife(t, cr.what, cr.fs, puts, atEnd, !atEnd)
		}
	}
}

// Many items get their codes from a training by way of tables, fewer in one batch; a
// model that has learned from the first items gives all the same codes.
func TestTrainingOfManyIsAsThatOfFew(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.Pairs(learn.TableRows+300, synth.Config{Seed: 5})
	for i, it := range items {
		if i%9 == 3 {
			it.Vectors, it.Labels = nil, nil // no code
		}
		if i%4 == 1 {
			it.Labels = nil
		}
	}
	opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}, Rows: 200}
	few := items[:learn.TableRows-100]
	many, some := newWorld(t, dbkit.PairsSchema, true), newWorld(t, dbkit.PairsSchema, true)
	many.put(few)
	many.put(items[len(few):])
	dbkit.MustTrain(t, many.c, opt)
	some.put(few)
	dbkit.MustTrain(t, some.c, opt)
	some.put(items[len(few):])
	for range 2 {
		sameContents(t, many.d, some.d)
		sameAnswers(t, many.c, some.c)
		many.reopen()
		some.reopen()
	}
	// Nothing stays of a space that is dropped.
	dbkit.MustTrain(t, many.c, opt)
	must(t, many.c.DropSpace(ctx, 1))
	for key := range contents(t, many.d) {
		kind := key[0]
		stopIf(t, kind >= codec.KindSpace && kind <= codec.KindSubstring && key[8] != 2, "key %x", key)
	}
	before := dbkit.AllItems(t, many.c)
	many.reopen()
	dbkit.EqualItems(t, before, dbkit.AllItems(t, many.c))
	many.put(items[:10]) // upon what the training has written
	dbkit.EqualItems(t, before, dbkit.AllItems(t, many.c))
}

// What is written while a training of many items is going on is coded with the rest.
func TestWritesDuringATrainingOfMany(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(learn.TableRows+60, synth.Config{Seed: 6})
	w.put(items[:learn.TableRows+50])
	replaced := *items[77]
	replaced.Labels = items[78].Labels
	wrote := false
	opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}, Rows: 300}
	opt.Progress = func(stage string, _, _ int64) {
		if stage == "encode" && !wrote {
			wrote = true
			w.put([]*db.Item{&replaced, items[learn.TableRows+55]})
			gives(t, 3)(w.c.Delete(ctx, "k3", "k4", "k3999"))
		}
	}
	tr := dbkit.MustTrain(t, w.c, opt)
	stopIf(t, !wrote || tr.Items != learn.TableRows+48, "%d items", tr.Items)
	for range 2 {
		got := need(w.c.Get(ctx, replaced.Key))(t)
		like, err := w.c.Get(ctx, "k78")
		failIf(t, err != nil || !reflect.DeepEqual(like.Code, got.Code) || got.CodeFrom != "labels",
			"%+v, %+v, %v", like, got, err)
		for _, plan := range dbkit.AllPlans {
			q := db.Query{To: "text", Key: "k1", K: 1, Plan: plan}
			res, err := dbkit.FirstWithin(w.c, q, 0)
			failIf(t, err != nil || res.Total == 0, "plan %v: %+v, %v", plan, res, err)
		}
		s, err := w.c.Stats(ctx)
		failIf(t, err != nil || s.CodedItems != tr.Items || len(dbkit.AllItems(t, w.c)) != tr.Items,
			"%+v, %v", s, err)
		w.reopen()
	}
}

// A training whose codes cannot be written changes nothing.
func TestTrainingOfManyThatCannotBeStored(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewMem()
	broken := false
	fsys := failing(mem, dbkit.ErrInjected, func(op errorfs.Op) bool {
		return broken && op.Kind == errorfs.OpFileSync && strings.Contains(op.Path, store.IngestName)
	})
	d, c := openNew(t, "db", &db.Options{FS: fsys}, dbkit.PairsSchema,
		dbkit.Pairs(learn.TableRows, synth.Config{})...)
	defer d.Close()
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}, Rows: 100}
	for _, space := range []db.Space{2, 4} { // numbers are not used twice
		before := dbkit.AllItems(t, c)
		broken = true
		_, err := c.Train(ctx, opt)
		stopIf(t, !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrFailed), "%v", err)
		broken = false
		dbkit.EqualItems(t, before, dbkit.AllItems(t, c))
		tr := dbkit.MustTrain(t, c, opt)
		failIf(t, tr.Space != space || tr.Items != learn.TableRows, "%+v", tr)
	}
}

// The items of a load teach at the next update, also of another process.
func TestItemsOfALoadTeachAfterReopening(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	items := dbkit.Pairs(60+bulkItems, synth.Config{})
	train(t, c, items[:60], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	putAll(t, c, items[60:])
	equal(t, bulkItems, need(c.Stats(ctx))(t).Pending)
	d, c = reopen(t, d, "db", opts)
	defer dbkit.MustClose(t, d)
	equal(t, bulkItems, need(c.Stats(ctx))(t).Pending)
	equal(t, bulkItems, need(c.Update(ctx, db.UpdateOptions{}))(t).Items)
}
