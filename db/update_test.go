package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// presentStatistics returns the statistics of a space as the online step has them.
func presentStatistics(ctx context.Context, c *db.Collection, v *state.View,
	cv *state.CollectionView) (*model.Statistics, error) {
	b, err := db.Learning(db.Of(c)).Statistics(ctx, v, cv)
	if err != nil {
		return nil, err
	}
	return model.UnmarshalStatistics(b)
}

// statisticsOf returns the statistics of a space as the online step has them, and those
// that its rows have taught, accumulated anew from what is stored.
func statisticsOf(t testing.TB, c *db.Collection, space uint32) (got, want *model.Statistics) {
	t.Helper()
	must(t, db.Read(c, func(v *state.View, cv *state.CollectionView) error {
		cv, err := cv.InSpace(space)
		if err != nil {
			return err
		}
		if got, err = presentStatistics(ctx, c, v, cv); err != nil {
			return err
		}
		o, err := model.NewOnline(cv.Space.Learned, model.NewStatistics(cv.Space.Learned))
		if err != nil {
			return err
		}
		taught := 0
		err = record.ForEachEntry(v.Snap, codec.NumberKey(codec.KindLessons, cv.ID, cv.Space.ID),
			func(row uint32, entry []byte) error {
				taught++
				stored, err := codec.DecodeLesson(cv.Space.Bits, entry)
				if err != nil {
					return err
				}
				item := model.Example{}
				for _, at := range cv.Space.Positions {
					x, _, err := record.ReadVector(v.Snap, cv.ID, row, at, cv.Modalities[at])
					if err != nil {
						return err
					}
					item.Vectors = append(item.Vectors, x)
				}
				lesson, err := cv.Space.Lesson(stored, item)
				if err != nil {
					return err
				}
				return o.Relearn(ctx, []model.Example{item}, []model.Lesson{lesson})
			})
		failIf(t, uint64(taught) != cv.Numbers.Taught, "%d rows have taught, %d were counted", taught,
			cv.Numbers.Taught)
		want = o.Statistics()
		return err
	}))
	return got, want
}

// checkStatistics compares these within 1e-9 of the largest number of each matrix.
func checkStatistics(t testing.TB, c *db.Collection, space uint32) {
	t.Helper()
	got, want := statisticsOf(t, c, space)
	fine(t, got.Same(want, 1e-9))
}

// Items that come one after another teach the projections by their labels; those that
// change or go are taken out again; and a crash at any time loses nothing of that.
func TestUpdateByLabels(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items := dbkit.Pairs(400, synth.Config{Seed: 4, Missing: .2})
	putAll(t, c, items[:80])
	opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}}
	dbkit.MustTrain(t, c, opt)
	checkStatistics(t, c, 0)
	var crashes []*vfs.MemFS
	revision := uint32(1)
	for from := 80; from < 400; from += 40 {
		putAll(t, c, items[from:from+40])
		if from == 200 { // what has taught changes and goes
			for i := range 10 {
				changed := *items[2*i]
				changed.Vectors = items[300+i].Vectors
				putAll(t, c, []*db.Item{&changed})
			}
			need(c.Delete(ctx, "k31", "k33", "k90", "k210"))(t)
			need(c.Merge(ctx, &db.Item{Key: "k50", Payload: []byte("x")}))(t)
		}
		u := dbkit.MustUpdate(t, c, db.UpdateOptions{})
		revision++
		want := 40
		if from == 200 {
			want += 10 - 1
			failIf(t, u.Forgotten != 13, "%d items forgotten", u.Forgotten)
		}
		failIf(t, u.Revision != revision || !u.Revised || u.Labelled != want || u.Unlabelled != 0,
			"update %d: %+v", from, u)
		checkStatistics(t, c, 0)
		crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
	}
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{})
	failIf(t, u.Revised || u.Items != 0 || u.Revision != revision, "an update of nothing: %+v", u)
	dbkit.MustClose(t, d)
	for i, fs := range append(crashes, mem) {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, MustExist: true})
		c := dbkit.MustCollection(t, d, "main")
		s, err := c.Stats(ctx)
		failIf(t, err != nil || s.Revision != min(uint32(i)+2, revision), "%+v, %v", s, err)
		checkStatistics(t, c, 0)
		putAll(t, c, items[:1])
		u := dbkit.MustUpdate(t, c, db.UpdateOptions{})
		failIf(t, u.Items != 1 || u.Forgotten != 1, "after a crash: %+v", u)
		checkStatistics(t, c, 0)
		dbkit.MustClose(t, d)
	}
}

// What rows teach that change while an update goes on is taken out again by the next.
func TestWritesDuringAnUpdate(t *testing.T) {
	t.Parallel()
	d, c, items := openPairs(t, 100, 300, synth.Config{Seed: 5})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	putAll(t, c, items[100:200])
	written := false
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{Progress: func(stage string, done, total int64) {
		if written || stage != "learn" || done != 100 {
			return
		}
		written = true // all have been learned, and nothing is stored yet
		changed := *items[150]
		changed.Vectors = items[250].Vectors
		putAll(t, c, []*db.Item{&changed, items[201]})
		fine(t, errOf(c.Delete(ctx, "k20", "k160")))
	}})
	stopIf(t, u.Items != 100 || !written, "%+v", u)
	checkStatistics(t, c, 0)
	u = dbkit.MustUpdate(t, c, db.UpdateOptions{})
	failIf(t, u.Revision != 3 || u.Items != 2 || u.Forgotten != 3, "%+v", u)
	checkStatistics(t, c, 0)
	dbkit.MustClose(t, d)
}

// Items without labels teach as the teacher says.
func TestUpdateByProjections(t *testing.T) {
	dbkit.LongTest(t)
	for _, teacher := range []db.Teacher{db.TeacherAuto, db.TeacherLabels, db.TeacherModality,
		db.TeacherSelf} {
		d, c, items := openPairs(t, 200, 500, synth.Config{Seed: 6, Missing: .1})
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
		unlabel(items[200:])
		putAll(t, c, items[200:])
		before := dbkit.AllItems(t, c)
		u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: teacher})
		switch teacher {
		case db.TeacherAuto:
			failIf(t, u.Reason == "" || u.Lead == "" || u.Revised != (u.Items > 0) || u.Items+
				u.Skipped != 300 || u.Refused != u.Skipped, "%+v", u)
		case db.TeacherLabels:
			failIf(t, u.Revised || u.Items > 0 || u.Skipped != 300, "%+v", u)
		default:
			failIf(t, !u.Revised || u.Unlabelled == 0 || u.Labelled != 0 || u.Unlabelled+u.Skipped != 300,
				"%+v", u)
		}
		for i, it := range dbkit.AllItems(t, c) {
			stopIf(t, !slices.Equal(it.Code, before[i].Code), "%v: item %s has another code", teacher, it.Key)
		}
		checkStatistics(t, c, 0)
		if again := dbkit.MustUpdate(t, c, db.UpdateOptions{}); u.Revised &&
			again.Items+again.Skipped != u.Skipped {
			t.Errorf("%v: others have taught before: %+v, and then %+v", teacher, u, again)
		} else if !u.Revised && again.Items+again.Skipped != 300 {
			t.Errorf("%v: they wait for a teacher: %+v", teacher, again)
		}
		need(c.Delete(ctx, items[300].Key, items[301].Key))(t)
		putAll(t, c, items[310:320])
		dbkit.MustUpdate(t, c, db.UpdateOptions{})
		checkStatistics(t, c, 0)
		dbkit.MustClose(t, d)
	}
}

// A label that training has not seen gets a direction when that is asked for, and the
// items that carry it, and no others, another code.
func TestGrowLabels(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items := dbkit.Pairs(200, synth.Config{Seed: 7})
	train(t, c, items[:150], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	for i := range 20 {
		it := *items[5*i]
		it.Labels = append(slices.Clone(it.Labels), "new")
		if i%2 == 0 {
			it.Labels = []string{"new", "newer"}
		}
		putAll(t, c, []*db.Item{&it})
	}
	before := dbkit.AllItems(t, c)
	dbkit.MustUpdate(t, c, db.UpdateOptions{})
	if u := dbkit.MustUpdate(t, c, db.UpdateOptions{}); u.Revised {
		t.Errorf("%+v", u)
	}
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	failIf(t, !slices.Equal(u.Grown, []string{"new", "newer"}) || u.Recoded != 20 || u.Labelled != 20 ||
		!u.Revised, "%+v", u)
	check := func(c *db.Collection) {
		t.Helper()
		codes := map[string]bool{}
		for i, it := range dbkit.AllItems(t, c) {
			carries := slices.Contains(it.Labels, "new")
			if same := slices.Equal(it.Code, before[i].Code); same == carries &&
				slices.Contains(it.Labels, "newer") {
				t.Errorf("item %s of %v: its code is the same: %v", it.Key, it.Labels, same)
			} else if !carries && !same {
				t.Errorf("item %s of %v has another code", it.Key, it.Labels)
			}
			if carries && it.CodeFrom != "labels" {
				t.Errorf("item %s of %v has its code from %s", it.Key, it.Labels, it.CodeFrom)
			}
			if slices.Equal(it.Labels, []string{"new", "newer"}) {
				codes[string(it.Code)] = true
			}
		}
		failIf(t, len(codes) != 1, "%d codes of one label set", len(codes))
		checkStatistics(t, c, 0)
	}
	check(c)
	clone := mem.CrashClone(vfs.CrashCloneCfg{})
	dbkit.MustClose(t, d)
	for _, fs := range []*vfs.MemFS{clone, mem} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, MustExist: true})
		check(dbkit.MustCollection(t, d, "main"))
		dbkit.MustClose(t, d)
	}
	// With 16 bits and 4 + 2 labels, 10 directions are left.
	d = dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	for i := range 12 {
		it := *items[150+i]
		it.Labels = []string{fmt.Sprint("label ", i)}
		putAll(t, c, []*db.Item{&it})
	}
	u = dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	failIf(t, len(u.Grown) != 10 || len(u.NoDirection) != 2 || u.Recoded != 10, "%+v", u)
	checkStatistics(t, c, 0)
}

// When all that has taught is gone, a revision keeps the projections that there are: items
// without labels have codes by them, teach by them, and are found.
func TestUpdateWithNothingThatHasTaught(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 60, 120, synth.Config{Seed: 7})
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	unlabel(items[60:])
	putAll(t, c, items[60:90])
	var before [][]byte
	for _, it := range items[60:] {
		code, _ := need2(c.Encode(it))(t)
		before = append(before, code)
	}
	for _, it := range items[:60] {
		need(c.Delete(ctx, it.Key))(t)
	}
	putAll(t, c, []*db.Item{{Key: "grows", Labels: []string{"grown"}}})
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true, Teacher: db.TeacherLabels})
	stopIf(t, u.Forgotten != 60 || u.Items != 0 || !u.Revised || len(u.Grown) != 1, "%+v", u)
	putAll(t, c, items[90:])
	for i, it := range items[60:] {
		got := need(c.Get(ctx, it.Key))(t)
		if !slices.Equal(got.Code, before[i]) {
			t.Errorf("item %s: code %x, before %x", it.Key, got.Code, before[i])
		}
	}
	u = dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	failIf(t, u.Unlabelled != 60, "%+v", u)
	checkStatistics(t, c, 0)
	hits, err := c.Search(ctx, db.Query{From: "image", Vector: items[70].Vectors["image"], To: "text", K: 60})
	failIf(t, err != nil || len(hits.Hits) != 60, "%d hits, %v", len(hits.Hits), err)
}

// The first revision and the latest eight are kept, and can be gone back to.
func TestRevisionsAreKeptAndRestored(t *testing.T) {
	dbkit.LongTest(t)
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(400, synth.Config{Seed: 8})
	w.put(items[:100])
	dbkit.MustTrain(t, w.c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	probe := db.Query{From: "image", Vector: items[390].Vectors["image"], To: "text", K: 5}
	projection := map[uint32][]float64{}
	for i := range 12 {
		w.put(items[100+20*i : 120+20*i])
		u := dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
		_, z := need2(w.c.EncodeQuery(ctx, probe))(t)
		projection[u.Revision] = z
	}
	kept := func() (all []uint32) {
		must(t, db.Read(w.c, func(_ *state.View, cv *state.CollectionView) error {
			for _, d := range cv.Revisions {
				if d.Revision > 1 {
					all = append(all, d.Revision)
				}
			}
			return nil
		}))
		return all
	}
	want := []uint32{6, 7, 8, 9, 10, 11, 12, 13}
	for range 2 {
		got := kept()
		failIf(t, !slices.Equal(got, want), "revisions %v are kept, want %v", got, want)
		w.reopen()
	}
	errorIs(t, errOf(w.c.RestoreRevision(ctx, 0, 5)), db.ErrNotFound)
	for _, to := range []uint32{9, 7, 1} {
		u := need(w.c.RestoreRevision(ctx, 0, to))(t)
		_, z, err := w.c.EncodeQuery(ctx, probe)
		if err != nil || to > 1 && !slices.Equal(z, projection[to]) {
			t.Errorf("revision %d, which is %d again, projects to %v, want %v (%v)", u.Revision, to, z,
				projection[to], err)
		}
		checkStatistics(t, w.c, 0)
		w.reopen()
		_, again, err := w.c.EncodeQuery(ctx, probe)
		failIf(t, err != nil || !slices.Equal(z, again), "after opening again: %v, %v", again, err)
		checkStatistics(t, w.c, 0)
	}
	w.put(items[340:380])
	u := dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
	failIf(t, u.Items != 40, "%+v", u)
	checkStatistics(t, w.c, 0)
}

// With UpdateItems the projections learn in the background.
func TestUpdatesInTheBackground(t *testing.T) {
	t.Parallel()
	for _, opts := range []db.Options{{UpdateItems: 50}, {UpdateInterval: 20 * time.Millisecond}} {
		opts.FS = vfs.NewMem()
		d, c := openNew(t, "db", &opts, dbkit.PairsSchema)
		items := dbkit.Pairs(300, synth.Config{Seed: 9})
		train(t, c, items[:100], db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
		putAll(t, c, items[100:])
		eventually(t, "an update", func() bool { return activeSpace(t, c).Revision > 1 })
		checkStatistics(t, c, 0)
		dbkit.MustClose(t, d)
	}
}

// A revision that is restored is learned from as one that has never known what came later.
func TestUpdateAfterRestoring(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 200, 300, synth.Config{Seed: 10})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	unlabel(items[200:])
	putAll(t, c, items[200:250])
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	need(c.Delete(ctx, "k7", "k8"))(t)
	need(c.RestoreRevision(ctx, 0, 1))(t)
	putAll(t, c, items[250:])
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	must(t, db.Read(c, func(v *state.View, cv *state.CollectionView) error {
		statistics, err := presentStatistics(ctx, c, v, cv)
		if err != nil {
			return err
		}
		want, _, err := cv.Space.Learned.Refit(statistics, nil)
		if err != nil {
			return err
		}
		x := items[3].Vectors["image"]
		z, w := make([]float64, 32), make([]float64, 32)
		if err := errors.Join(cv.Space.Learned.NewEncoder().Project(z, 0, x),
			want.NewEncoder().Project(w, 0, x)); err != nil {
			return err
		}
		for j := range z {
			failIf(t, math.Abs(z[j]-w[j]) > 1e-6, "bit %d: %g, the statistics say %g", j, z[j], w[j])
		}
		return nil
	}))
}

// Where many rows are pending, those with labels are found by the sets of labels.
func TestUpdateOfMany(t *testing.T) {
	dbkit.LongTest(t)
	_, c, items := openPairs(t, 1000, 5000, synth.Config{Seed: 11})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	want := 0
	for i, it := range items[1000:] {
		switch i % 3 {
		case 0:
			it.Labels = nil
		case 1:
			it.Labels = []string{"unknown"}
		default:
			want++
		}
	}
	putAll(t, c, items[1000:])
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	failIf(t, u.Labelled != want || u.Skipped != len(items)-1000-want, "%+v, want %d with labels", u, want)
	checkStatistics(t, c, 0)
}
