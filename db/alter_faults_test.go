package db_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// An alteredState is what tells how far the steps below have come.
type alteredState struct {
	modalities, fields int
	heard              int // items with a vector of audio
	indexed            int // fields that are indexed
	titled             int // items that a filter finds by a field that one of the steps indexes
}

func alteredStateOf(t testing.TB, c *db.Collection) alteredState {
	t.Helper()
	schema := dbkit.MustSchema(t, c)
	s := alteredState{modalities: len(schema.Modalities), fields: len(schema.Fields)}
	for _, f := range schema.Fields {
		if f.Indexed {
			s.indexed++
		}
	}
	s.titled = need(c.CountWhere(ctx, "title > 'title 1' OR price < 20"))(t)
	if s.modalities > len(dbkit.PairsSchema.Modalities) {
		s.heard = need(c.CountWhere(ctx, "has(audio)"))(t)
	}
	return s
}

// alterSteps alter a collection, use what has been added, and alter it again.
var alterSteps = []func(c *db.Collection) error{
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{place}})
	},
	func(c *db.Collection) error {
		return dbkit.Second(c.Merge(ctx, &db.Item{Key: "k1", Vectors: map[string][]float32{"audio": {1, 2, 3}}, Fields: map[string]any{"place": "Bern"}}))
	},
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "note", Type: db.String}, {Name: "rank", Type: db.Int, Indexed: true}}})
	},
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{IndexFields: []string{"title", "price"}, AddFields: []db.Field{{Name: "last", Type: db.Bool}}})
	},
	func(c *db.Collection) error { return db.Of(c).Close() },
}

// alterBase fills and trains a collection.
func alterBase(t testing.TB, opts *db.Options) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", opts)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.ViewItems(40, 4)
	for i, it := range items {
		it.Fields = map[string]any{"title": fmt.Sprint("title ", i%3), "price": float64(i)}
	}
	putAll(t, c, items)
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	must(t, d.WaitForIndex(ctx))
	return d, c
}

// checkAltered opens what is left, and checks that it is in one of some states and that it
// can be worked with.
func checkAltered(t testing.TB, what string, fsys vfs.FS, possible ...alteredState) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fsys})
	defer dbkit.MustClose(t, d)
	c := dbkit.MustCollection(t, d, "main")
	got := alteredStateOf(t, c)
	if !slices.Contains(possible, got) {
		t.Fatalf("%s: %+v is none of %+v", what, got, possible)
	}
	if found, _ := dbkit.Findings(t, d, db.VerifyOptions{}); len(found) > 0 { // an index that was not made to its end is none
		t.Fatalf("%s: %v", what, found)
	}
	for _, step := range alterSteps[:4] {
		if err := step(c); err != nil && !errors.Is(err, db.ErrExists) {
			t.Fatalf("%s: afterwards: %v", what, err)
		}
	}
	if now := alteredStateOf(t, c); now.titled != got.titled || now.indexed != 5 {
		t.Fatalf("%s: afterwards %+v, before %+v", what, now, got)
	}
	if n, err := c.CountWhere(ctx, "place = 'Bern'"); n != 1 || err != nil {
		t.Fatalf("%s: %d items, %v", what, n, err)
	}
	if err := inconsistency(d); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// Whichever write to a file fails, once or from then on for ever, a collection has been
// altered whole or not at all, and has where that was acknowledged.
func TestEveryFailedWriteOfAlter(t *testing.T) {
	dbkit.LongTest(t)
	base := vfs.NewCrashableMem()
	d, _ := alterBase(t, &db.Options{FS: base})
	dbkit.MustClose(t, d)
	for _, forever := range []bool{false, true} {
		for k := 0; ; k++ {
			mem := vfs.NewMem()
			need(vfs.Clone(base, mem, "db", "db"))(t)
			fail := &dbkit.FailOnce{K: k, Forever: forever}
			fail.Off.Store(true)
			d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(mem, fail)})
			c := dbkit.MustCollection(t, d, "main")
			must(t, d.WaitForIndex(ctx))
			before := alteredStateOf(t, c)
			after := before
			fail.Off.Store(false)
			var err error
			for i, step := range alterSteps {
				what := fmt.Sprintf("write %d fails, and those after it: %v, step %d", k, forever, i)
				if err = step(c); err == nil && i < len(alterSteps)-1 {
					before = alteredStateOf(t, c)
				}
				after = before
				if err == nil {
					continue
				}
				if !errors.Is(err, db.ErrFailed) && !errors.Is(err, dbkit.ErrInjected) {
					t.Fatalf("%s: %v", what, err)
				}
				if i < len(alterSteps)-1 {
					if now := alteredStateOf(t, c); now != before {
						t.Fatalf("%s: %v, and readers see %+v, not %+v", what, err, now, before)
					}
					after = afterStep(before, i)
					_ = d.Close()
				}
				break
			}
			hit := fail.Hit()
			fail.Off.Store(true)
			checkAltered(t, fmt.Sprintf("write %d fails, and those after it: %v: %v", k, forever, err), mem, before, after)
			if !hit {
				if err != nil || k < 8 {
					t.Errorf("%d writes, %v", k, err)
				}
				t.Logf("%d writes failed in turn, and those after them: %v", k, forever)
				break
			}
		}
	}
}

// afterStep returns the state after a step.
func afterStep(s alteredState, step int) alteredState {
	switch step {
	case 0:
		s.modalities, s.fields, s.indexed = s.modalities+1, s.fields+1, s.indexed+1
	case 1:
		s.heard++
	case 2:
		s.fields, s.indexed = s.fields+2, s.indexed+1
	case 3:
		s.fields, s.indexed = s.fields+1, s.indexed+2
	}
	return s
}

// A machine that stops while a collection is altered leaves it as it was or altered.
func TestCrashesAroundAlter(t *testing.T) {
	dbkit.LongTest(t)
	for _, noSync := range []bool{false, true} {
		cr := newCrasher(t)
		_, c := alterBase(t, &db.Options{FS: errorfs.Wrap(cr.mem, cr), NoSync: noSync})
		states := []alteredState{alteredStateOf(t, c)}
		for i, step := range alterSteps {
			cr.begin(i, fmt.Sprintf("NoSync %v, step %d", noSync, i), 1)
			must(t, step(c))
			cr.begin(i, "", 0)
			states = append(states, afterStep(states[i], i))
		}
		for _, crash := range cr.crashes {
			possible := []alteredState{states[crash.step], states[crash.step+1]}
			if noSync && crash.step == 2 { // the put was not synced; the second alteration makes it durable
				possible = append(possible, states[1])
			}
			checkAltered(t, crash.what, crash.fs, possible...)
		}
		if len(cr.crashes) < 8 {
			t.Errorf("%d crashes", len(cr.crashes))
		}
		t.Logf("NoSync %v: %d crashes", noSync, len(cr.crashes))
	}
}
