package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// verified is a small database with all sorts of records: two learned collections, one of
// them with sparse vectors and codes for each target, and one of given codes.
func verified(t testing.TB, opts *db.Options) *db.DB {
	t.Helper()
	d := dbkit.MustOpen(t, t.TempDir(), opts)
	t.Cleanup(func() { _ = d.Close() })
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true},
		{Name: "title", Type: db.String, Indexed: true, Words: true},
		{Name: "price", Type: db.Float, Indexed: true},
		{Name: "new", Type: db.Bool, Indexed: true}, {Name: "note", Type: db.String},
		{Name: "at", Type: db.Time, Indexed: true}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	items := dbkit.Pairs(120, synth.Config{Missing: .2, Seed: 2})
	for i, it := range items {
		it.Payload = []byte("payload")
		if i%7 > 0 {
			it.Fields = map[string]any{"year": i - 60, "title": fmt.Sprintf("title %d", i%5),
				"price": float64(i) / 4, "new": i%2 == 0, "note": "x", "at": time.Unix(int64(i)<<20, 0)}
		}
		if i%9 == 0 {
			it.Labels = nil
		}
	}
	putAll(t, c, items[:60])
	dbkit.CheckSound(t, d, "before training")
	opt := db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}}
	dbkit.MustTrain(t, c, opt)
	dbkit.CheckSound(t, d, "trained")
	putAll(t, c, items[60:90])
	dbkit.CheckSound(t, d, "items have come")
	dbkit.MustUpdate(t, c, db.UpdateOptions{})
	putAll(t, c, items[90:])
	putAll(t, c, items[:10])
	need(c.Delete(ctx, "k11", "k12", "k61", "k95"))(t)
	must(t, db.State(d).Post(ctx, 1)) // so that there are postings
	dbkit.CheckSound(t, d, "updated, and items have come and gone")
	// The first model does not know what has been added, the second one does.
	must(t, c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{{Name: "audio", Dim: 3}},
		AddFields: []db.Field{{Name: "place", Type: db.String, Indexed: true}}}))
	b := d.NewBatch()
	for i := range 40 {
		added := &db.Item{Key: fmt.Sprint("k", 14+2*i),
			Fields: map[string]any{"place": fmt.Sprint("place ", i%3)}}
		if i%4 > 0 {
			added.Vectors = map[string][]float32{"audio": {float32(i % 5), float32(i), 1}}
		}
		b.Merge(c, added)
	}
	must(t, b.Commit(ctx))
	dbkit.CheckSound(t, d, "altered")
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 15}})
	putAll(t, c, items[20:30])
	need(c.Delete(ctx, "k33"))(t)
	putAll(t, c, []*db.Item{{Key: "bare"}, {Key: "odd", Labels: []string{"unseen"},
		Vectors: items[0].Vectors}})
	dbkit.CheckSound(t, d, "several spaces")
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	dbkit.CheckSound(t, d, "updated by itself")
	must(t, c.Alter(ctx, db.Alteration{
		Encoders: []db.Encoder{{"text", db.InputText, []string{"encode", "--lines"},
			[]byte{1, 2, 3}, false}}}))
	dbkit.CheckSound(t, d, "with an encoder")
	need(c.IndexVectors(ctx, db.IndexOptions{Modality: "image"}))(t)
	for i, it := range items[40:45] { // their entries are out of date
		other := *it
		other.Vectors = items[50+i].Vectors
		putAll(t, c, []*db.Item{&other})
	}
	dbkit.CheckSound(t, d, "vectors indexed")
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	var given []*db.Item
	for i := range 40 {
		given = append(given, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i % 7), byte(i % 3)}})
	}
	putAll(t, codes, given)
	need(codes.Delete(ctx, "3", "21", "24"))(t)
	putMarks(t, d, "position", "one", "log/2", "two")
	return d
}

// Nothing is found where nothing is wrong, whatever a database has gone through.
func TestVerifyFindsNothing(t *testing.T) {
	dbkit.LongTest(t)
	d := verified(t, nil)
	v := dbkit.CheckSound(t, d, "all of it")
	failIf(t, v.Items != 120-5+2+37 || v.CodesChecked == 0 || v.Records == 0, "%+v", v)
	must(t, d.Compact(ctx))
	dbkit.CheckSound(t, d, "compacted")
	dir := db.State(d).Engine.Dir
	d, _ = reopen(t, d, dir, nil)
	defer d.Close()
	dbkit.CheckSound(t, d, "opened again")
}

// Nothing is found while a space is being built, though not all rows have codes in it,
// and some have that were written meanwhile; nor in what a crash leaves of it.
func TestVerifyWhileBuilding(t *testing.T) {
	t.Parallel()
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	defer d.Close()
	items := dbkit.Pairs(200, synth.Config{Missing: .1})
	train(t, c, items[:150], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
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
		need(c.Delete(ctx, items[100+i].Key, items[i].Key, items[151+i].Key))(t)
		dbkit.CheckSound(t, d, "being built and written to")
		crashes = append(crashes, mem.CrashClone(vfs.CrashCloneCfg{}))
	}
	_, err := c.Train(ctx, opt)
	stopIf(t, err != nil || len(crashes) == 0, "%v, %v", err, len(crashes))
	dbkit.CheckSound(t, d, "built")
	for _, crash := range crashes {
		after := dbkit.MustOpen(t, "db", &db.Options{FS: crash, MustExist: true})
		dbkit.CheckSound(t, after, "after a crash")
		dbkit.MustClose(t, after)
	}
}

// Nothing is found whatever updates have done: grown labels, whose rows wait for another
// code, revisions put back, and not kept; codes of those are counted as unchecked.
func TestVerifyRevisions(t *testing.T) {
	dbkit.LongTest(t)
	mem := vfs.NewCrashableMem()
	d, c := openNew(t, "db", &db.Options{FS: mem}, dbkit.PairsSchema)
	items := dbkit.Pairs(300, synth.Config{Seed: 7, Missing: .1})
	train(t, c, items[:100], db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
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
	}
	v := dbkit.CheckSound(t, d, "many revisions")
	failIf(t, v.CodesUnchecked == 0 || v.CodesChecked <= v.CodesUnchecked, "%+v", v)
	need(c.RestoreRevision(ctx, 0, 9))(t)
	dbkit.CheckSound(t, d, "a revision put back")
	must(t, taught(c).GrowLabels(ctx, 0, &report.Update{}))
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
	t.Parallel()
	d, c, items := openPairs(t, 200, 400, synth.Config{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	done := make(chan struct{})
	go func() {
		defer close(done)
		random := rand.New(rand.NewPCG(3, 4))
		for range 60 {
			it := items[random.IntN(len(items))]
			fine(t, errOf(c.Put(ctx, it)))
			fine(t, errOf(c.Delete(ctx, items[random.IntN(len(items))].Key)))
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
	}}, func(report.Finding) error { return nil })
	failIf(t, !errors.Is(err, context.Canceled), "cancelled: %v", err)
	dbkit.MustClose(t, d)
	errorIs(t, errOf(d.Verify(ctx, db.VerifyOptions{}, func(report.Finding) error { return nil })),
		db.ErrClosed)
}

// An item that was written when the projections were 0 has no code, and gets none when they learn again.
func TestVerifyItemsOfRevisionsWithoutProjections(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, unlabelled := withoutCode(t, d)
	dbkit.CheckSound(t, d, "an item without a code")
	need(c.Put(ctx, unlabelled))(t)
	it, err := c.Get(ctx, unlabelled.Key)
	failIf(t, err != nil || it.Code == nil, "written again: %+v, %v", it, err)
	dbkit.CheckSound(t, d, "written again")
}

// withoutCode puts an item into a collection that has features and no code, as it was
// written while projections were 0, and another that has one of its labels; they have
// learned since. Revisions of nothing had such projections once, and databases have them.
func withoutCode(t testing.TB, d *db.DB) (*db.Collection, *db.Item) {
	t.Helper()
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(24, synth.Config{Classes: 3, Seed: 5})
	train(t, c, items[:20], dbkit.TinyTraining(1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(2))
	need(c.DeleteWhere(ctx, "NOT label = ''"))(t)
	for space := db.Space(1); space <= 2; space++ {
		// all that has taught is gone
		dbkit.MustUpdate(t, c, db.UpdateOptions{Space: space, Teacher: db.TeacherLabels})
		must(t, db.Inside(c).Do(ctx, 0, func(tx *state.Tx, s *state.CollectionState) error {
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
			d := &spaces.RevisionDescriptor{Model: record.ChunksOf(projections),
				Retracted: sp.Numbers.NextRetraction}
			d.Revision, d.Parent, d.Created, d.Teacher = next.Revision, sp.Revision, spaces.Now(),
				spaces.Restored
			if err := tx.WriteRevision(sp, d, projections); err != nil {
				return err
			}
			sp.Revise(next)
			tx.Committer.Touch(s)
			return nil
		}))
	}
	unlabelled := *items[20]
	unlabelled.Labels = nil
	putAll(t, c, []*db.Item{&unlabelled, items[21]})
	for space := db.Space(1); space <= 2; space++ {
		u := dbkit.MustUpdate(t, c, db.UpdateOptions{Space: space, Teacher: db.TeacherLabels})
		stopIf(t, !u.Revised, "%+v", u)
	}
	it, err := c.Get(ctx, unlabelled.Key)
	stopIf(t, err != nil || it.Code != nil, "%+v, %v", it, err)
	return c, &unlabelled
}

// verifyFolder verifies a folder.
func verifyFolder(t testing.TB, dir string) []report.Finding {
	t.Helper()
	var all []report.Finding
	need(db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{}, func(f report.Finding) error {
		all = append(all, f)
		return nil
	}))(t)
	return all
}

// folderOf makes a database of several hundred blocks of tables and returns its folder and its tables.
func folderOf(t testing.TB) (dir string, tables []string) {
	t.Helper()
	dir = t.TempDir()
	d, c := openNew(t, dir, nil, dbkit.PairsSchema)
	items := dbkit.Pairs(3000, synth.Config{})
	for _, it := range items {
		it.Payload = bytes.Repeat([]byte{1, 2, 3, 4, 5, 7, 11}, 30)
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	must(t, d.Compact(ctx))
	dbkit.MustClose(t, d)
	tables, err := filepath.Glob(filepath.Join(dir, "store", "*.sst"))
	stopIf(t, err != nil || len(tables) == 0, "%v, %v", tables, err)
	return dir, tables
}

func filesOf(t testing.TB, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	files := need(filepath.Glob(filepath.Join(dir, "store", "*")))(t)
	for _, name := range files {
		b := need(os.ReadFile(name))(t)
		all[name] = string(b)
	}
	return all
}

// A folder is verified without being changed, while nobody has it open.
func TestVerifyFolder(t *testing.T) {
	dbkit.LongTest(t)
	dir, _ := folderOf(t)
	before := filesOf(t, dir)
	found := verifyFolder(t, dir)
	failIf(t, len(found) > 0, "found %v", found)
	after := filesOf(t, dir)
	for name, b := range before {
		failIf(t, after[name] != b, "%s has changed", name)
	}
	failIf(t, len(after) != len(before), "%d files, %d before", len(after), len(before))
	report := func(report.Finding) error { return nil }
	d := dbkit.MustOpen(t, dir, nil)
	errorIs(t, errOf(db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{}, report)), db.ErrLocked)
	dbkit.MustClose(t, d)
	for _, other := range []string{t.TempDir(), filepath.Join(dir, "nosuch")} {
		_, err := db.VerifyFolder(ctx, other, nil, db.VerifyOptions{}, report)
		failIf(t, !errors.Is(err, db.ErrNotDatabase), "%s: %v", other, err)
		names, err := os.ReadDir(other)
		failIf(t, err == nil && len(names) > 0, "%s has %v in it", other, names)
	}
}

// A block of a table that cannot be read is found, and what else is wrong nevertheless,
// and little is said of what follows from it.
func TestVerifyGoesOnBehindDamage(t *testing.T) {
	dbkit.LongTest(t)
	dir, tables := folderOf(t)
	d := dbkit.MustOpen(t, dir, nil)
	last := codec.NumberKey(codec.KindItem, 1, 2990)
	keyValue{last, []byte("garbage")}.put(t, d) // elsewhere, and behind it
	dbkit.MustClose(t, d)
	var largest string
	var b []byte
	for _, name := range tables {
		now := need(os.ReadFile(name))(t)
		if len(now) > len(b) {
			largest, b = name, now
		}
	}
	found := 0
	for place := range 8 {
		if !effort.Sampled(place, 7) {
			continue
		}
		at := len(b)/20 + place*len(b)/8
		damaged := bytes.Clone(b)
		for i := at; i < min(at+50, len(b)); i++ {
			damaged[i] ^= 0x5a
		}
		must(t, os.WriteFile(largest, damaged, 0o666))
		unread, elsewhere := 0, false
		all := verifyFolder(t, dir)
		for _, f := range all {
			if strings.Contains(f.Problem, "cannot be") {
				unread++
			}
			elsewhere = elsewhere || f.Record == "item in row 2990"
		}
		if unread > 0 {
			found++
		}
		failIf(t, len(all) == 0 || unread > 3 || len(all) > 60 || !elsewhere,
			"damage at %d of %d bytes: %d findings of what cannot be read, %d in all: %.5v", at, len(b),
			unread, len(all), all)
	}
	t.Logf("%d places damaged", found)
}

// A store that does not open is one finding.
func TestVerifyStoreThatDoesNotOpen(t *testing.T) {
	dbkit.LongTest(t)
	dir, tables := folderOf(t)
	must(t, os.Remove(tables[0]))
	found := verifyFolder(t, dir)
	failIf(t, len(found) != 1 || !strings.Contains(found[0].Problem, "cannot be opened"), "found %v", found)
}

// The statistics of a space cost much a row, and few records hold what many rows have taught:
// Verify nevertheless tells how far it has come there, and ends there with its context.
func TestVerifyCanBeCancelledInStatistics(t *testing.T) {
	t.Parallel()
	d, c := openNew(t, t.TempDir(), nil, dbkit.PairsSchema)
	defer dbkit.MustClose(t, d)
	putAll(t, c, dbkit.Pairs(200, synth.Config{})) // one record of lessons
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	var told []int64
	verify := func(ctx context.Context, cancel func()) error {
		told = nil
		_, err := d.Verify(ctx, db.VerifyOptions{Deep: true, Progress: func(stage string, done, _ int64) {
			if strings.HasSuffix(stage, ": statistics") {
				if told = append(told, done); len(told) == 4 {
					cancel()
				}
			}
		}}, nil)
		return err
	}
	must(t, verify(ctx, func() {}))
	failIf(t, len(told) < 10 || told[len(told)-1] <= told[0], "progress is %v", told)
	cancelled, cancel := context.WithCancel(ctx)
	defer cancel()
	err := verify(cancelled, cancel)
	failIf(t, !errors.Is(err, context.Canceled) || len(told) != 4, "cancelled at %v: %v", told, err)
}
