package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// embeddedItems makes items of one modality, without labels.
func embeddedItems(first, n, dim int, seed uint64) []*db.Item {
	var items []*db.Item
	for i, x := range synth.Embeddings(first, n, dim, seed) {
		items = append(items, &db.Item{Key: fmt.Sprint("k", first+i), Vectors: map[string][]float32{"e": x},
			Fields: map[string]any{"year": int64(2000 + i%5)}})
	}
	return items
}

// pairedItems makes items of two modalities in spaces of their own, without labels; some lack one.
func pairedItems(n int) []*db.Item {
	a, b := synth.PairedEmbeddings(0, n, 24, 16, 1)
	var items []*db.Item
	for i := range a {
		it := &db.Item{Key: fmt.Sprint("k", i), Vectors: map[string][]float32{"image": a[i], "text": b[i]}}
		if i%9 == 4 {
			delete(it.Vectors, "image")
		} else if i%9 == 7 {
			delete(it.Vectors, "text")
		}
		items = append(items, it)
	}
	return items
}

var (
	embeddedSchema = db.Schema{Modalities: []db.Modality{{Name: "e", Dim: 32}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}}}
	pairedSchema = db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 24}, {Name: "text", Dim: 16}}}
)

// openWith makes a database with one collection of these items.
func openWith(t testing.TB, fs vfs.FS, schema db.Schema, items []*db.Item) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	t.Cleanup(func() { _ = d.Close() })
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	dbkit.PutAll(t, d, c, items)
	return d, c
}

// Codes without labels leave every answer by vectors as it was, for a query with a Recall.
func TestLabelFreeKeepsVectors(t *testing.T) {
	t.Parallel()
	items := embeddedItems(0, 600, 32, 1)
	_, c := openWith(t, vfs.NewMem(), embeddedSchema, items)
	x := items[7].Vectors["e"]
	queries := []db.Query{
		{From: "e", Vector: x}, {From: "e", To: "e", Vector: x}, {From: "e", Key: "k9"},
		{Key: "k9", ExcludeSelf: true},
		{From: "e", Vector: x, Where: "year = 2001"}, {From: "e", Vector: x, MinSimilarity: .5},
		{From: "e", Vector: x, Plan: db.PlanScan},
	}
	for i := range queries {
		queries[i].Recall, queries[i].K = 1, 20
	}
	before := need(c.SearchAll(ctx, queries))(t)
	training := dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ}})
	failIf(t, !training.Active || training.Items != 600 || training.TrainItems != 600 ||
		training.Bits != fit.DefaultLabelFreeBits, "%+v", training)
	after := need(c.SearchAll(ctx, queries))(t)
	for i, q := range queries {
		if !slices.EqualFunc(after[i].Hits, before[i].Hits,
			func(a, b db.Hit) bool { return a.Key == b.Key && a.Similarity == b.Similarity }) {
			t.Errorf("%+v: %v, before the training %v", q, after[i].Hits, before[i].Hits)
		}
		if q.After = before[i].Next; q.After == "" {
			continue
		}
		page, err := c.Search(ctx, q)
		failIf(t, err != nil || len(page.Hits) == 0 ||
			page.Hits[0].Similarity > before[i].Hits[len(before[i].Hits)-1].Similarity,
			"%+v: behind the cursor of before: %v, %v", q, page, err)
	}
}

// Queries are answered by codes: as a linear scan of the codes of items has it.
func TestLabelFreeCodes(t *testing.T) {
	items, fs := pairedItems(500), vfs.NewMem()
	d, c := openWith(t, fs, pairedSchema, items)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ, Bits: 32}})
	x := items[3].Vectors["image"]
	dbkit.CheckSearches(t, c, db.Query{From: "image", To: "text", Vector: x, K: 30},
		db.Query{From: "image", Vector: x, K: 30},
		db.Query{From: "image", To: "image", Vector: x, Rerank: db.RerankNone}, db.Query{Key: "k3"},
		db.Query{Key: "k4", From: "image"}, db.Query{Code: need(c.Get(ctx, "k3"))(t).Code}) // k4 has no image
	for _, it := range dbkit.AllItems(t, c) {
		stopIf(t, len(it.Code) != 4, "item %s has the code %x", it.Key, it.Code)
	}
	// A copy without vectors has nothing else.
	is := indexOnlyOf(t, d, &db.Options{FS: fs})
	copied := dbkit.MustCollection(t, is, "main")
	e, res, err := dbkit.Explain(ctx, copied, db.Query{From: "image", Vector: x, K: 5}, -1)
	failIf(t, err != nil || e.Plan == "vectors" || len(res.Hits) != 5, "an index-only copy: %+v, %v", e, err)
	_, err = dbkit.Drift(ctx, copied)
	failIf(t, err == nil, "an index-only copy measures drift")
	dbkit.CheckSound(t, is, "index-only")
}

// A space without labels is kept current by writes, can be reindexed, activated, dropped and repaired,
// has nothing to update, and no row waits in it.
func TestLabelFreeSpaces(t *testing.T) {
	dbkit.LongTest(t)
	fs := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fs, UpdateItems: 1}, embeddedSchema)
	items := embeddedItems(0, 400, 32, 1)
	dbkit.PutAll(t, d, c, items[:300])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 40}})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 16},
		Activate: true})
	// Later items, with labels too, one by one and in bulk; changed and deleted ones.
	for _, it := range items[300:320] {
		it.Labels = []string{"late"}
		need(c.Put(ctx, it))(t)
	}
	dbkit.PutAll(t, d, c, items[320:])
	changed := *items[5]
	changed.Vectors = items[399].Vectors
	need(c.Put(ctx, &changed))(t)
	need(c.Delete(ctx, "k6"))(t)
	if a, b := need(c.Get(ctx, "k5"))(t), need(c.Get(ctx, "k399"))(t); !slices.Equal(a.Code, b.Code) ||
		len(a.Code) != 2 {
		t.Errorf("two items of one vector have the codes %x and %x", a.Code, b.Code)
	}
	check := func(when string, c *db.Collection) {
		t.Helper()
		stats := need(c.Stats(ctx))(t)
		failIf(t, !stats.LabelFree || stats.CodedItems != 399 || stats.Taught != 0 || stats.Pending != 0,
			"%s: %+v", when, stats)
		all := need(c.Spaces(ctx))(t)
		for _, s := range all {
			if s.Items != 399 || s.Taught != 0 || s.Pending != 0 || s.StatisticsBytes != 0 || s.Aim != "" ||
				len(s.Revisions) != 1 || s.Training == nil || !s.Training.Method.LabelFree() {
				t.Errorf("%s: space %d: %+v", when, s.Space, s)
			}
		}
	}
	check("after writes", c)
	errorsAre(t, db.ErrInvalid, map[string]error{
		"update":  errOf(c.Update(ctx, db.UpdateOptions{})),
		"grow":    errOf(c.Update(ctx, db.UpdateOptions{GrowLabels: true})),
		"restore": errOf(c.RestoreRevision(ctx, 0, 1)),
	}, "without labels")
	r, err := c.Reindex(ctx, db.ReindexOptions{Activate: true})
	stopIf(t, err != nil || r.Space != 3 || r.Parent != 2 || r.Items != 399, "%+v, %v", r, err)
	need(c.Rollback(ctx))(t)
	must(t, c.DropSpace(ctx, 1))
	dbkit.CheckSound(t, d, "after writes")
	d, c = reopen(t, d, "db", &db.Options{FS: fs})
	check("opened again", c)
	codes := map[string][]byte{}
	for _, it := range dbkit.AllItems(t, c) {
		codes[it.Key] = it.Code
	}
	dbkit.MustClose(t, d)
	need(db.Repair(ctx, "db", &db.Options{FS: fs}, db.RepairOptions{}, func(f report.Finding) error {
		t.Errorf("repair of a sound database: %v", f)
		return nil
	}))(t)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	c = dbkit.MustCollection(t, d, "main")
	check("repaired", c)
	for _, it := range dbkit.AllItems(t, c) {
		stopIf(t, !slices.Equal(it.Code, codes[it.Key]), "repaired: item %s has the code %x, it had %x",
			it.Key, it.Code, codes[it.Key])
	}
	dbkit.CheckSound(t, d, "repaired")
}

// Items like those of the training have no drift, and others have.
func TestLabelFreeDrift(t *testing.T) {
	t.Parallel()
	items := embeddedItems(0, 1000, 32, 1)
	d, c := openWith(t, vfs.NewMem(), embeddedSchema, items[:600])
	errorIs(t, errOf(dbkit.Drift(ctx, c)), db.ErrNoModel)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 64}})
	drift, err := dbkit.Drift(ctx, c)
	failIf(t, drift != nil || err != nil, "drift %v, %v", drift, err)
	dbkit.PutAll(t, d, c, items[600:])
	like, err := dbkit.Drift(ctx, c)
	stopIf(t, err != nil || len(like) != 1 || like["e"] > .02 || like.TrainAgain(),
		"items like those of the training: %+v, %v", like, err)
	// Vectors of another kind: only the later rows count.
	for _, it := range items[600:] {
		for j := range it.Vectors["e"] {
			it.Vectors["e"][j] = float32(math.Abs(float64(it.Vectors["e"][j])))
		}
	}
	dbkit.PutAll(t, d, c, items[600:])
	other, err := dbkit.Drift(ctx, c)
	failIf(t, err != nil || !other.TrainAgain(), "items of another kind: %+v, %v", other, err)
	// A reindexing is no training: they have come since all the same.
	need(c.Reindex(ctx, db.ReindexOptions{Activate: true}))(t)
	again, err := dbkit.Drift(ctx, c)
	failIf(t, err != nil || again["e"] != other["e"], "after a reindexing: %+v, %v", again, err)
}

// A training learns without labels by a method that does alone; and mistakes say what to do.
func TestLabelFreeTraining(t *testing.T) {
	t.Parallel()
	items := embeddedItems(0, 200, 32, 1)
	_, c := openWith(t, vfs.NewMem(), embeddedSchema, items)
	if _, err := c.Train(ctx, db.TrainOptions{}); !errors.Is(err, db.ErrInvalid) ||
		!errors.Is(err, model.ErrNoLabels) || !strings.Contains(err.Error(), "the method itq") {
		t.Errorf("without a method: %v", err)
	}
	if training := dbkit.MustTrain(t, c,
		db.TrainOptions{Rows: 150, Options: fit.Options{Method: model.MethodITQ,
			Bits: 16}}); training.TrainItems != 150 || training.Items != 200 {
		t.Errorf("%+v", training)
	}
	for i, it := range items[:40] {
		it.Labels = []string{fmt.Sprint("class", i%3)}
		need(c.Put(ctx, it))(t)
	}
	if training := dbkit.MustTrain(t, c,
		db.TrainOptions{Options: fit.Options{Bits: 16}}); training.Method != model.MethodLabels ||
		training.TrainItems != 40 {
		t.Errorf("%+v", training)
	}
	explicit := dbkit.MustTrain(t, c,
		db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Bits: 16}})
	failIf(t, explicit.Method != model.MethodITQ || explicit.TrainItems != 200, "%+v", explicit)
	// Labelled items of that space have the codes of their vectors.
	in := need(c.InSpace(explicit.Space, 0))(t)
	code, _, err := in.EncodeQuery(ctx, db.Query{From: "e", Vector: items[0].Vectors["e"]})
	if it := need(in.Get(ctx, "k0"))(t); err != nil || !slices.Equal(it.Code, code) {
		t.Errorf("the code of a labelled item is %x, that of its vector %x (%v)", it.Code, code, err)
	}
	_, err = c.Train(ctx, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ, Anchors: 5}})
	failIf(t, !errors.Is(err, db.ErrInvalid) || !errors.Is(err, model.ErrOption) ||
		!strings.Contains(err.Error(), "anchors"), "anchors: %v", err)
	_, empty := openWith(t, vfs.NewMem(), embeddedSchema, nil)
	errorIs(t, errOf(empty.Train(ctx, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ}})),
		db.ErrInvalid, "no items to learn from")
	apart := pairedItems(200)
	for i, it := range apart {
		delete(it.Vectors, []string{"image", "text"}[i%2])
	}
	_, unpaired := openWith(t, vfs.NewMem(), pairedSchema, apart)
	errorIs(t, errOf(unpaired.Train(ctx, db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ}})),
		fit.ErrUnpaired, "Put items that have both")
	// Where no item has one of the modalities, the rest is one space.
	var images []*db.Item
	for _, it := range pairedItems(200) {
		if delete(it.Vectors, "text"); len(it.Vectors) > 0 {
			images = append(images, it)
		}
	}
	_, alone := openWith(t, vfs.NewMem(), pairedSchema, images)
	training := dbkit.MustTrain(t, alone, db.TrainOptions{Options: fit.Options{Method: model.MethodITQ}})
	failIf(t, !slices.Equal(training.LeftOut, []string{"text"}), "of images alone: left out %v",
		training.LeftOut)
}

// A collection whose items get labels one after the other has a space without labels, and beside it one that
// learns from the labels that there are. Searches in either are exact, and find items without labels, too.
func TestLabelsLater(t *testing.T) {
	dbkit.LongTest(t)
	const n = 200
	items, fs := pairedItems(n), vfs.NewMem()
	d, c := openWith(t, fs, pairedSchema, items)
	free := db.TrainOptions{Options: fit.Options{Method: model.MethodCCAITQ, Bits: 16}}
	training := dbkit.MustTrain(t, c, free)
	stopIf(t, !training.Active, "%+v", training)
	checkInEach(t, c, items, 1)

	for _, labelled := range []int{4, n / 10, n} {
		for i, it := range items[:labelled] {
			it.Labels = []string{fmt.Sprint("class", i%3)}
		}
		dbkit.PutAll(t, d, c, items[:labelled])
		opt := dbkit.TinyTraining(1)
		opt.Bits, opt.Anchors = 24, 4
		training := need(c.Train(ctx, opt))(t)
		stopIf(t, training.Method != model.MethodLabels || training.TrainItems != labelled ||
			training.Items != n || training.Active, "%d labelled: %+v", labelled, training)
		checkInEach(t, c, items, 1, training.Space)
		if labelled < n {
			must(t, c.DropSpace(ctx, training.Space))
		}
	}

	copied := dbkit.MustCollection(t, indexOnlyOf(t, d, &db.Options{FS: fs}), "main")
	checkCodesOf(t, copied, items, 1)
	checkCodesOf(t, copied, items, 4)

	// Labels go, and a space that has learned from them goes on with the codes of vectors.
	const fddh = 4
	must(t, c.Activate(ctx, fddh))
	for _, it := range items {
		it.Labels = nil
	}
	dbkit.PutAll(t, d, c, items)
	updated, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
	failIf(t, err != nil || updated.Forgotten != n, "%+v, %v", updated, err)
	checkInEach(t, c, items, 1, fddh)
	dbkit.MustTrain(t, c, free)
	dbkit.CheckSound(t, d, "in the end")
}

// checkInEach checks the searches of spaces by codes, and those by vectors.
func checkInEach(t *testing.T, c *db.Collection, items []*db.Item, spaces ...db.Space) {
	t.Helper()
	for _, space := range spaces {
		checkCodesOf(t, c, items, space)
		q := db.Query{From: "image", To: "image", Vector: items[1].Vectors["image"], K: 30, Recall: 1}
		e, res, err := dbkit.Explain(ctx, need(c.InSpace(space, 0))(t), q, -1)
		stopIf(t, err != nil || e.Plan != "vectors", "space %d: %+v, %v", space, e, err)
		var want []*db.Item
		for _, it := range items {
			if it.Vectors["image"] != nil {
				want = append(want, it)
			}
		}
		cosine := map[*db.Item]float32{}
		for _, it := range want {
			cosine[it] = plainCosine(q.Vector, it.Vectors["image"])
		}
		slices.SortStableFunc(want, func(a, b *db.Item) int { return cmp.Compare(cosine[b], cosine[a]) })
		for i, h := range res.Hits {
			failIf(t, h.Key != want[i].Key, "space %d: hit %d by vectors is %s, by a scan %s", space, i,
				h.Key, want[i].Key)
		}
	}
}

// checkCodesOf compares searches by the codes of a space with a scan of all items, and finds each item.
func checkCodesOf(t *testing.T, c *db.Collection, items []*db.Item, space db.Space) {
	t.Helper()
	in := need(c.InSpace(space, 0))(t)
	image, text := items[1].Vectors["image"], items[1].Vectors["text"]
	var queries []db.Query
	for i, plan := range []db.Plan{db.PlanAuto, db.PlanScan, db.PlanMemory, db.PlanDisk} {
		if !effort.Sampled(i, 2) { // from disk it takes a hundred times as long
			continue
		}
		queries = append(queries,
			db.Query{From: "image", To: "text", Vector: image, Plan: plan, K: 20},
			db.Query{From: "text", To: "image", Vector: text, Plan: plan, Where: "NOT has(label)"},
			db.Query{From: "text", Vector: text, Plan: plan, Where: "label = 'class1'",
				Rerank: db.RerankNone},
			db.Query{Key: "k2", Plan: plan, Rerank: db.RerankProjection},
		)
	}
	dbkit.CheckSearches(t, in, queries...)

	res := need(in.Search(ctx, db.Query{From: "image", Vector: image, Rerank: db.RerankProjection,
		K: 2 * len(items)}))(t)
	found := map[string]bool{}
	for _, h := range res.Hits {
		found[h.Key] = true
	}
	failIf(t, len(found) != len(items), "space %d: %d of %d items are found", space, len(found), len(items))
}

// Encoders are kept in the order of modalities, through alterations, trainings and reopening, and
// come with copies. Without the last one older versions can read the database again.
func TestEncoders(t *testing.T) {
	fs := vfs.NewMem()
	d, c := openNew(t, "db", &db.Options{FS: fs}, dbkit.PairsSchema, dbkit.Pairs(40, synth.Config{})...)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	given := []db.Encoder{
		{"text", db.InputText, []string{"python3", "a b.py", ""}, []byte{1, 2}, false},
		{"image", db.InputText, []string{"clip"}, nil, false},
		{"image", db.InputFile, []string{"/opt/clip", "--file"}, make([]byte, 256), true},
	}
	want := []db.Encoder{given[2], given[1], given[0]}
	same := func(what string, d *db.DB, want []db.Encoder) {
		t.Helper()
		got, err := dbkit.MustCollection(t, d, "main").Schema()
		diff := gocmp.Diff(want, got.Encoders)
		failIf(t, err != nil || diff != "", "%s: %v, %s", what, err, diff)
	}
	before := need(d.Snapshot())(t)
	must(t, c.Alter(ctx, db.Alteration{Encoders: given}))
	given[0].Command[0], given[0].Fingerprint[0] = "changed by the caller", 9
	want[2].Command, want[2].Fingerprint = []string{"python3", "a b.py", ""}, []byte{1, 2}
	same("set", d, want)
	then := need(before.Collection("main"))(t)
	got, err := then.Schema()
	failIf(t, err != nil || got.Encoders != nil, "a snapshot of before has %v, %v", got, err)
	must(t, errors.Join(before.Close(),
		c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "place", Type: db.String}}})))
	same("altered", d, want)

	// An index-only copy has them, and can be given others.
	must(t, d.Checkpoint(ctx, "copy", db.CheckpointOptions{IndexOnly: true}))
	copied := dbkit.MustOpen(t, "copy", &db.Options{FS: fs})
	same("copy", copied, want)
	must(t, dbkit.MustCollection(t, copied, "main").Alter(ctx, db.Alteration{Encoders: []db.Encoder{
		{Modality: "image", Input: db.InputText}, {Modality: "text", Input: db.InputText}}}))
	same("copy with others", copied, want[:1])
	dbkit.CheckSound(t, copied, "copy with others")
	dbkit.MustClose(t, copied)

	d, _ = reopen(t, d, "db", &db.Options{FS: fs})
	same("opened again", d, want)
	c = dbkit.MustCollection(t, d, "main")
	for i, e := range want {
		must(t, c.Alter(ctx, db.Alteration{Encoders: []db.Encoder{{Modality: e.Modality, Input: e.Input}}}))
		same("some removed", d, append([]db.Encoder(nil), want[i+1:]...))
	}
	dbkit.CheckSound(t, d, "removed")
	dbkit.MustClose(t, d)
}

// What cannot be an encoder is refused, and nothing is changed.
func TestEncodersThatCannotBe(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()}, dbkit.PairsSchema)
	defer dbkit.MustClose(t, d)
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	one := db.Encoder{"text", db.InputText, []string{"encode"}, nil, false}
	must(t, c.Alter(ctx, db.Alteration{Encoders: []db.Encoder{one}}))
	for _, r := range []struct {
		c    *db.Collection
		all  []db.Encoder
		want string
	}{
		{c, []db.Encoder{{"sound", db.InputText, []string{"x"}, nil, false}}, `unknown modality "sound"`},
		{c, []db.Encoder{{"text", "", []string{"x"}, nil, false}}, `unknown input ""`},
		{c, []db.Encoder{{"text", "picture", []string{"x"}, nil, false}},
			`unknown input "picture": text and file are possible`},
		{c, []db.Encoder{one, {"text", db.InputText, []string{"x"}, nil, false}}, "two encoders of input text"},
		{c, []db.Encoder{{"texts", db.InputText, nil, nil, false}}, "unknown modality \"texts\""},
		{c, []db.Encoder{{"text", "picture", nil, nil, false}}, `unknown input "picture"`},
		{c, []db.Encoder{{"text", db.InputText, []string{"", "x"}, nil, false}}, "the command is empty"},
		{c, []db.Encoder{{"text", db.InputText, []string{"x\x00"}, nil, false}}, "a byte 0"},
		{c, []db.Encoder{{"text", db.InputText, []string{"x", strings.Repeat("y", 1<<14)}, nil, false}},
			"a command of 16387 bytes"},
		{c, []db.Encoder{{"text", db.InputText, []string{"x"}, make([]byte, 257), false}}, "a fingerprint of 257 bytes"},
		{codes, []db.Encoder{one}, "bring codes"},
	} {
		err := r.c.Alter(ctx, db.Alteration{Encoders: r.all})
		failIf(t, !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), r.want), "%v: %v", r.all,
			err)
	}
	got, err := c.Schema()
	failIf(t, err != nil || len(got.Encoders) != 1, "%v, %v", got, err)
}
