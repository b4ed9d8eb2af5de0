package db_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// activeSpace returns what is told of the active space.
func activeSpace(t testing.TB, c *db.Collection) report.SpaceInfo {
	t.Helper()
	all := need(c.Spaces(ctx))(t)
	for _, s := range all {
		if s.State == report.SpaceActive {
			return s
		}
	}
	t.Fatal("no space is active")
	return report.SpaceInfo{}
}

// eventually waits for something that happens in the background.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		stopIf(t, time.Now().After(end), "in five minutes not: %s", what)
	}
}

// What waited when the database was closed counts, and so does what has taught and is deleted.
func TestWhatStartsAnUpdate(t *testing.T) {
	t.Parallel()
	fs := vfs.NewMem()
	opts := &db.Options{FS: fs, UpdateItems: 50}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	items := dbkit.Pairs(200, synth.Config{Seed: 9})
	train(t, c, items[:100], db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i := range 3 { // fewer than that each time
		putAll(t, c, items[100+30*i:130+30*i])
		d, c = reopen(t, d, "db", opts)
	}
	eventually(t, "an update of 60 items or more", func() bool { return activeSpace(t, c).Revision > 1 })
	before := activeSpace(t, c).Revision
	var keys []string
	for _, it := range items[:60] {
		keys = append(keys, it.Key)
	}
	need(c.Delete(ctx, keys...))(t)
	eventually(t, "an update after 60 deletions", func() bool { return activeSpace(t, c).Revision > before })
	checkStatistics(t, c, 0)
	dbkit.MustClose(t, d)
}

// An update that has nothing to store is not repeated because others write.
func TestUpdatesThatRefuseAreNotRepeated(t *testing.T) {
	t.Parallel()
	_, c := dbkit.OpenPairs(t)
	other := need(db.Of(c).CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	items := dbkit.Pairs(201, synth.Config{Seed: 9})
	train(t, c, items[:100], db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	unlabel(items[100:])
	putAll(t, c, items[100:200])
	written := func() (n int) {
		must(t, db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
			n = cv.Written
			return nil
		}))
		return n
	}
	n := written()
	failIf(t, n != 100, "%d items were written", n)
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	putAll(t, other, items[200:])
	n = written()
	failIf(t, n != 0, "%d items wait for an update that has looked at them", n)
}

// Items that lack the modality that teaches wait for another teacher.
func TestItemsThatOneTeacherSkips(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 200, 400, synth.Config{Seed: 9})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	for i, it := range items[200:] {
		it.Labels = nil
		delete(it.Vectors, []string{"image", "text"}[i%2])
	}
	putAll(t, c, items[200:])
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherModality})
	failIf(t, u.Unlabelled != 100 || u.Skipped != 100, "%+v", u)
	u = dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	failIf(t, u.Unlabelled != 100, "%+v", u)
	checkStatistics(t, c, 0)
}

// Sums from which most has gone are not stored: what has gone leaves its rounding.
func TestStatisticsThatHaveShrunk(t *testing.T) {
	w := newWorld(t, dbkit.PairsSchema, true)
	items := dbkit.Pairs(200, synth.Config{Seed: 9})
	opt := fit.Options{Bits: 32, Features: map[string]model.FeatureKind{}, Map: map[string]model.MapKind{}}
	for _, m := range dbkit.PairsSchema.Modalities {
		opt.Features[m.Name], opt.Map[m.Name] = model.FeaturesRaw, model.MapLinear
	}
	for key, by := range map[string]float32{"long": 6e5, "longer than others": 2500} {
		it := *items[150]
		it.Key, it.Vectors = key, map[string][]float32{}
		for name, x := range items[150].Vectors {
			for _, v := range x {
				it.Vectors[name] = append(it.Vectors[name], by*v)
			}
		}
		w.put([]*db.Item{&it})
	}
	w.put(items[:100])
	dbkit.MustTrain(t, w.c, db.TrainOptions{Options: opt})
	for _, key := range []string{"long", "longer than others"} {
		need(w.c.Delete(ctx, key))(t)
		dbkit.MustUpdate(t, w.c, db.UpdateOptions{})
		w.reopen()
		checkStatistics(t, w.c, 0)
	}
}

// A space that is built slowly is complete when the items have codes that there were
// when it began, however many come meanwhile: these have codes already.
func TestReindexEndsWhileItemsCome(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 60, 400, synth.Config{Seed: 9})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 20}})
	n := 0
	r, err := c.Reindex(ctx, db.ReindexOptions{Rate: 200, Progress: func(_ string, done, total int64) {
		failIf(t, total != 60 || done > total, "%d of %d", done, total)
		if n < 1000 { // more come in a block than there are in one
			putMany(t, c, items, n, 40)
			n += 40
		}
	}})
	failIf(t, err != nil || r.Items != 60+n || n > 400, "%+v, %v, after %d more items", r, err, n)
	in := need(c.InSpace(r.Space, 0))(t)
	for _, it := range dbkit.AllItems(t, in) {
		failIf(t, it.Code == nil, "item %s has no code", it.Key)
	}
}

// putMany puts copies of items under other keys.
func putMany(t testing.TB, c *db.Collection, items []*db.Item, from, n int) {
	t.Helper()
	var more []*db.Item
	for i := from; i < from+n; i++ {
		it := *items[i%len(items)]
		it.Key = fmt.Sprint("more ", i)
		more = append(more, &it)
	}
	putAll(t, c, more)
}

// Growing labels ends with its context, and says of all labels when no direction is left.
func TestGrowingManyLabels(t *testing.T) {
	dbkit.LongTest(t)
	_, c, items := openPairs(t, -1, 100, synth.Config{Seed: 9})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	for i := range 500 {
		it := *items[i%100]
		it.Key, it.Labels = fmt.Sprint("n", i), []string{fmt.Sprint("label ", i)}
		putAll(t, c, []*db.Item{&it})
	}
	errorIs(t, errOf(c.Update(cancelled, db.UpdateOptions{GrowLabels: true})), context.Canceled)
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	failIf(t, len(u.Grown) != 12 || len(u.NoDirection) != 488 || u.Recoded != 12,
		"%d labels have grown, %d have not, %d items have another code", len(u.Grown), len(u.NoDirection),
		u.Recoded)
}

// Items like those of the training have next to no drift. Where the vectors come from another source, the
// update says that it is time to train again, and so does what is stored, also of a space that goes on from
// this one.
func TestDriftShowsThatTheDataHasChanged(t *testing.T) {
	t.Parallel()
	d, c, items := openPairs(t, 200, 300, synth.Config{Seed: 1, Noise: 1.5})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	update := func(items []*db.Item) report.Drift {
		t.Helper()
		putAll(t, c, items)
		u, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
		stopIf(t, err != nil || u.Items != len(items), "%+v, %v", u, err)
		return u.Drift
	}
	drift, err := dbkit.Drift(ctx, c)
	failIf(t, drift != nil || err != nil || drift.TrainAgain(), "before an update: %v, %v", drift, err)
	same := update(items[200:])
	failIf(t, len(same) != 2 || same["image"] > .05 || same["text"] > .05 || same.TrainAgain(),
		"of items like those of the training: %v", same)
	strange := func(from, to int) []*db.Item { // the labels of one item with the vectors of another
		some := dbkit.Pairs(to, synth.Config{Seed: 1, Noise: 1.5})
		for i, it := range some {
			it.Key = "s" + it.Key
			it.Vectors = dbkit.Pairs(to, synth.Config{Seed: 77, Noise: 1.5})[i].Vectors
		}
		return some[from:]
	}
	few := update(strange(0, 15))
	failIf(t, few != nil, "of 15 items: %v", few)
	got, err := dbkit.Drift(ctx, c)
	failIf(t, err != nil || !cmp.Equal(got, same), "after an update of few items: %v, %v", got, err)
	other := update(strange(15, 75))
	failIf(t, len(other) != 2 || other["image"] < .4 || other["text"] < .4 || !other.TrainAgain(),
		"of other items: %v", other)
	// What is stored says so, too.
	check := func(what string) {
		t.Helper()
		got, err := dbkit.Drift(ctx, c)
		if stats := need(c.Stats(ctx))(t).Drift; err != nil || !cmp.Equal(got, other) ||
			!cmp.Equal(stats, other) {
			t.Errorf("%s: %v, %v, %v", what, got, stats, err)
		}
		var all []report.Drift
		for _, r := range need(c.Spaces(ctx))(t)[0].Revisions {
			all = append(all, r.Drift)
		}
		diff := cmp.Diff([]report.Drift{nil, same, nil, other}, all)
		failIf(t, diff != "", "%s: %s", what, diff)
	}
	check("updated")
	d, _ = reopen(t, d, db.State(d).Engine.Dir, nil)
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	check("reopened")
	need(c.Reindex(ctx, db.ReindexOptions{Activate: true}))(t)
	again := update(strange(75, 135))
	failIf(t, len(again) != 2 || !again.TrainAgain(), "in a space that goes on: %v", again)
}

// A label that has grown in this very update says nothing of drift: nothing has taught what it means.
func TestDriftOfLabelsThatGrow(t *testing.T) {
	t.Parallel()
	_, c, items := openPairs(t, 200, 300, synth.Config{Seed: 1, Noise: 1.5})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32}})
	for _, it := range items[240:] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[200:])
	u, err := c.Update(ctx, db.UpdateOptions{GrowLabels: true})
	failIf(t, err != nil || len(u.Grown) != 1 || len(u.Drift) != 2 || u.Drift.TrainAgain(), "%+v, %v", u, err)
}

// Given codes have no model to be far from.
func TestDriftOfGivenCodes(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	c := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 8}))(t)
	drift, err := dbkit.Drift(ctx, c)
	failIf(t, drift != nil || err == nil, "%v, %v", drift, err)
}

// With two hundred labelled items there are enough both to judge by and to leave in the
// statistics: items that teach well do so, and those that do harm do not.
func TestGuardOfFewLabelled(t *testing.T) {
	dbkit.LongTest(t)
	for _, c := range []struct {
		what  string
		cfg   synth.Config
		adopt bool
	}{
		{"teaches well", synth.Config{Classes: 24, Noise: 1}, true},
		{"does harm", synth.Config{Classes: 12, Noise: 2, LabelsPerItem: 3}, false},
	} {
		cfg := c.cfg
		cfg.Items, cfg.Dims, cfg.Seed = 1200, []int{24, 16}, 3
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 24}, {Name: "text", Dim: 16}}}
		col := need(d.CreateCollection(ctx, "main", schema))(t)
		data := synth.Pairs(cfg)
		var items []*db.Item
		for i := range cfg.Items {
			it := &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": data.Vectors[0][i],
				"text": data.Vectors[1][i]}}
			for _, l := range data.Labels[i] {
				it.Labels = append(it.Labels, fmt.Sprint(l))
			}
			items = append(items, it)
		}
		train(t, col, items[:200], db.TrainOptions{Options: fit.Options{Bits: 32}})
		unlabel(items[200:])
		putAll(t, col, items[200:])
		if u := dbkit.MustUpdate(t, col, db.UpdateOptions{}); u.Revised != c.adopt ||
			(u.Adopted.Unlabelled == "modality") != c.adopt || (u.Refused == 1000) == c.adopt {
			t.Errorf("%s: %+v", c.what, u)
		} else {
			t.Log(c.what, u.Reason)
		}
		// Labelled items teach in any case, which is no adoption of the others.
		more := []*db.Item{{Key: "more", Labels: []string{fmt.Sprint(data.Labels[0][0])},
			Vectors: items[0].Vectors}}
		putAll(t, col, more)
		u := dbkit.MustUpdate(t, col, db.UpdateOptions{})
		refused := map[bool]int{false: 1000}[c.adopt]
		failIf(t, !u.Revised || u.Adopted != (report.Adoption{Labelled: "labels"}) || u.Refused != refused ||
			u.Skipped != refused, "%s: with a labelled item: %+v", c.what, u)
		dbkit.MustClose(t, d)
	}
}

// exported returns the model file of a collection.
func exported(t testing.TB, c *db.Collection) []byte {
	t.Helper()
	var b bytes.Buffer
	must(t, c.ExportModel(ctx, &b))
	return b.Bytes()
}

// codeOrigins returns the codes of the items by key, with where they come from.
func codeOrigins(t testing.TB, c *db.Collection) map[string]string {
	t.Helper()
	codes := map[string]string{}
	for it := range every(t, c.Items(ctx, "")) {
		codes[it.Key] = fmt.Sprintf("%x %s", it.Code, it.CodeFrom)
	}
	return codes
}

// sameCodes compares the codes of two collections.
func sameCodes(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	failIf(t, len(want) != len(got), "%s: %d items have codes, not %d", what, len(got), len(want))
	for key, code := range want {
		stopIf(t, got[key] != code, "%s: %s has %s, not %s", what, key, got[key], code)
	}
}

// modelItems are items of several labels, some without, some without a modality.
func modelItems(n int, random uint64) []*db.Item {
	items := dbkit.Pairs(n, synth.Config{Seed: random, Classes: 6, LabelsPerItem: 2, Missing: .2})
	for i, it := range items {
		if it.Key = fmt.Sprint("k", i); i%5 == 0 {
			it.Labels = nil
		}
	}
	return items
}

// A model goes from one database to another, in which labels came in another order: the same items
// have the same codes there, as have those that are put later; searches answer as in the first one.
func TestModelsTravel(t *testing.T) {
	t.Parallel()
	items := modelItems(200, 3)
	for name, opt := range map[string]db.TrainOptions{
		"shared": {Options: fit.Options{Bits: 16, Anchors: 20}},
		"target": {Options: fit.Options{Bits: 24, Anchors: 20}},
		"codes":  {Options: fit.Options{Bits: 16, Anchors: 20, Aim: model.AimCodes}},
		"free":   {Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}},
	} {
		t.Run(name, func(t *testing.T) {
			_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
			dbkit.MustTrain(t, from, opt)
			file := exported(t, from)

			backwards := slices.Clone(items[:150])
			slices.Reverse(backwards)
			wider := dbkit.PairsSchema
			wider.Modalities = append([]db.Modality{{Name: "sound", Dim: 3}}, wider.Modalities...)
			opts := &db.Options{FS: vfs.NewMem()}
			d := dbkit.MustOpen(t, "db", opts)
			to := need(d.CreateCollection(ctx, "other", wider))(t)
			dbkit.PutAll(t, d, to, append(
				[]*db.Item{{Key: "first", Labels: []string{"nobody knows it", "class5"}}}, backwards...))
			need(to.Delete(ctx, "first"))(t)
			trained := need(to.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{}))(t)
			failIf(t, !trained.Active || trained.Space != 1 || trained.Items != 150 ||
				trained.Bits != opt.Bits || trained.TrainItems == 0, "%+v", trained)
			sameCodes(t, "imported", codeOrigins(t, from), codeOrigins(t, to))
			putAll(t, from, items[150:])
			putAll(t, to, items[150:])
			d, _ = reopen(t, d, "db", opts)
			defer func() { dbkit.MustClose(t, d) }()
			to = dbkit.MustCollection(t, d, "other")
			sameCodes(t, "put later", codeOrigins(t, from), codeOrigins(t, to))
			if name != "target" {
				q := db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20}
				if name == "shared" || name == "free" {
					q.Rerank = db.RerankProjection
				}
				dbkit.CheckSearches(t, to, q)
			}
			dbkit.CheckSound(t, d, "imported")
		})
	}
}

// The file of two equal trainings is the same, whatever their times; that of a collection with the
// model of a file has the same model.
func TestModelFilesAreEqual(t *testing.T) {
	t.Parallel()
	items := modelItems(120, 4)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20, Seed: 5}}
	var files [][]byte
	for range 2 {
		_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
		dbkit.MustTrain(t, c, opt)
		files = append(files, exported(t, c))
	}
	failIf(t, !bytes.Equal(files[0], files[1]), "two equal trainings have different files")
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, nil)
	need(c.ImportModel(ctx, bytes.NewReader(files[0]), db.ImportModelOptions{}))(t)
	again := exported(t, c)
	failIf(t, !bytes.Equal(again, files[0]), "an empty collection with the model has another file")
}

// An imported model goes on learning, from the items of its own collection; the space beside it is
// left as it was. A label that has lost its name stays behind.
func TestImportedModelsLearn(t *testing.T) {
	t.Parallel()
	items := modelItems(300, 5)
	_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	for _, it := range dbkit.AllItems(t, from) { // class1 loses its items
		if i := slices.Index(it.Labels, "class1"); i >= 0 {
			it.Labels[i] = "class2"
			need(from.Put(ctx, it))(t)
		}
	}
	if err := from.RenameLabel(ctx, "class3", "class1"); err != nil { // nobody has it any more
		t.Fatal(err)
	}
	file := exported(t, from)
	d, to := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[150:])
	dbkit.MustTrain(t, to, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20}})
	before := codeOrigins(t, to)
	trained := need(to.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{}))(t)
	failIf(t, trained.Active || trained.Space != 2, "%+v", trained)
	sameCodes(t, "the space before", before, codeOrigins(t, to))
	in := need(to.InSpace(trained.Space, 0))(t)
	first := codeOrigins(t, in)
	update, err := in.Update(ctx, db.UpdateOptions{Space: trained.Space})
	failIf(t, err != nil || !update.Revised || update.Labelled < 100, "%+v, %v", update, err)
	again := codeOrigins(t, in)
	for _, it := range items[150:] {
		failIf(t, len(it.Labels) > 0 && first[it.Key] != again[it.Key] && strings.HasSuffix(first[it.Key],
			"labels map[]"), "%s had %s, and has %s", it.Key, first[it.Key], again[it.Key])
	}
	dbkit.CheckSound(t, d, "updated")
}

// What is no model file, or not for the collection, is refused, and the collection is as it was.
func TestImportModelRefuses(t *testing.T) {
	items := modelItems(60, 6)
	_, from := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	errorIs(t, from.ExportModel(ctx, new(bytes.Buffer)), db.ErrNoModel)
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	file := exported(t, from)
	flipped, newer := bytes.Clone(file), bytes.Clone(file)
	flipped[len(flipped)/2] ^= 1
	newer[4] = 9
	var format *codec.FormatError
	other := dbkit.PairsSchema
	other.Modalities = []db.Modality{{Name: "image", Dim: 9}, {Name: "text", Dim: 5}}
	sparse := dbkit.PairsSchema
	sparse.Modalities = []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5, Sparse: true}}
	for what, c := range map[string]struct {
		schema db.Schema
		file   []byte
		is     func(error) bool
		says   string
	}{
		"empty":       {dbkit.PairsSchema, nil, invalid, "model file"},
		"cut":         {dbkit.PairsSchema, file[:len(file)-1], invalid, "model file"},
		"flipped bit": {dbkit.PairsSchema, flipped, invalid, "checksum"},
		"newer": {dbkit.PairsSchema, newer, func(err error) bool { return errors.As(err, &format) },
			"model file"},
		"dimension": {other, file, invalid, `modality "image" of the model has 8 dimensions`},
		"form":      {sparse, file, invalid, `modality "text" of the model is sparse: false`},
		"modality": {db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 8}}}, file, invalid,
			`the model has a modality "text"`},
		"codes": {db.Schema{Bits: 16}, file, invalid, "bring their codes"},
	} {
		_, to := openWith(t, vfs.NewMem(), c.schema, nil)
		_, err := to.ImportModel(ctx, bytes.NewReader(c.file), db.ImportModelOptions{})
		failIf(t, err == nil || !c.is(err) || !strings.Contains(err.Error(), c.says), "%s: %v", what, err)
		_, err = to.ImportModel(cancelled, bytes.NewReader(file), db.ImportModelOptions{})
		failIf(t, err == nil, "%s: a cancelled import succeeds", what)
		spaces, err := to.Spaces(ctx)
		failIf(t, err != nil || len(spaces) > 0 && c.schema.Bits == 0, "%s: %v, %v", what, spaces, err)
		labels, err := to.Labels()
		failIf(t, err != nil || len(labels) > 0, "%s: labels %v, %v", what, labels, err)
	}
}

func invalid(err error) bool { return errors.Is(err, db.ErrInvalid) && !errors.Is(err, db.ErrCorrupt) }

// A space gets the number that is asked for, and what comes behind it the next one.
func TestImportModelNumber(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	dbkit.PutAll(t, d, c, modelItems(60, 1))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	file := exported(t, c)
	take := func(number db.Space) (db.Space, error) {
		training, err := c.ImportModel(ctx, bytes.NewReader(file),
			db.ImportModelOptions{Space: number, Activate: true})
		if err != nil {
			return 0, err
		}
		return training.Space, nil
	}
	for _, x := range []struct {
		number, want db.Space
		is           error
	}{{7, 7, nil}, {7, 0, db.ErrExists}, {1, 0, db.ErrExists}, {4, 0, db.ErrExists}, {0, 8, nil},
		{db.Space(1<<32 - 1), 0, db.ErrFull}, {12, 12, nil}, {8, 0, db.ErrExists}} {
		got, err := take(x.number)
		failIf(t, got != x.want || !errors.Is(err, x.is), "number %d: space %d, %v", x.number, got, err)
	}
	must(t, c.Activate(ctx, 8))
	must(t, c.DropSpace(ctx, 12))
	gives(t, db.Space(12))(take(12))
	dbkit.CheckSound(t, d, "with spaces of all numbers")
}

// A program decides when a space gets its codes: row by row, across openings, with writes and deletions
// between. In the end it is as if ImportModel had made them at once.
func TestImportModelUnbuilt(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem(), NoResume: true} // so that openings change nothing
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c := need(d.CreateCollection(ctx, "pairs", dbkit.PairsSchema))(t)
	dbkit.PutAll(t, d, c, modelItems(300, 4))
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	file := exported(t, c)
	again := func() *db.Collection {
		t.Helper()
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", opts)
		return need(d.Collection("pairs"))(t)
	}
	c = again()
	var keys []string // by row
	for it := range c.Items(ctx, "") {
		keys = append(keys, it.Key)
	}
	report := need(c.ImportModel(ctx, bytes.NewReader(file), db.ImportModelOptions{Unbuilt: true}))(t)
	stopIf(t, report.Space != 2 || report.Active || report.Items != 0, "%+v", report)
	built := func(rows uint64) (items int) {
		t.Helper()
		for _, key := range keys[:rows] {
			// the active space has the same model
			if it, err := c.Get(ctx, key); err == nil && it.Code != nil {
				items++
			}
		}
		for range 2 { // again it does nothing
			r := need(c.Reindex(ctx, db.ReindexOptions{Space: 2, Rows: rows}))(t)
			failIf(t, r.Items != items || r.Active, "%d rows, %d items: %+v", rows, items, r)
		}
		return items
	}
	built(1)
	built(100)
	for _, key := range keys[75:125] { // half of them have a code, and the others are the next ones
		need(c.Delete(ctx, key))(t)
	}
	items := built(125)
	c = again()
	infos := need(c.Spaces(ctx))(t)
	failIf(t, len(infos) != 2 || infos[1].State != "building" || infos[1].Items != items, "%+v", infos)
	built(200)
	r := need(c.Reindex(ctx, db.ReindexOptions{Space: 2, Rows: 1 << 40, Activate: true}))(t)
	stopIf(t, !r.Active || r.Items != need(c.Count(ctx, ""))(t), "%+v", r)
	other := need(c.InSpace(1, 0))(t)
	for it := range c.Items(ctx, "") {
		code := need(other.Get(ctx, it.Key))(t).Code
		failIf(t, !bytes.Equal(code, it.Code), "%s: %x, not %x", it.Key, it.Code, code)
	}
	dbkit.CheckSound(t, d, "a space that was built in parts")
}

// followers returns a collection that has been trained, and one with the same items, in another order, that
// has its model.
func followers(t *testing.T, items []*db.Item) (from, to *db.Collection, opts *db.Options, d *db.DB) {
	t.Helper()
	_, from = openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	dbkit.MustTrain(t, from, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20}})
	backwards := slices.Clone(items)
	slices.Reverse(backwards)
	opts = &db.Options{FS: vfs.NewMem()}
	d = dbkit.MustOpen(t, "db", opts)
	to = need(d.CreateCollection(ctx, "pairs", dbkit.PairsSchema))(t)
	dbkit.PutAll(t, d, to, append([]*db.Item{{Key: "first", Labels: []string{"nobody knows it", "class5"}}},
		backwards...))
	need(to.Delete(ctx, "first"))(t)
	need(to.ImportModel(ctx, bytes.NewReader(exported(t, from)), db.ImportModelOptions{}))(t)
	return from, to, opts, d
}

// sameProjections compares how two collections encode queries.
func sameProjections(t *testing.T, what string, from, to *db.Collection, items []*db.Item) {
	t.Helper()
	for _, it := range items {
		for name, x := range it.Vectors {
			q := db.Query{From: name, Vector: x}
			_, want := need2(from.EncodeQuery(ctx, q))(t)
			if _, got, err := to.EncodeQuery(ctx, q); err != nil || !slices.Equal(got, want) {
				t.Fatalf("%s: %s of %s projects to %v, not %v: %v", what, name, it.Key, got, want, err)
			}
		}
	}
}

// The revisions of one database go to another, as they come: with labels that have grown, and with numbers
// of their own. What is put afterwards has the same codes there.
func TestRevisionsTravel(t *testing.T) {
	t.Parallel()
	items := modelItems(300, 9)
	from, to, opts, d := followers(t, items[:150])
	for _, it := range items[200:260] {
		it.Labels = append(it.Labels, "grown")
	}
	for i, step := range []struct {
		until  int
		grow   bool
		number uint32
	}{{200, false, 0}, {260, true, 7}, {280, false, 8}} {
		first := []int{150, 200, 260}[i]
		putAll(t, from, items[first:step.until])
		putAll(t, to, items[first:step.until])
		made := dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: step.grow})
		file := exported(t, from)
		for again := range 2 {
			u, err := to.ImportRevision(ctx, bytes.NewReader(file),
				db.ImportRevisionOptions{Revision: step.number})
			must(t, err, i)
			want := max(step.number, 2)
			failIf(t, u.Revision != want || u.Revised != (again == 0) || u.Teacher != "imported",
				"step %d: %+v", i, u)
			if again == 0 && (!slices.Equal(u.Grown, made.Grown) || u.Recoded != made.Recoded) {
				t.Errorf("step %d: grown %v, %d recoded; there %v, %d", i, u.Grown, u.Recoded, made.Grown,
					made.Recoded)
			}
		}
		sameProjections(t, fmt.Sprint("step ", i), from, to, items[280:])
		d, _ = reopen(t, d, "db", opts)
		to = dbkit.MustCollection(t, d, "pairs")
		sameProjections(t, fmt.Sprint("opened, step ", i), from, to, items[280:])
		dbkit.CheckSound(t, d, fmt.Sprint("step ", i))
	}
	putAll(t, from, items[280:])
	putAll(t, to, items[280:])
	last, was := codeOrigins(t, to), codeOrigins(t, from)
	for _, it := range items[200:] { // those before were put in another order
		failIf(t, last[it.Key] != was[it.Key], "%s has %s, not %s", it.Key, last[it.Key], was[it.Key])
	}
	dbkit.CheckSearches(t, to, db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20})
	// What items here teach is all that an update here learns from.
	u := dbkit.MustUpdate(t, to, db.UpdateOptions{Teacher: db.TeacherLabels})
	failIf(t, !u.Revised || u.Revision != 9 || u.Labelled < 200, "%+v", u)
	u, err := to.RestoreRevision(ctx, 0, 8)
	failIf(t, err != nil || u.Revision != 10, "%+v, %v", u, err)
	sameProjections(t, "restored", from, to, items[280:])
	dbkit.CheckSound(t, d, "updated")
	dbkit.MustClose(t, d)
}

// Codes that an interrupted call has left are made by the next one.
func TestImportRevisionGoesOn(t *testing.T) {
	t.Parallel()
	items := modelItems(3000, 2)
	for _, it := range items {
		it.Labels = append(it.Labels, "grown")
	}
	known := items[:60]
	for _, it := range known {
		it.Labels = slices.DeleteFunc(slices.Clone(it.Labels), func(l string) bool { return l == "grown" })
	}
	from, to, _, d := followers(t, known)
	defer func() { dbkit.MustClose(t, d) }()
	putAll(t, from, items[60:])
	putAll(t, to, items[60:])
	made := dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	file := exported(t, from)
	interrupted, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		for {
			if s, err := to.Spaces(ctx); err != nil || s[0].Revision > 1 {
				return
			}
		}
	}()
	u, err := to.ImportRevision(interrupted, bytes.NewReader(file), db.ImportRevisionOptions{Revision: 5})
	t.Logf("interrupted: %+v, %v", u, err)
	stopIf(t, err != nil && !errors.Is(err, context.Canceled), "%v", err)
	u, err = to.ImportRevision(ctx, bytes.NewReader(file), db.ImportRevisionOptions{Revision: 5})
	stopIf(t, err != nil || u.Revised || u.Revision != 5, "%+v, %v", u, err)
	s, err := to.Spaces(ctx)
	failIf(t, err != nil || s[0].Recode != 0 || made.Recoded < 2000, "%+v, %v", s, err)
	sameCodes(t, "with the label", codeOrigins(t, from), codeOrigins(t, to))
	dbkit.CheckSound(t, d, "gone on")
}

// What is no revision of the model is refused, and changes nothing.
func TestImportRevisionRefuses(t *testing.T) {
	t.Parallel()
	items := modelItems(200, 4)
	from, to, _, d := followers(t, items[:150])
	defer func() { dbkit.MustClose(t, d) }()
	before := exported(t, from)
	_, other := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:100])
	dbkit.MustTrain(t, other, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 20, Seed: 8}})
	_, free := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:100])
	dbkit.MustTrain(t, free, db.TrainOptions{Options: fit.Options{Bits: 16, Method: model.MethodCCAITQ}})
	_, none := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:10])
	items[170].Labels = []string{"grown"}
	putAll(t, from, items[150:])
	putAll(t, to, items[150:])
	dbkit.MustUpdate(t, from, db.UpdateOptions{Teacher: db.TeacherLabels, GrowLabels: true})
	after := exported(t, from)
	take := func(c *db.Collection, file []byte, opt db.ImportRevisionOptions) error {
		_, err := c.ImportRevision(ctx, bytes.NewReader(file), opt)
		return err
	}
	for what, x := range map[string]struct {
		err, is error
		says    string
	}{
		"another model": {take(to, exported(t, other), db.ImportRevisionOptions{}), db.ErrInvalid,
			"no revision"},
		"learned free": {take(to, exported(t, free), db.ImportRevisionOptions{}), db.ErrInvalid,
			"no revision"},
		"into a free one": {take(free, after, db.ImportRevisionOptions{}), db.ErrInvalid, "without labels"},
		"into none":       {take(none, after, db.ImportRevisionOptions{}), db.ErrNoModel, "train it first"},
		"no file":         {take(to, before[:40], db.ImportRevisionOptions{}), db.ErrInvalid, "model file"},
		"number 1": {take(to, after, db.ImportRevisionOptions{Revision: 1}), db.ErrExists,
			"present one is 1"},
		"too large": {take(to, after, db.ImportRevisionOptions{Revision: 1<<32 - 1}), db.ErrFull,
			"revisions"},
		"no such space":    {take(to, after, db.ImportRevisionOptions{Space: 9}), db.ErrNotFound, "space 9"},
		"nothing has come": {take(to, before, db.ImportRevisionOptions{}), nil, ""},
	} {
		failIf(t, !errors.Is(x.err, x.is) || x.err != nil && !strings.Contains(x.err.Error(), x.says),
			"%s: %v", what, x.err)
	}
	s, err := to.Spaces(ctx)
	failIf(t, err != nil || s[0].Revision != 1, "%+v, %v", s, err)
	must(t, take(to, after, db.ImportRevisionOptions{}))
	errorIs(t, take(to, before, db.ImportRevisionOptions{}), db.ErrInvalid, "labels")
	dbkit.CheckSound(t, d, "refused")
}

// A query by a revision that is kept has the answer that it had then, and the cursor of that goes on.
func TestQueryByARevision(t *testing.T) {
	t.Parallel()
	items := modelItems(300, 5)
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items[:150])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20}})
	q := db.Query{From: "image", Vector: items[1].Vectors["image"], K: 20, Rerank: db.RerankProjection,
		Where: "NOT label = 'later'"}
	in := c
	search := func(q db.Query) *db.Result {
		t.Helper()
		return need(in.Search(ctx, q))(t)
	}
	before := search(q)
	for i := range 3 {
		some := items[150+50*i : 200+50*i]
		for _, it := range some {
			it.Labels = append(it.Labels, "later")
		}
		putAll(t, c, some)
		dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	}
	now := search(q)
	in = need(c.InSpace(db.ActiveSpace, 1))(t)
	then := search(q)
	if then.Revision != 1 || now.Revision != 4 || fmt.Sprint(then.Hits) != fmt.Sprint(before.Hits) ||
		fmt.Sprint(now.Hits) == fmt.Sprint(before.Hits) {
		t.Errorf("then %+v\nnow %+v\nbefore %+v", then, now, before)
	}
	all := q
	all.K = 40
	q.After = before.Next
	next := search(q)
	failIf(t, fmt.Sprint(next.Hits) != fmt.Sprint(search(all).Hits[20:]), "the cursor does not go on")
	errorIs(t, errOf(c.Search(ctx, q)), db.ErrInvalid)
	for _, none := range []uint32{5, 1<<32 - 1} {
		errorIs(t, errOf(c.InSpace(db.ActiveSpace, none)), db.ErrNotFound)
	}
}
