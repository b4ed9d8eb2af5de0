package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// Nothing is found in collections with sparse vectors, loaded in bulk, with codes for
// each target, whose items have changed.
func TestVerifyBulkAndSparse(t *testing.T) {
	dbkit.LongTest(t)
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer d.Close()
	schema := db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 6}, {Name: "text", Dim: synth.NUSWideText, Sparse: true}},
		Fields:     []db.Field{{"n", db.Int, true}, {"s", db.String, true}},
	}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Bags(t, 3, learn.TableRows+500)
	for i, it := range items {
		it.Fields = map[string]any{"n": i * i, "s": fmt.Sprint(i)}
	}
	putAll(t, c, items[:300])
	given := fit.Options{ // nothing is chosen, which takes long for wide vectors
		Bits: 32, Anchors: 30,
		Features: map[string]model.FeatureKind{"image": model.FeaturesRaw, "text": model.FeaturesRaw},
		Map:      map[string]model.MapKind{"image": model.MapRBF, "text": model.MapRBF},
		Gamma:    map[string]float64{"image": .1, "text": .1},
	}
	dbkit.MustTrain(t, c, db.TrainOptions{Options: given})
	putAll(t, c, items[300:]) // in bulk, with two spaces
	dbkit.CheckSound(t, d, "loaded in bulk")
	given.Bits = 48
	dbkit.MustTrain(t, c, db.TrainOptions{Rows: 500, Options: given})
	dbkit.CheckSound(t, d, "a space built by tables")
	putAll(t, c, items[:100])
	for i := range 100 {
		if _, err := c.Delete(ctx, items[41*i].Key); err != nil {
			t.Fatal(err)
		}
	}
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 72})
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, codes, dbkit.CodeItems(bulkItems+100, 72, 1, nil))
	dbkit.CheckSound(t, d, "codes loaded in bulk, items deleted")
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "compacted")
}

// Nothing is found while a space is being built, though not all rows have codes in it,
// and some have that were written meanwhile; nor in what a crash leaves of it.
func TestVerifyWhileBuilding(t *testing.T) {
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	defer d.Close()
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(200, synth.Config{Missing: .1})
	putAll(t, c, items[:150])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	var crashes []*vfs.MemFS
	opt := db.TrainOptions{Activate: true, Options: fit.Options{Bits: 24, Anchors: 20}}
	opt.Progress = func(phase string, _, _ int64) {
		if phase != "encode" || len(crashes) == 4 {
			return
		}
		i := 10 * len(crashes)
		dbkit.CheckSound(t, d, "being built")
		putAll(t, c, items[i:i+10])
		putAll(t, c, items[150+i:150+i+5])
		if _, err := c.Delete(ctx, items[100+i].Key, items[i].Key, items[151+i].Key); err != nil {
			t.Fatal(err)
		}
		dbkit.CheckSound(t, d, "being built and written to")
		crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
	}
	if _, err := c.Train(ctx, opt); err != nil || len(crashes) == 0 {
		t.Fatal(err, len(crashes))
	}
	dbkit.CheckSound(t, d, "built")
	for _, crash := range crashes {
		after := dbkit.MustOpen(t, "db", &db.Options{FS: crash, MustExist: true})
		dbkit.CheckSound(t, after, "after a crash")
		dbkit.MustClose(t, after)
	}
}

// Nothing is found whatever updates have done: grown labels, whose rows wait for another
// code, revisions put back, pinned, and not kept; codes of those are counted as unchecked.
func TestVerifyRevisions(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewCrashableMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 7, Missing: .1})
	putAll(t, c, items[:100])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	for i := range 12 {
		batch := items[100+10*i : 110+10*i]
		for j, it := range batch {
			if j%3 == 0 {
				it.Labels = nil
			}
			if j == 5 && i == 6 {
				it.Labels = append(slices.Clone(it.Labels), "new", "newer")
			}
		}
		putAll(t, c, batch)
		putAll(t, c, items[i:i+3])
		dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
		if i == 3 {
			if err := c.PinRevision(ctx, 0, 3, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := dbkit.CheckSound(t, d, "many revisions")
	if v.CodesUnchecked == 0 || v.CodesChecked <= v.CodesUnchecked {
		t.Errorf("%+v", v)
	}
	if _, err := c.RestoreRevision(ctx, 0, 9); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "a revision put back")
	if err := taught(c).GrowLabels(ctx, 0, &db.Update{}); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "rows wait for another code")
	crash := mem.CrashClone(vfs.CrashCloneCfg{})
	dbkit.MustUpdate(t, c, db.UpdateOptions{})
	dbkit.CheckSound(t, d, "they have it")
	dbkit.MustClose(t, d)
	for _, fs := range []*vfs.MemFS{mem, crash} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: fs, MustExist: true})
		dbkit.CheckSound(t, d, "opened again")
		dbkit.MustClose(t, d)
	}
}

// What is written while Verify looks changes nothing, and Verify can be ended.
func TestVerifyWhileWriting(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(400, synth.Config{})
	putAll(t, c, items[:200])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(3, 4))
		for range 60 {
			it := items[random.IntN(len(items))]
			if _, err := c.Put(ctx, it); err != nil {
				t.Error(err)
			}
			if _, err := c.Delete(ctx, items[random.IntN(len(items))].Key); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 5 {
		dbkit.CheckSound(t, d, "while it is written to")
	}
	<-done
	cancelled, cancel := context.WithCancel(ctx)
	stages := 0
	_, err := d.Verify(cancelled, db.VerifyOptions{Deep: true, Progress: func(string, int64, int64) {
		if stages++; stages == 3 {
			cancel()
		}
	}}, func(db.Finding) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	dbkit.MustClose(t, d)
	if _, err := d.Verify(ctx, db.VerifyOptions{}, func(db.Finding) error { return nil }); !errors.Is(err, db.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// An item that was written when the projections were 0 has no code, and gets none when they
// learn again.
func TestVerifyItemsOfRevisionsWithoutProjections(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, unlabelled := withoutCode(t, d)
	dbkit.CheckSound(t, d, "an item without a code")
	if _, err := c.Put(ctx, unlabelled); err != nil {
		t.Fatal(err)
	}
	if it, err := c.Get(ctx, unlabelled.Key); err != nil || it.Code == nil {
		t.Errorf("written again: %+v, %v", it, err)
	}
	dbkit.CheckSound(t, d, "written again")
}

// withoutCode puts an item into a collection that has features and no code, as it was
// written while projections were 0, and another that has one of its labels; they have
// learned since. Revisions of nothing had such projections once, and databases have them.
func withoutCode(t testing.TB, d *db.DB) (*db.Collection, *db.Item) {
	t.Helper()
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(24, synth.Config{Classes: 3, Seed: 5})
	putAll(t, c, items[:20])
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	if _, err := c.DeleteWhere(ctx, "NOT label = ''"); err != nil {
		t.Fatal(err)
	}
	for space := db.Space(1); space <= 2; space++ {
		dbkit.MustUpdate(t, c, db.UpdateOptions{Space: space, Teacher: db.TeacherLabels}) // all that has taught is gone
		err := db.Inside(c).Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
			sp := s.SpaceByID(uint32(space))
			m := sp.Learned
			nothing, _, err := m.Refit(model.NewStatistics(m), nil)
			if err != nil {
				return err
			}
			projections, err := nothing.MarshalRevision(sp.Trained)
			if err != nil {
				return err
			}
			next := sp.Revised(sp.Revision+1, nothing)
			d := &spaces.RevisionDescriptor{Model: record.ChunksOf(projections), Outbox: sp.Numbers.NextOutbox}
			d.Revision, d.Parent, d.Created, d.Teacher = next.Revision, sp.Revision, spaces.Now(), spaces.Restored
			if err := tx.WriteRevision(sp, d, projections); err != nil {
				return err
			}
			sp.Revise(next)
			tx.Committer.Touch(s)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	unlabelled := *items[20]
	unlabelled.Labels = nil
	putAll(t, c, []*db.Item{&unlabelled, items[21]})
	for space := db.Space(1); space <= 2; space++ {
		if u := dbkit.MustUpdate(t, c, db.UpdateOptions{Space: space, Teacher: db.TeacherLabels}); !u.Revised {
			t.Fatalf("%+v", u)
		}
	}
	it, err := c.Get(ctx, unlabelled.Key)
	if err != nil || it.Code != nil {
		t.Fatalf("%+v, %v", it, err)
	}
	return c, &unlabelled
}
