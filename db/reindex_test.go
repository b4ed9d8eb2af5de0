package db_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// mixedPairs makes items of which some have labels, some lack a modality, and some have
// nothing that gives a code.
func mixedPairs(n int, seed uint64) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: seed, Missing: .2, Noise: 1, Classes: 12})
	for i, it := range items {
		switch {
		case i%17 == 11:
			it.Vectors, it.Labels = nil, nil
		case i%3 > 0:
			it.Labels = nil
		}
	}
	return items
}

// inSpace returns the collection as it is seen in a space.
func inSpace(t testing.TB, c *db.Collection, space uint32) (cv *state.CollectionView) {
	t.Helper()
	must(t, db.Read(c, func(_ *state.View, now *state.CollectionView) (err error) {
		cv, err = now.InSpace(space)
		return err
	}))
	return cv
}

// revise gives the active space a second revision, whose projections have learned from
// what the first ones say of strange items, which are gone again: they are other ones.
func revise(t testing.TB, c *db.Collection) {
	t.Helper()
	strange := dbkit.Pairs(300, synth.Config{Seed: 99, Noise: 2})
	var keys []string
	for _, it := range strange {
		it.Key, it.Labels = "strange"+it.Key, nil
		keys = append(keys, it.Key)
	}
	putAll(t, c, strange)
	u, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherModality})
	stopIf(t, err != nil || u.Revision != 2, "%+v, %v", u, err)
	gives(t, len(keys))(c.Delete(ctx, keys...))
}

// statistics returns what the rows of a space have taught by now.
func statistics(t testing.TB, c *db.Collection, space uint32) (b []byte) {
	t.Helper()
	must(t, db.Read(c, func(v *state.View, cv *state.CollectionView) (err error) {
		if cv, err = cv.InSpace(space); err == nil {
			b, err = db.Learning(db.Of(c)).Statistics(ctx, v, cv)
		}
		return err
	}))
	return b
}

// checkReindexed checks the codes of all items in the active space: those of labels are as in the space
// before, the others those that Encode makes, which looks at the features alone. It returns the codes by key.
func checkReindexed(t testing.TB, c *db.Collection, items []*db.Item,
	byLabels map[string]string) map[string]string {
	t.Helper()
	want := map[string]*db.Item{}
	for _, it := range items {
		want[it.Key] = it
	}
	codes := map[string]string{}
	coded := 0
	for _, got := range dbkit.AllItems(t, c) {
		it := want[got.Key]
		if it == nil {
			t.Fatalf("item %s is there", got.Key)
		}
		delete(want, got.Key)
		code, from := "", ""
		if len(it.Labels) > 0 {
			code, from = byLabels[fmt.Sprint(it.Labels)], "labels"
		} else if len(it.Vectors) > 0 {
			b, _ := need2(c.Encode(it))(t)
			code, from = string(b), got.CodeFrom
		}
		if string(got.Code) != code || got.CodeFrom != from || (from == "labels") != (len(it.Labels) > 0) {
			t.Fatalf("item %s, labels %v: code %x from %q, want %x from %q", it.Key, it.Labels, got.Code,
				got.CodeFrom, code, from)
		}
		if code != "" {
			coded++
		}
		codes[got.Key] = code
	}
	stopIf(t, len(want) > 0, "%d items are missing", len(want))
	if s, err := c.Stats(ctx); err != nil || s.CodedItems != coded {
		t.Fatalf("%d items have codes, not %d, %v", s.CodedItems, coded, err)
	}
	// The index says the same, in memory and on disk.
	for _, key := range []string{items[0].Key, items[len(items)/2].Key} {
		if codes[key] == "" {
			continue
		}
		same := 0
		for _, other := range codes {
			if other == codes[key] {
				same++
			}
		}
		for _, plan := range dbkit.AllPlans {
			res, err := dbkit.FirstWithin(c, db.Query{Code: []byte(codes[key]), K: 1, Plan: plan}, 0)
			stopIf(t, err != nil || res.Total != same, "plan %v: %d items have the code of %s, not %d, %v",
				plan, res.Total, key, same, err)
		}
	}
	return codes
}

// labelCodes returns the codes of label sets in the active space.
func labelCodes(t testing.TB, c *db.Collection) map[string]string {
	t.Helper()
	codes := map[string]string{}
	for _, it := range dbkit.AllItems(t, c) {
		if it.CodeFrom == "labels" {
			codes[fmt.Sprint(it.Labels)] = string(it.Code)
		}
	}
	return codes
}

var smallTraining = db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20, Seed: 1}}

// A world of items with codes of the first revision, and the second one.
func revisedWorld(t testing.TB, items []*db.Item,
	opts *db.Options) (*db.DB, *db.Collection, map[string]string) {
	t.Helper()
	dir := "db"
	if opts == nil {
		dir = t.TempDir()
	}
	d := dbkit.MustOpen(t, dir, opts)
	t.Cleanup(func() { _ = d.Close() })
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	train(t, c, items, smallTraining)
	codes := labelCodes(t, c)
	revise(t, c)
	return d, c, codes
}

// Every unlabelled item gets the code that the present projections make; the space goes
// on with what has taught the other one; it stands by until it is made the active one.
func TestReindexMakesPresentCodes(t *testing.T) {
	dbkit.LongTest(t)
	items := mixedPairs(400, 1)
	d, c, byLabels := revisedWorld(t, items, nil)
	before := dbkit.AllItems(t, c)
	stale := 0
	for _, it := range before {
		if it.CodeFrom != "labels" && it.Code != nil {
			if code, _, err := c.Encode(it); err != nil || !slices.Equal(code, it.Code) {
				stale++
			}
		}
	}
	stopIf(t, stale < 50, "the revision gives only %d items other codes", stale)
	var total int64
	r, err := c.Reindex(ctx, db.ReindexOptions{Progress: func(_ string, _, n int64) { total = n }})
	stopIf(t, err != nil || r.Space != 2 || r.Parent != 1 || r.Revision != 1 || r.Active ||
		total != int64(len(items)), "%+v, %v, of %d", r, err, total)
	for i, it := range dbkit.AllItems(t, c) {
		stopIf(t, !slices.Equal(it.Code, before[i].Code), "item %s has another code", it.Key)
	}
	one, two := inSpace(t, c, 1), inSpace(t, c, 2)
	if one.Numbers.Taught == 0 || two.Numbers.Taught != one.Numbers.Taught ||
		!two.Pending.Equals(one.Pending) || two.Recode.GetCardinality() > 0 {
		t.Errorf("%d rows have taught, not %d, or others are pending", two.Numbers.Taught, one.Numbers.Taught)
	}
	failIf(t, !slices.Equal(statistics(t, c, 1), statistics(t, c, 2)), "the statistics are others")
	failIf(t, two.Space.Learned == one.Space.Trained, "the new space has the trained projections")
	for range 2 {
		must(t, c.Activate(ctx, 2))
		checkReindexed(t, c, items, byLabels)
		d, c = reopen(t, d, db.State(d).Engine.Dir, nil)
	}
	gives(t, db.Space(1))(c.Rollback(ctx))
	r, err = c.Reindex(ctx, db.ReindexOptions{Space: 2, Activate: true})
	stopIf(t, err != nil || r.Space != 3 || r.Parent != 2 || !r.Active, "%+v, %v", r, err)
	checkReindexed(t, c, items, byLabels)
	dbkit.MustClose(t, d)
}

// changes makes a random change of each sort, and tells it to the list of items.
func changes(t testing.TB, c *db.Collection, r *rand.Rand, items *[]*db.Item, fresh *[]*db.Item) {
	t.Helper()
	pick := func() int { return r.IntN(len(*items)) }
	replace := func(i int, f func(it *db.Item)) *db.Item {
		own := *(*items)[i]
		f(&own)
		(*items)[i] = &own
		return &own
	}
	must := func(err error) {
		t.Helper()
		must(t, err)
	}
	donor := (*items)[pick()]
	must(errOf(c.Put(ctx,
		replace(pick(), func(it *db.Item) { it.Vectors, it.Labels = donor.Vectors, donor.Labels }))))
	i := pick()
	labels := []string{fmt.Sprintf("class%d", r.IntN(4))}
	replace(i, func(it *db.Item) { it.Labels = labels })
	must(errOf(c.Merge(ctx, &db.Item{Key: (*items)[i].Key, Labels: labels})))
	i = pick()
	replace(i, func(it *db.Item) { it.Labels = nil })
	must(errOf(c.Merge(ctx, &db.Item{Key: (*items)[i].Key, Labels: []string{}})))
	if donor.Vectors != nil {
		i = pick()
		replace(i, func(it *db.Item) {
			vectors := map[string][]float32{}
			for name, x := range it.Vectors {
				vectors[name] = x
			}
			for name, x := range donor.Vectors {
				vectors[name] = x
			}
			it.Vectors = vectors
		})
		must(errOf(c.Merge(ctx, &db.Item{Key: (*items)[i].Key, Vectors: donor.Vectors})))
	}
	i = pick()
	must(errOf(c.Delete(ctx, (*items)[i].Key)))
	if r.IntN(2) == 0 {
		must(errOf(c.Put(ctx, (*items)[i]))) // in another row
	} else {
		*items = slices.Delete(*items, i, i+1)
	}
	if len(*fresh) > 0 {
		must(errOf(c.Put(ctx, (*fresh)[0])))
		*items, *fresh = append(*items, (*fresh)[0]), (*fresh)[1:]
	}
}

// What is written while a space is being built is in it as if it had been written before.
func TestWritesWhileReindexing(t *testing.T) {
	t.Parallel()
	for _, noSync := range []bool{false, true} {
		if testing.Short() && !noSync {
			continue
		}
		items, fresh := mixedPairs(600, 2), mixedPairs(100, 3)
		for i, it := range fresh {
			it.Key = fmt.Sprint("fresh", i)
		}
		d, c, byLabels := revisedWorld(t, items, &db.Options{FS: vfs.NewMem(), NoSync: noSync})
		rng := seed.Rand(t, 1, 2)
		steps := 0
		opt := db.ReindexOptions{Activate: true, Rate: 1000, Progress: func(_ string, _, _ int64) {
			steps++
			for range 5 {
				changes(t, c, rng, &items, &fresh)
			}
		}}
		r, err := c.Reindex(ctx, opt)
		stopIf(t, err != nil || !r.Active || steps < 5, "%+v, %v, %d steps", r, err, steps)
		for range 20 {
			changes(t, c, rng, &items, &fresh)
		}
		checkReindexed(t, c, items, byLabels)
		d, _ = reopen(t, d, "db", db.OptionsOf(d))
		checkReindexed(t, dbkit.MustCollection(t, d, "main"), items, byLabels)
		dbkit.MustClose(t, d)
	}
}

// A row that changes while a space is being installed has taught what it was before.
func TestWritesWhileFounding(t *testing.T) {
	t.Parallel()
	items := mixedPairs(200, 4)
	d, c, byLabels := revisedWorld(t, items, nil)
	defer dbkit.MustClose(t, d)
	changed := *items[0]
	changed.Labels = items[3].Labels
	sp := need(taught(c).Install(ctx, false, func(v *state.View, cv *state.CollectionView) (*learn.NewSpace,
		error) {
		need(c.Put(ctx, &changed))(t)
		need(c.Delete(ctx, items[6].Key, items[7].Key))(t)
		errorIs(t, errOf(c.Train(ctx, smallTraining)), db.ErrBusy)
		errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{})), db.ErrBusy)
		return db.Learning(d).Reinstall(ctx, v, cv, true)
	}))(t)
	items[0] = &changed
	items = slices.Delete(items, 6, 8)
	r, err := c.Reindex(ctx, db.ReindexOptions{Space: db.Space(sp.ID)})
	stopIf(t, err != nil || r.Space != db.Space(sp.ID) || !r.Active, "%+v, %v", r, err)
	checkReindexed(t, c, items, byLabels)
	one, two := inSpace(t, c, 1), inSpace(t, c, 2)
	failIf(t, two.Numbers.Taught != one.Numbers.Taught || !two.Pending.Equals(one.Pending) ||
		two.Numbers.NextRetraction != 3, "%+v and %+v", one.Numbers, two.Numbers)
	retractions := func(space uint32) (lessons []string) {
		must(t, record.ForEach(db.State(d).Engine.DB, codec.NumberKey(codec.KindRetraction, db.Inside(c).ID,
			space), func(_, value []byte) error {
			departed, err := codec.DecodeRetraction(32, value)
			if err == nil {
				lessons = append(lessons, fmt.Sprint(departed.Codes, departed.Features))
			}
			return err
		}))
		lessons = lessons[len(lessons)-3:]
		slices.Sort(lessons)
		return lessons
	}
	failIf(t, !slices.Equal(retractions(1), retractions(2)), "the last three retractions are others")
}

// A reindexing that is cancelled is gone on with, and until then nobody can search the
// space, nor begin another.
func TestReindexGoesOn(t *testing.T) {
	t.Parallel()
	items := mixedPairs(500, 5)
	_, c, byLabels := revisedWorld(t, items, nil)
	cancelled, cancel := context.WithCancel(ctx)
	_, err := c.Reindex(cancelled, db.ReindexOptions{Rate: 1000, Progress: func(_ string, done, _ int64) {
		if done >= 200 {
			cancel()
		}
	}})
	stopIf(t, !errors.Is(err, context.Canceled), "%v", err)
	errorsAre(t, db.ErrBusy, map[string]error{
		"train":              errOf(c.Train(ctx, smallTraining)),
		"search":             errOf(c.InSpace(2, 0)),
		"activate":           c.Activate(ctx, 2),
		"reindex another":    errOf(c.Reindex(ctx, db.ReindexOptions{Space: 1})),
		"reindex one absent": errOf(c.Reindex(ctx, db.ReindexOptions{Space: 7})),
	}, "fddhdb: ")
	changed := *items[10]
	changed.Labels, changed.Vectors = nil, items[12].Vectors
	need(c.Put(ctx, &changed))(t)
	items[10] = &changed
	first := int64(0)
	r, err := c.Reindex(ctx, db.ReindexOptions{Activate: true, Progress: func(_ string, done, _ int64) {
		if first == 0 {
			first = done
		}
	}})
	stopIf(t, err != nil || r.Space != 2 || r.Parent != 1 || !r.Active || first <= 100,
		"%+v, %v; it went on from %d", r, err, first)
	checkReindexed(t, c, items, byLabels)
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{Space: 7})), db.ErrNotFound)
}

// Whoever asks for a space that is being built waits for it, and goes on if the other
// one gives up; dropping it ends both.
func TestReindexTogether(t *testing.T) {
	t.Parallel()
	items := mixedPairs(300, 6)
	_, c, _ := revisedWorld(t, items, nil)
	// begin begins one that says when it hears of progress, and from the call of that number on
	// stands still until it may go on.
	begin := func(ctx context.Context, call int, goOn <-chan struct{}) (heard chan struct{},
		ended chan error) {
		heard, ended = make(chan struct{}), make(chan error, 1)
		calls := 0
		go func() {
			_, err := c.Reindex(ctx, db.ReindexOptions{Rate: 2000, Progress: func(string, int64, int64) {
				if calls++; calls == 1 {
					close(heard)
				}
				if calls >= call {
					<-goOn
				}
			}})
			ended <- err
		}()
		return heard, ended
	}
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	given, shared := make(chan struct{}), make(chan struct{})
	heard, first := begin(cancelled, 1, given)
	<-heard
	heard, second := begin(ctx, 2, shared) // it builds until the third one is there
	<-heard
	cancel()
	close(given)
	errorIs(t, <-first, context.Canceled)
	var once sync.Once
	r, err := c.Reindex(ctx, db.ReindexOptions{Rate: 1e6,
		Progress: func(string, int64, int64) { once.Do(func() { close(shared) }) }})
	failIf(t, err != nil || r.Space != 2, "the third: %+v, %v", r, err)
	fine(t, <-second)
	dropped := make(chan struct{})
	heard, first = begin(ctx, 1, dropped)
	<-heard
	heard, second = begin(ctx, 2, dropped)
	<-heard
	must(t, c.DropSpace(ctx, 3))
	close(dropped)
	errorIs(t, <-first, db.ErrNotFound)
	errorIs(t, <-second, db.ErrNotFound)
	must(t, db.State(db.Of(c)).Engine.DB.Flush())
	for key := range contents(t, db.Of(c)) {
		if kind := key[0]; kind >= codec.KindSpace && kind <= codec.KindSubstring && key[8] == 3 {
			t.Fatalf("key %x of a space that is dropped", key)
		}
	}
}

// Close ends what builds a space, and the next Open goes on with it.
func TestCloseWhileReindexing(t *testing.T) {
	t.Parallel()
	items := mixedPairs(400, 7)
	fs := vfs.NewMem()
	d, c, byLabels := revisedWorld(t, items, &db.Options{FS: fs})
	reached := make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		_, err := c.Reindex(ctx, db.ReindexOptions{Activate: true, Rate: 10,
			Progress: func(string, int64, int64) { once.Do(func() { close(reached) }) }})
		ended <- err
	}()
	<-reached
	dbkit.MustClose(t, d) // at ten a second all would take 40 seconds
	errorIs(t, <-ended, db.ErrClosed)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	dbkit.MustClose(t, d) // and at once again
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	eventually(t, "the new space answers, without being asked",
		func() bool { return inSpace(t, c, 0).Space.ID == 2 })
	checkReindexed(t, c, items, byLabels)
}

// An item that cannot be read ends a build in the background, which is said and nothing
// worse; the space can be dropped.
func TestBuildInTheBackgroundThatFails(t *testing.T) {
	t.Parallel()
	items := mixedPairs(300, 8)
	fs := vfs.NewMem()
	d, c, _ := revisedWorld(t, items, &db.Options{FS: fs})
	cancelled, cancel := context.WithCancel(ctx)
	errorIs(t, errOf(c.Reindex(cancelled,
		db.ReindexOptions{Rate: 2000, Progress: func(string, int64, int64) { cancel() }})), context.Canceled)
	must(t, db.State(d).Engine.DB.Set(codec.NumberKey(codec.KindItem, db.Inside(c).ID, 200), []byte("damage"),
		pebble.Sync))
	d, _ = reopen(t, d, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{})), db.ErrCorrupt)
	r, err := c.Search(ctx, db.Query{Key: "k2"})
	failIf(t, err != nil || r.Space != 1 || len(r.Hits) == 0, "search: %+v, %v", r, err)
	fine(t, c.DropSpace(ctx, 2))
}

func TestReindexRefuses(t *testing.T) {
	d, c, _ := openPairs(t, -1, 60, synth.Config{})
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{})), db.ErrNoModel)
	dbkit.MustTrain(t, c, smallTraining)
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{Rate: -1})), db.ErrInvalid)
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{Space: 2})), db.ErrNotFound)
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	errorIs(t, errOf(codes.Reindex(ctx, db.ReindexOptions{})), db.ErrInvalid)
	fine(t, errOf(c.Reindex(ctx, db.ReindexOptions{})))
	dbkit.MustClose(t, d)
	errorIs(t, errOf(c.Reindex(ctx, db.ReindexOptions{})), db.ErrClosed)
}

// A machine that stops at any change to the file system while a space is built leaves
// it to be completed, with what was acknowledged meanwhile: in blocks that are stored in
// batches, and in blocks that are stored as tables.
func TestCrashesWhileReindexing(t *testing.T) {
	dbkit.LongTest(t)
	t.Run("batches", func(t *testing.T) {
		crashesWhileReindexing(t, 120, db.ReindexOptions{Activate: true, Rate: 400}, 1)
	})
	t.Run("tables", func(t *testing.T) {
		crashesWhileReindexing(t, learn.TableRows+2000,
			db.ReindexOptions{Activate: true, Rate: 2 * learn.TableRows}, 5)
	})
}

func crashesWhileReindexing(t *testing.T, n int, opt db.ReindexOptions, every int) {
	mem := dbkit.NewCrashFS()
	r := seed.Rand(t, 3, 4)
	type crash struct {
		what  string
		fs    *vfs.MemFS
		items []*db.Item
		maybe int // whether this one is as before is unknown; -1: none is
	}
	var mu sync.Mutex
	var crashes []crash
	items := mixedPairs(n, 9)
	now := crash{items: items, maybe: -1}
	recording, changes := false, 0
	fsys := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && recording {
			if changes++; changes%every == 0 {
				now.what = fmt.Sprintf("before change %d (%s)", changes, op.Path)
				now.fs = mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 50, RNG: r})
				crashes = append(crashes, now)
			}
		}
		return nil
	}))
	d, c, byLabels := revisedWorld(t, items, &db.Options{FS: fsys})
	record := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		f()
	}
	record(func() { recording = true })
	step := 0
	opt.Progress = func(string, int64, int64) {
		step++
		i := 7 * step
		own := *items[i]
		own.Vectors, own.Labels = items[3*step+1].Vectors, nil
		items = slices.Clone(items)
		items[i] = &own
		record(func() { now.maybe = i })
		fine(t, errOf(c.Put(ctx, &own)))
		record(func() { now.items, now.maybe = items, -1 })
	}
	need(c.Reindex(ctx, opt))(t)
	record(func() { recording = false })
	checkReindexed(t, c, items, byLabels)
	dbkit.MustClose(t, d)
	enough := effort.Of(15, 5)
	for len(crashes) >= 2*enough { // how often the store writes is its own affair
		for i := range len(crashes) / 2 {
			crashes[i] = crashes[2*i+1]
		}
		crashes = crashes[:len(crashes)/2]
	}
	before, during := 0, 0
	for _, cr := range crashes {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: cr.fs, MustExist: true})
		c := dbkit.MustCollection(t, d, "main")
		if inSpace(t, c, 0).Building() != nil {
			during++
		}
		eventually(t, "the space is complete, without being asked",
			func() bool { return inSpace(t, c, 0).Building() == nil })
		if inSpace(t, c, 0).SpaceNumber(2) == nil {
			before++
			must(t, errOf(c.Reindex(ctx, db.ReindexOptions{Activate: true})), cr.what)
		}
		want := slices.Clone(cr.items)
		if cr.maybe >= 0 {
			got, err := c.Get(ctx, want[cr.maybe].Key)
			must(t, err, cr.what)
			want[cr.maybe] = got
		}
		stopIf(t, inSpace(t, c, 0).Space.ID != 2, "%s: space 2 is not the active one", cr.what)
		t.Log(cr.what)
		checkReindexed(t, c, want, byLabels)
		need(c.Put(ctx, &db.Item{Key: "after"}))(t)
		dbkit.MustClose(t, d)
	}
	failIf(t, len(crashes) < enough || during == 0,
		"%d crashes, %d of them before there was the space, %d while it was being built", len(crashes),
		before, during)
	t.Logf("%d crashes, %d of them before there was the space, %d while it was being built", len(crashes),
		before, during)
}

// Tables and batches come to the same.
func TestReindexByTablesIsAsByBatches(t *testing.T) {
	dbkit.LongTest(t)
	items := mixedPairs(2*learn.TableRows+300, 10)
	var worlds []*db.DB
	var all []*db.Collection
	origin := vfs.NewMem()
	first, _, byLabels := revisedWorld(t, items, &db.Options{FS: origin})
	dbkit.MustClose(t, first)
	for _, rate := range []int{0, 2 * learn.TableRows, 2*learn.TableRows - 1}[effort.Of(0, 1):] {
		mem := vfs.NewMem()
		need(vfs.Clone(origin, mem, "db", "db"))(t)
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		defer d.Close()
		c := dbkit.MustCollection(t, d, "main")
		r, err := c.Reindex(ctx, db.ReindexOptions{Activate: true, Rate: rate})
		stopIf(t, err != nil || !r.Active, "%+v, %v", r, err)
		_, _, tail := inSpace(t, c, 0).Codes.Table.Covered()
		failIf(t, tail >= 1024, "rate %d: %d codes are not indexed", rate, tail)
		checkReindexed(t, c, items, byLabels)
		worlds, all = append(worlds, d), append(all, c)
	}
	ofCodes := func(d *db.DB) map[string]string {
		all := contents(t, d)
		maps.DeleteFunc(all, func(key, _ string) bool {
			return key[0] < codec.KindOnlineRows || key[0] > codec.KindSubstring
		})
		return all
	}
	last := len(worlds) - 1
	for i := range last {
		if a, b := ofCodes(worlds[i]), ofCodes(worlds[last]); !maps.Equal(a, b) {
			t.Fatalf("%.2000s", cmp.Diff(a, b))
		}
		sameAnswers(t, all[i], all[last])
	}
}

// A new space has the labels that have grown in the other one, and goes on learning from where it was.
func TestReindexAfterGrowingLabels(t *testing.T) {
	dbkit.LongTest(t)
	items := mixedPairs(300, 12)
	d, c, _ := revisedWorld(t, items, nil)
	defer dbkit.MustClose(t, d)
	for i := range 20 {
		own := *items[9*i+1]
		own.Labels = []string{"novel"}
		items[9*i+1] = &own
	}
	putAll(t, c, items)
	u, err := c.Update(ctx, db.UpdateOptions{GrowLabels: true, Teacher: db.TeacherLabels})
	stopIf(t, err != nil || !slices.Equal(u.Grown, []string{"novel"}), "%+v, %v", u, err)
	byLabels := labelCodes(t, c)
	stopIf(t, byLabels["[novel]"] == "", "the label has no code")
	r, err := c.Reindex(ctx, db.ReindexOptions{Activate: true})
	stopIf(t, err != nil || r.Space != 2, "%+v, %v", r, err)
	checkReindexed(t, c, items, byLabels)
	more := mixedPairs(60, 13)
	for _, it := range more {
		it.Key = "more" + it.Key
	}
	putAll(t, c, more)
	need(c.Delete(ctx, items[0].Key, items[3].Key))(t)
	u, err = c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
	stopIf(t, err != nil || u.Space != 2 || u.Revision != 2 || u.Labelled == 0 || u.Forgotten != 2, "%+v, %v",
		u, err)
	// What it has learned is what all that has taught makes at once.
	s := need(model.UnmarshalStatistics(statistics(t, c, 2)))(t)
	m := inSpace(t, c, 2).Space.Learned
	anew, _ := need2(m.Refit(s, nil))(t)
	z, want := make([]float64, 32), make([]float64, 32)
	for _, it := range more {
		for i, name := range []string{"image", "text"} {
			x := it.Vectors[name]
			if x == nil {
				continue
			}
			must(t, errors.Join(m.NewEncoder().Project(z, i, x), anew.NewEncoder().Project(want, i, x)))
			for j := range z {
				if math.Abs(z[j]-want[j]) > 1e-6 {
					t.Fatalf("bit %d of %s of item %s: %g, want %g", j, name, it.Key, z[j], want[j])
				}
			}
		}
	}
}
