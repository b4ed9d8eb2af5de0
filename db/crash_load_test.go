package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// A steadyWriter writes batches, over two collections, that follow from its number and
// theirs, so that what is there after any of them can be told.
type steadyWriter struct {
	seed         uint64
	number       int
	begun, acked atomic.Int64 // batches
}

func (w *steadyWriter) key(k int) string { return fmt.Sprintf("w%d-%d", w.number, k) }

// mark is the name of the mark that says which batch was the last.
func (w *steadyWriter) mark() string { return fmt.Sprint("writer", w.number) }

// changes returns the keys that the n-th batch puts, or deletes.
func (w *steadyWriter) changes(n int64) map[int]bool {
	r := rand.New(rand.NewPCG(w.seed^uint64(w.number)<<32, uint64(n)))
	put := map[int]bool{}
	for range 1 + r.IntN(6) {
		put[r.IntN(25)] = r.IntN(4) > 0
	}
	return put
}

func (w *steadyWriter) write(d *db.DB, cs [2]*db.Collection, items []*db.Item, n int64) error {
	w.begun.Store(n)
	b := d.NewBatch()
	for k, put := range w.changes(n) {
		if !put {
			b.Delete(cs[0], w.key(k))
			b.Delete(cs[1], w.key(k))
			continue
		}
		it := *items[int(n)*7%len(items)]
		it.Key, it.Payload = w.key(k), []byte(fmt.Sprint(n))
		b.Put(cs[0], &it)
		b.Put(cs[1], &db.Item{Key: w.key(k), Code: []byte{byte(n % 5), byte(k)}, Payload: it.Payload})
	}
	b.Mark(w.mark(), fmt.Append(nil, n))
	if err := b.Commit(ctx); err != nil {
		return err
	}
	w.acked.Store(n)
	return nil
}

// after returns which batch has put each key, after the n-th.
func (w *steadyWriter) after(n int64) map[string]string {
	state := map[string]string{}
	for i := int64(1); i <= n; i++ {
		for k, put := range w.changes(i) {
			if delete(state, w.key(k)); put {
				state[w.key(k)] = fmt.Sprint(i)
			}
		}
	}
	return state
}

// A machine that stops at any moment, while several write, import and alter, and spaces are
// trained, learn, are built anew and dropped, and the store flushes and compacts: what was
// acknowledged is there, and what was not, whole or not at all.
func TestCrashesUnderLoad(t *testing.T) {
	dbkit.LongTest(t)
	start := time.Now()
	crashes, first := 0, seed.From(t, 1)
	for s := first; s < first+2 || time.Since(start) < *dbkit.Soak; s++ {
		crashes += crashUnderLoad(t, s, effort.Of(5, 3))
	}
	t.Logf("%d crashes", crashes)
}

func crashUnderLoad(t *testing.T, seed uint64, crashes int) int {
	mem := dbkit.NewCrashFS()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem, UpdateItems: 60})
	var cs [2]*db.Collection
	for i, schema := range []db.Schema{dbkit.PairsSchema, {Bits: 16}} {
		var err error
		cs[i], err = d.CreateCollection(ctx, []string{"main", "codes"}[i], schema)
		stopIf(t, err != nil, "%v", err)
	}
	into := need(d.CreateCollection(ctx, "imports", db.Schema{Bits: 16}))(t)
	items := dbkit.ViewItems(60, seed)
	putAll(t, cs[0], items)
	dbkit.MustTrain(t, cs[0], dbkit.TinyTraining(seed))
	writers := []*steadyWriter{{seed: seed, number: 0}, {seed: seed, number: 1}}
	var all sync.WaitGroup
	var stop atomic.Bool
	for _, w := range writers {
		all.Go(func() {
			for n := int64(1); !stop.Load(); n++ {
				if err := w.write(d, cs, items, n); err != nil {
					t.Errorf("seed %d: %v", seed, err)
					return
				}
			}
		})
	}
	importer := &steadyImporter{}
	all.Go(func() {
		for n := int64(1); !stop.Load(); n++ {
			if err := importer.carryOut(d, into, cs[0], n); err != nil {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
		}
	})
	var work atomic.Int64 // things done to spaces
	all.Go(func() {
		r := rand.New(rand.NewPCG(seed, 5))
		for ; !stop.Load(); work.Add(1) {
			var err error
			switch k := r.IntN(10); {
			case k < 3:
				opt := dbkit.TinyTraining(r.Uint64())
				opt.Activate = r.IntN(2) == 0
				_, err = cs[0].Train(ctx, opt)
			case k < 5:
				_, err = cs[0].Reindex(ctx, db.ReindexOptions{Activate: r.IntN(2) == 0})
			case k < 6:
				_, err = cs[0].Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
			case k < 8:
				err = cs[0].DropSpace(ctx, db.Space(1+r.IntN(int(work.Load())+1)))
			case k < 9:
				_, err = db.State(d).Engine.DB.AsyncFlush()
			default:
				err = d.Compact(ctx)
			}
			if err != nil && !errors.Is(err, db.ErrNotFound) && !errors.Is(err, db.ErrInvalid) &&
				!errors.Is(err, db.ErrBusy) {
				t.Errorf("seed %d: %v", seed, err)
				return
			}
		}
	})
	r := rand.New(rand.NewPCG(seed, 6))
	for i := range crashes {
		// The next crash comes when something more has been done, whatever that is by then.
		for next := work.Load() + int64(r.IntN(3)); work.Load() < next && !t.Failed(); {
			time.Sleep(time.Duration(1+r.IntN(1000)) * time.Microsecond)
		}
		var least, most [2]int64
		for j, w := range writers {
			least[j] = w.acked.Load()
		}
		acked := [2]int64{importer.acked.Load(), importer.altered.Load()}
		percent := []int{0, 50, 100}[r.IntN(3)]
		left := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: r})
		for j, w := range writers {
			most[j] = w.begun.Load()
		}
		begun := [2]int64{importer.begun.Load(), importer.altering.Load()}
		label := fmt.Sprintf("seed %d, crash %d, %d%% of what is not synced", seed, i, percent)
		checkCrashed(t, label, left, writers, least, most,
			func(d *db.DB) { importer.check(t, label, d, acked, begun) })
	}
	stop.Store(true)
	all.Wait()
	checkSpaces(t, d)
	dbkit.MustClose(t, d)
	return crashes
}

// checkCrashed checks what a crash has left.
func checkCrashed(t *testing.T, label string, left vfs.FS, writers []*steadyWriter, least, most [2]int64,
	more func(*db.DB)) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: left, MustExist: true})
	defer dbkit.MustClose(t, d)
	must(t, inconsistency(d), label)
	var found [2]map[string]string
	for i, name := range []string{"main", "codes"} {
		found[i] = map[string]string{}
		for _, it := range dbkit.AllItems(t, dbkit.MustCollection(t, d, name)) {
			if it.Key[0] == 'w' {
				found[i][it.Key] = string(it.Payload)
			}
		}
	}
	stopIf(t, !maps.Equal(found[0], found[1]), "%s: %v in one collection, %v in the other", label, found[0],
		found[1])
	for j, w := range writers {
		own := maps.Clone(found[0])
		maps.DeleteFunc(own, func(key, _ string) bool { return key[1] != w.key(0)[1] })
		mark, err := d.Mark(w.mark())
		n, _ := strconv.ParseInt(string(mark), 10, 64) // none before the first batch
		stopIf(t, err != nil && !errors.Is(err, db.ErrNotFound) || n < least[j] || n > most[j],
			"%s: writer %d, after %d to %d batches: mark %q, %v", label, j, least[j], most[j], mark, err)
		stopIf(t, !maps.Equal(own, w.after(n)), "%s: writer %d, after batch %d, as its mark says: %v", label,
			j, n, own)
	}
	more(d)
	c := dbkit.MustCollection(t, d, "main")
	must(t, complete(c), label)
	must(t, errOf(c.Put(ctx, &db.Item{Key: "after", Labels: []string{"class0"}})), label)
	checkSpaces(t, d)
}

// manyCodes makes a database of n items that have 64-bit codes of their own, and
// closes it. Item i has the code codeAt(i).
func manyCodes(t testing.TB, n int) vfs.FS {
	t.Helper()
	fsys := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fsys, NoSync: true}, db.Schema{Bits: 64})
	items := made(n, func(i int) *db.Item { return &db.Item{Key: fmt.Sprint("k", i), Code: codeAt(i)} })
	putAll(t, c, items)
	must(t, db.State(d).Post(ctx, 1))
	need(c.Delete(ctx, "k3", fmt.Sprint("k", n-1)))(t)
	dbkit.MustClose(t, d)
	return fsys
}

func codeAt(i int) []byte {
	x := uint64(i) * 0x9e3779b97f4a7c15
	b := make([]byte, 8)
	for j := range b {
		b[j] = byte(x>>(8*j)) & byte(x>>(8*j+3)&0xff)
	}
	b[0], b[1] = byte(i), byte(i>>8)
	return b
}

// nearCounts returns how many items of manyCodes are within each distance.
func nearCounts(n int, code []byte) []int {
	counts := make([]int, 65)
	for i := range n - 1 {
		if i == 3 {
			continue
		}
		d := 0
		for j, b := range codeAt(i) {
			d += bits.OnesCount8(b ^ code[j])
		}
		for r := d; r <= 64; r++ {
			counts[r]++
		}
	}
	return counts
}

// checkNear compares counts and neighbours with those expected.
func checkNear(t *testing.T, c *db.Collection, code []byte, counts []int) {
	t.Helper()
	for _, r := range []int{0, 5, 9, 64} {
		plan := db.PlanAuto
		if r < 8 {
			plan = dbkit.AllPlans[r%len(dbkit.AllPlans)]
		}
		n, err := dbkit.CountWithin(c, db.Query{Code: code, Plan: plan}, r)
		failIf(t, n != counts[r] || err != nil, "%d within %d, want %d: %v", n, r, counts[r], err)
	}
	res, err := c.Search(ctx, db.Query{Code: code, K: 50})
	stopIf(t, err != nil || len(res.Hits) != 50, "%v, %v", res, err)
	for i, h := range res.Hits {
		failIf(t, counts[h.Distance] <= i || h.Distance > 0 && counts[h.Distance-1] > i, "hit %d at %d", i,
			h.Distance)
	}
}

const tooManyToLoadAtOnce = state.LoadAtOnce + 500

// The first answers of a large database are right though its codes are being
// loaded, and writers that come meanwhile are served when they are there.
func TestQueriesAndWritesWhileCodesAreLoaded(t *testing.T) {
	t.Parallel()
	n := tooManyToLoadAtOnce
	fsys := manyCodes(t, n)
	code := codeAt(77)
	code[5] ^= 3
	counts := nearCounts(n, code)
	for _, budget := range []int64{0, -1} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys, IndexCacheBytes: budget})
		c := dbkit.MustCollection(t, d, "main")
		checkNear(t, c, code, counts)
		s := need(d.Snapshot())(t)
		then := need(s.Collection("main"))(t)
		var writers sync.WaitGroup
		for i := range 4 {
			writers.Go(func() {
				key := fmt.Sprint("new", i)
				fine(t, errOf(c.Put(ctx, &db.Item{Key: key, Code: code})))
				gives(t, 1)(c.Delete(ctx, key))
			})
		}
		writers.Wait()
		must(t, db.Inside(c).Loaded(ctx))
		checkNear(t, c, code, counts)
		checkNear(t, then, code, counts)
		st, err := c.Stats(ctx)
		failIf(t, err != nil || st.DistinctCodes != n-2 || (st.IndexBytes > 200_000) != (budget == 0),
			"%+v, %v", st, err)
		fine(t, s.Close())
		dbkit.MustClose(t, d)
	}
}

// blockLoading is an injector that stops the goroutine that loads codes when it
// reads, until it is told to go on, with an error or nil.
type blockLoading struct {
	mu      sync.Mutex
	armed   bool
	reached chan struct{}
	goOn    chan error
}

func (b *blockLoading) MaybeError(op errorfs.Op) error {
	if op.Kind != errorfs.OpFileReadAt {
		return nil
	}
	stack := make([]byte, 1<<14)
	if !bytes.Contains(stack[:runtime.Stack(stack, false)], []byte("state.loadTable(")) {
		return nil
	}
	b.mu.Lock()
	armed := b.armed
	b.armed = false
	b.mu.Unlock()
	if !armed {
		return nil
	}
	close(b.reached)
	return <-b.goOn
}

func (b *blockLoading) String() string { return "block loading" }

// openLoading opens a large database whose codes will not be loaded before goOn says so.
func openLoading(t *testing.T) (*db.DB, *blockLoading) {
	b := &blockLoading{armed: true, reached: make(chan struct{}), goOn: make(chan error, 1)}
	d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(manyCodes(t, tooManyToLoadAtOnce), b)})
	<-b.reached
	return d, b
}

func TestWritersWaitForCodesNoLongerThanTheyLike(t *testing.T) {
	t.Parallel()
	d, b := openLoading(t)
	c := dbkit.MustCollection(t, d, "main")
	cctx, cancel := context.WithCancel(ctx)
	waiting := make(chan error)
	go func() { waiting <- errOf(c.Put(cctx, &db.Item{Key: "late", Code: codeAt(1)})) }()
	go func() { waiting <- errOf(c.Put(ctx, &db.Item{Key: "patient", Code: codeAt(1)})) }()
	cancel()
	errorIs(t, <-waiting, context.Canceled)
	if n, err := c.Count(t.Context(), ""); n != tooManyToLoadAtOnce-2 || err != nil { // readers do not wait
		t.Error(n, err)
	}
	b.goOn <- nil
	fine(t, <-waiting)
	it, err := c.Get(ctx, "patient")
	failIf(t, err != nil || it.CodeFrom != "given", "%v, %v", it, err)
	errorIs(t, errOf(c.Get(ctx, "late")), db.ErrNotFound)
	dbkit.MustClose(t, d)
}

func TestCloseWhileCodesAreLoaded(t *testing.T) {
	t.Parallel()
	d, b := openLoading(t)
	c := dbkit.MustCollection(t, d, "main")
	waiting, closed := make(chan error), make(chan error)
	go func() { waiting <- errOf(c.Put(ctx, &db.Item{Key: "late", Code: codeAt(1)})) }()
	go func() { waiting <- d.Compact(ctx) }()
	for db.State(d).Guard.Calls() < 2 {
		runtime.Gosched()
	}
	go func() { closed <- d.Close() }()
	for { // until closing has begun
		if _, err := c.Count(t.Context(), ""); errors.Is(err, db.ErrClosed) {
			break
		}
		runtime.Gosched()
	}
	b.goOn <- nil
	for range 2 {
		errorIs(t, <-waiting, db.ErrClosed)
	}
	fine(t, <-closed)
}

// Where the codes cannot be loaded, writers hear why, and readers go on.
func TestCodesThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	d, b := openLoading(t)
	c := dbkit.MustCollection(t, d, "main")
	b.goOn <- dbkit.ErrInjected
	for what, err := range map[string]error{
		"put":     errOf(c.Put(ctx, &db.Item{Key: "late", Code: codeAt(1)})),
		"delete":  errOf(c.Delete(ctx, "k7")),
		"compact": d.Compact(ctx),
	} {
		failIf(t, !errors.Is(err, dbkit.ErrInjected) || errors.Is(err, db.ErrCorrupt), "%s: %v", what, err)
	}
	code := codeAt(500)
	checkNear(t, c, code, nearCounts(tooManyToLoadAtOnce, code))
	it, err := c.Get(ctx, "k500")
	failIf(t, err != nil || !bytes.Equal(it.Code, code), "%v, %v", it, err)
	fine(t, errOf(d.CreateCollection(ctx, "other", db.Schema{Bits: 8})))
	dbkit.MustClose(t, d)
}

// Whichever part of the stored index is damaged, whoever meets it gets
// ErrCorrupt, whatever he asks and whichever plan finds it.
func TestDamagedIndexIsReported(t *testing.T) {
	t.Parallel()
	layer := codec.NewLayer()
	layer.Add(60_000)
	strange := need(layer.Append(nil, true))(t)
	set := func(value []byte) func(d *db.DB, key []byte) error {
		return func(d *db.DB, key []byte) error { return db.State(d).Engine.DB.Set(key, value, nil) }
	}
	lose := func(d *db.DB, key []byte) error { return db.State(d).Engine.DB.Delete(key, nil) }
	for name, tc := range map[string]struct {
		kind   byte
		damage func(d *db.DB, key []byte) error
		open   bool // found when the codes are loaded, at the latest: nothing searches or writes them then
	}{
		"a posting names a missing code": {codec.KindSubstring,
			set(codec.AppendPosting(nil, []uint32{0, 9000}, nil)), false},
		"a posting names a huge number": {codec.KindSubstring,
			set(codec.AppendPosting(nil, []uint32{1<<32 - 1}, nil)), false},
		"a posting is garbage":        {codec.KindSubstring, set([]byte("garbage")), false},
		"a posting is empty":          {codec.KindSubstring, set(nil), false},
		"a block of codes is missing": {codec.KindCodes, lose, true},
		"a block of codes is garbage": {codec.KindCodes, set([]byte("garbage")), true},
		"a block of codes is narrow": {codec.KindCodes,
			func(d *db.DB, key []byte) error { return setBlock(d, key, []byte{1}) }, true},
		"rows of a code are garbage":      {codec.KindCodeRows, set([]byte("garbage")), true},
		"rows of a code are missing":      {codec.KindCodeRows, lose, true},
		"rows of a code have no item":     {codec.KindCodeRows, set(strange), true},
		"keys of rows are missing":        {codec.KindRowKeys, lose, false},
		"keys of rows are garbage":        {codec.KindRowKeys, set([]byte("garbage")), false},
		"a block of row codes is garbage": {codec.KindRowCodes, set([]byte("garbage")), false},
	} {
		t.Run(name, func(t *testing.T) {
			fsys := vfs.NewMem()
			d, c := openNew(t, "db", &db.Options{FS: fsys}, db.Schema{Bits: 8})
			var items []*db.Item
			for i := range 200 {
				items = append(items, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i % 80)}})
			}
			putAll(t, c, items)
			must(t, db.State(d).Post(ctx, 1))
			damaged := 0
			for key := range storeKeys(t, d) {
				if key[0] == tc.kind {
					must(t, tc.damage(d, key))
					damaged++
				}
			}
			stopIf(t, damaged == 0, "nothing to damage")
			cold, release := coldCollection(d, c)
			met := 0
			for what, err := range damagedUses(cold) {
				if err == nil {
					continue
				}
				met++
				failIf(t, !errors.Is(err, db.ErrCorrupt), "%s: %v", what, err)
			}
			release()
			failIf(t, met == 0, "nobody has noticed")
			d, _ = reopen(t, d, "db", &db.Options{FS: fsys})
			defer dbkit.MustClose(t, d)
			_, err := dbkit.MustCollection(t, d, "main").Put(ctx, &db.Item{Key: "new", Code: []byte{3}})
			failIf(t, (err != nil) != tc.open || err != nil && !errors.Is(err, db.ErrCorrupt),
				"put after opening: %v", err)
			if !tc.open {
				return
			}
			for what, err := range damagedUses(dbkit.MustCollection(t, d, "main")) {
				failIf(t, what != "get" && !errors.Is(err, db.ErrCorrupt), "%s after opening: %v", what, err)
			}
		})
	}
}

func setBlock(d *db.DB, key, entry []byte) error {
	e := codec.NewBlockEdit(len(entry))
	for i := range 8 {
		e.Set(byte(i), entry)
	}
	return db.State(d).Engine.DB.Set(key, e.Append(nil, true), nil)
}

// damagedUses asks for everything, by every plan.
func damagedUses(c *db.Collection) map[string]error {
	out := map[string]error{}
	for _, plan := range dbkit.AllPlans {
		q := db.Query{Code: []byte{3}, Plan: plan, K: 100}
		name := plan.String() + " "
		out[name+"search"] = errOf(c.Search(ctx, q))
		_, _, out[name+"explain"] = dbkit.Explain(ctx, c, q, 2)
		r, err := c.SearchRadius(ctx, q, 8)
		if out[name+"radius"] = err; err == nil {
			_, out[name+"hits"] = dbkit.Collect(r.Hits(ctx))
			out[name+"first"] = errOf(r.First(ctx, 100))
			r.Close()
		}
	}
	out["by key"] = errOf(c.Search(ctx, db.Query{Key: "k3"}))
	out["get"] = errOf(c.Get(ctx, "k3"))
	return out
}

// Deleting by an expression right after opening waits for the codes.
func TestDeleteWhereRightAfterOpening(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d, c := openNew(t, dir, nil, db.Schema{Bits: 32})
	b := d.NewBatch()
	for i := range state.LoadAtOnce + 50 {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), byte(i >> 8), byte(i >> 16), 7}}
		if i%1000 == 0 {
			it.Labels = []string{"rare"}
		}
		must(t, b.Put(c, it))
	}
	must(t, b.Commit(ctx))
	d, _ = reopen(t, d, dir, nil)
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	gives(t, 11)(c.DeleteWhere(ctx, "label = 'rare'"))
	holds(t, c, state.LoadAtOnce+39)
}

// A batch that begins with thousands of labels keeps the codes of its items.
func TestLabelsBeforeAFewItems(t *testing.T) {
	d, c := openNew(t, t.TempDir(), nil, db.Schema{Bits: 16})
	defer dbkit.MustClose(t, d)
	b := d.NewBatch()
	for i := range bulkItems - 1 {
		must(t, b.RegisterLabels(c, []string{fmt.Sprint("l", i)}))
	}
	for i := range 10 {
		must(t, b.Put(c, &db.Item{Code: []byte{byte(i), 1}}))
	}
	must(t, b.Commit(ctx))
	r, err := c.Search(ctx, db.Query{Code: []byte{3, 1}})
	failIf(t, err != nil || len(r.Hits) != 10 || r.Hits[0].Key != "3", "%+v, %v", r, err)
}
