package db_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
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
