package db_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// audio is what the tests add.
var (
	audio = db.Modality{Name: "audio", Dim: 3}
	place = db.Field{Name: "place", Type: db.String, Indexed: true}
)

// sounds gives items vectors of audio that tell their classes.
func sounds(items []*db.Item) {
	for i, it := range items {
		x := make([]float32, audio.Dim)
		for j := range x {
			x[j] = float32((i*7+j*3)%5) / 20
		}
		if len(it.Labels) > 0 {
			x[int(it.Labels[0][len("class")])%audio.Dim]++
		}
		it.Vectors[audio.Name] = x
	}
}

// What is added is there for all handles, and at once for writes and filters; items that
// were there lack it, and a snapshot shows what was there before.
func TestAlter(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	defer func() { d.Close() }()
	items := dbkit.Pairs(40, synth.Config{Seed: 1})
	putAll(t, c, items)
	other, before := dbkit.MustCollection(t, d, "main"), dbkit.AllItems(t, c)
	snap := need(d.Snapshot())(t)
	then := need(snap.Collection("main"))(t)
	a := db.Alteration{AddModalities: []db.Modality{audio, {Name: "bag", Dim: 100, Sparse: true}},
		AddFields: []db.Field{place, {Name: "note", Type: db.String}}}
	must(t, c.Alter(ctx, a))
	want := db.Schema{Modalities: slices.Concat(dbkit.PairsSchema.Modalities, a.AddModalities),
		Fields: slices.Concat(dbkit.PairsSchema.Fields, a.AddFields)}
	a.AddModalities[0].Dim, a.AddFields[0].Type = 99, db.Bool // what is given is the caller's own
	for _, c := range []*db.Collection{c, other} {
		equal(t, want, dbkit.MustSchema(t, c))
	}
	dbkit.EqualItems(t, before, dbkit.AllItems(t, c))
	added := &db.Item{Key: "k3", Vectors: map[string][]float32{"audio": {1, 2, 3}},
		Sparse: map[string]db.Sparse{"bag": {Index: []uint32{99}, Value: []float32{1}}},
		Fields: map[string]any{"place": "Bern", "note": "x"}}
	need(other.Merge(ctx, added))(t)
	check := func(c *db.Collection) {
		t.Helper()
		for where, want := range map[string]int{
			"has(audio)": 1, "has(bag)": 1, "NOT has(audio)": 39, "has(image)": 40, "place = 'Bern'": 1,
			"place != 'Bern'": 0, "NOT place = 'Bern'": 39,
		} {
			holds(t, c, want, where)
		}
		it, err := c.Get(ctx, "k3")
		if err != nil || cmp.Diff(it.Vectors["audio"], added.Vectors["audio"]) != "" ||
			cmp.Diff(it.Sparse, added.Sparse) != "" || cmp.Diff(it.Fields, added.Fields) != "" ||
			it.Vectors["image"] == nil || len(it.Labels) == 0 {
			t.Errorf("%+v, %v", it, err)
		}
	}
	check(c)
	checkSpaces(t, d)

	// The snapshot.
	equal(t, dbkit.PairsSchema, dbkit.MustSchema(t, then))
	dbkit.EqualItems(t, before, dbkit.AllItems(t, then))
	errorIs(t, errOf(then.Count(ctx, "has(audio)")), db.ErrInvalid)
	errorIs(t, then.Alter(ctx, a), db.ErrReadOnly)
	must(t, snap.Close())

	// And after opening again.
	d, c = reopen(t, d, "db", opts)
	equal(t, want, dbkit.MustSchema(t, c))
	check(c)
	dbkit.CheckSound(t, d, "opened again")
	must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "third", Type: db.Bool}}}))
	s := dbkit.MustSchema(t, c)
	failIf(t, len(s.Fields) != len(want.Fields)+1 || len(s.Modalities) != len(want.Modalities), "%+v", s)
	dbkit.MustClose(t, d)
	errorIs(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "late", Type: db.Bool}}}),
		db.ErrClosed)
}

// What cannot be added is refused with what is wrong, and then nothing of it is added.
func TestAlterRefuses(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	defer func() { d.Close() }()
	codes := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	many := func(n int) (list []db.Modality) {
		for i := range n {
			list = append(list, db.Modality{Name: fmt.Sprint("m", i), Dim: 1})
		}
		return list
	}
	manyFields := make([]db.Field, db.MaxFields)
	for i := range manyFields {
		manyFields[i] = db.Field{Name: fmt.Sprint("f", i), Type: db.Bool}
	}
	fresh := db.Field{Name: "fresh", Type: db.Int}
	commits := dbkit.MustStats(t, d).Sequence
	for _, r := range []struct {
		c    *db.Collection
		a    db.Alteration
		want error
		says string
	}{
		{c, db.Alteration{}, db.ErrInvalid, `alter collection "main": neither modalities nor fields`},
		{c, db.Alteration{AddModalities: []db.Modality{{Name: "image", Dim: 9}},
			AddFields: []db.Field{fresh}}, db.ErrExists,
			`modality "image": collection "main" has a modality of that name, of dimension 8`},
		{c, db.Alteration{AddModalities: []db.Modality{{Name: "year", Dim: 9}}}, db.ErrExists,
			`modality "year": collection "main" has a field of that name, of type int`},
		{c, db.Alteration{AddFields: []db.Field{fresh, {Name: "text", Type: db.Int}}}, db.ErrExists,
			`field "text": collection "main" has a modality of that name`},
		{c, db.Alteration{AddFields: []db.Field{fresh, {Name: "year", Type: db.Int, Indexed: true}}},
			db.ErrExists, `field "year"`},
		{c, db.Alteration{AddModalities: []db.Modality{audio, audio}}, db.ErrInvalid,
			`modality "audio": there is a modality of that name already`},
		{c, db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{{Name: "audio",
			Type: db.Int}}}, db.ErrInvalid, `field "audio": there is a modality`},
		{c, db.Alteration{AddModalities: []db.Modality{{Name: "audio"}}, AddFields: []db.Field{fresh}},
			db.ErrInvalid, `modality "audio": 0 dimensions`},
		{c, db.Alteration{AddFields: []db.Field{{Name: "audio", Type: "date"}}}, db.ErrInvalid,
			`unknown type "date"`},
		{c, db.Alteration{AddFields: []db.Field{{Name: "a b", Type: db.Int}}}, db.ErrInvalid,
			`field name "a b"`},
		{c, db.Alteration{AddModalities: many(db.MaxModalities - 1)}, db.ErrInvalid,
			"257 modalities, at most 256"},
		{c, db.Alteration{AddFields: manyFields}, db.ErrInvalid, "1028 fields, at most 1024"},
		{codes, db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{fresh}},
			db.ErrInvalid, `modality "audio": the items of collection "codes" bring codes`},
	} {
		schema := dbkit.MustSchema(t, r.c)
		err := r.c.Alter(ctx, r.a)
		failIf(t, !errors.Is(err, r.want) || !strings.Contains(fmt.Sprint(err), r.says) ||
			strings.Count(fmt.Sprint(err), "fddhdb: ") != 1, "%+v: %v", r.a, err)
		diff := cmp.Diff(schema, dbkit.MustSchema(t, r.c))
		failIf(t, diff != "", "%+v: %s", r.a, diff)
	}
	now := dbkit.MustStats(t, d).Sequence
	failIf(t, now != commits, "%d commits", now-commits)
	must(t, codes.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "n", Type: db.Int, Indexed: true}}}))
	need(codes.Put(ctx, &db.Item{Key: "k", Code: []byte{1, 2}, Fields: map[string]any{"n": 5}}))(t)
	holds(t, codes, 1, "n = 5")
	// as many as there may be
	must(t, c.Alter(ctx, db.Alteration{AddModalities: many(db.MaxModalities - 2),
		AddFields: manyFields[:db.MaxFields-4]}))
	must(t, d.DropCollection(ctx, "codes"))
	errorIs(t, codes.Alter(ctx, db.Alteration{AddFields: []db.Field{fresh}}), db.ErrNotFound)
	dbkit.MustClose(t, d)
	opts.ReadOnly = true
	d = dbkit.MustOpen(t, "db", opts)
	errorIs(t, dbkit.MustCollection(t, d, "main").Alter(ctx, db.Alteration{AddFields: []db.Field{fresh}}),
		db.ErrReadOnly)
	failIf(t, len(dbkit.MustSchema(t, dbkit.MustCollection(t, d, "main")).Modalities) != db.MaxModalities,
		"not as many as were added")
}

// A model goes on with the modalities that it knows, and the next training learns the
// others; what an older space cannot answer it says.
func TestModelsOfAnAlteredCollection(t *testing.T) {
	dbkit.LongTest(t)
	d, c, items := openPairs(t, 60, 90, synth.Config{Classes: 3, Seed: 3})
	training := dbkit.TinyTraining(1)
	dbkit.MustTrain(t, c, training)
	query := db.Query{From: "image", To: "text", Vector: items[7].Vectors["image"], K: 90}
	before := need(c.Search(ctx, query))(t)
	must(t, c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{place}}))
	after, err := c.Search(ctx, query)
	diff := cmp.Diff(before.Hits, after.Hits)
	failIf(t, diff != "" || err != nil, "%v, %v", diff, err)

	// Items come with it, one with nothing else, while the model does not know it.
	sounds(items[50:])
	items[80].Vectors, items[80].Labels = map[string][]float32{"audio": {1, 0, 0}}, nil
	putAll(t, c, items[50:])
	it, err := c.Get(ctx, "k80")
	failIf(t, err != nil || it.Code != nil, "%+v, %v", it, err)
	checkCodes(t, c, dbkit.AllItems(t, c))
	dbkit.CheckSound(t, d, "altered")
	unlearned := func(what string, err error) {
		t.Helper()
		failIf(t, !errors.Is(err, db.ErrNoModel) ||
			!strings.Contains(err.Error(), `knows nothing of modality "audio"`) ||
			!strings.Contains(err.Error(), "train again"), "%s: %v", what, err)
	}
	from := db.Query{From: "audio", To: "text", Vector: []float32{1, 0, 0}, K: 90}
	unlearned("search", errOf(c.Search(ctx, from)))
	unlearned("all", errOf(c.SearchAll(ctx, []db.Query{from})))
	unlearned("radius", errOf(dbkit.CountWithin(c, from, 3)))
	_, _, err = c.EncodeQuery(ctx, from)
	unlearned("encode a query", err)
	_, _, err = c.Encode(&db.Item{Vectors: map[string][]float32{"audio": {1, 0, 0}}})
	unlearned("encode", err)
	of := func(name string) db.Evaluation {
		return db.Evaluation{Queries: map[string][][]float32{name: {items[88].Vectors[name],
			items[89].Vectors[name]}}, Labels: [][]string{items[88].Labels, items[89].Labels}}
	}
	unlearned("evaluate", errOf(c.Evaluate(ctx, of("audio"))))
	found, err := c.Evaluate(ctx, of("image"))
	failIf(t, err != nil || found[0].To != "text" || found[0].Hamming.Database != 89, "%+v, %v", found, err)
	// What has it can be found by the codes that it has.
	to := db.Query{From: "image", To: "audio", Vector: items[7].Vectors["image"], K: 90}
	res, err := c.Search(ctx, to)
	failIf(t, err != nil || len(res.Hits) != 40-1, "%d hits, %v", len(res.Hits), err)
	s, err := c.Stats(ctx)
	failIf(t, err != nil || !s.Modalities[0].Learned || s.Modalities[2].Learned ||
		s.Modalities[2].Items != 40 || s.CodedItems != 89, "%+v, %v", s, err)
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherLabels})
	dbkit.CheckSound(t, d, "updated")

	// A reindexing keeps the model, a training learns.
	re := need(c.Reindex(ctx, db.ReindexOptions{}))(t)
	unlearned("reindexed", errOf(need(c.InSpace(re.Space, 0))(t).Search(ctx, from)))
	training.Map["audio"] = model.MapRBF
	tr := dbkit.MustTrain(t, c, training)
	failIf(t, len(tr.LeftOut) > 0, "%+v", tr)
	for _, q := range []db.Query{from, to, query} {
		res, err := c.Search(ctx, q)
		failIf(t, err != nil || len(res.Hits) == 0, "from %s to %s: %+v, %v", q.From, q.To, res, err)
	}
	it, err = c.Get(ctx, "k80")
	failIf(t, err != nil || it.Code == nil, "%+v, %v", it, err)
	checkCodes(t, c, dbkit.AllItems(t, c))
	unlearned("the space before", errOf(need(c.InSpace(1, 0))(t).Search(ctx, from)))
	dbkit.CheckSound(t, d, "trained")
	need(c.Rollback(ctx))(t)
	unlearned("rolled back", errOf(c.Search(ctx, from)))
}

// The pair of the only modality with itself is measured as long as the model knows no other.
func TestEvaluateWhatWasAlone(t *testing.T) {
	d, c := openNew(t, "db", &db.Options{FS: vfs.NewMem()},
		db.Schema{Modalities: dbkit.PairsSchema.Modalities[:1]})
	defer dbkit.MustClose(t, d)
	items := dbkit.Pairs(60, synth.Config{Classes: 3, Seed: 3})
	for _, it := range items {
		delete(it.Vectors, "text")
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 6}})
	e := db.Evaluation{Queries: map[string][][]float32{"image": {items[0].Vectors["image"]}},
		Labels: [][]string{items[0].Labels}}
	before, err := c.Evaluate(ctx, e)
	stopIf(t, err != nil || len(before) != 1, "%v, %v", before, err)
	must(t, c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{audio}}))
	after, err := c.Evaluate(ctx, e)
	stopIf(t, err != nil || len(after) != 2 || after[1].To != "audio" || after[1].Hamming.Database != 0,
		"%+v, %v", after, err)
	equal(t, before[0], after[0])
}

// What was put into a batch before the schema grew is stored as it was meant, whether the
// batch goes item by item or in bulk, and beside what came later.
func TestBatchesAcrossAlter(t *testing.T) {
	t.Parallel()
	for _, n := range []int{10, bulkItems + 10} {
		if testing.Short() && n > bulkItems {
			continue
		}
		d, c := dbkit.OpenPairs(t)
		vector := map[string][]float32{"text": {1, 2, 3, 4, 5}}
		b := d.NewBatch()
		put := func(i int, it db.Item) {
			t.Helper()
			it.Key = fmt.Sprint("k", i)
			must(t, b.Put(c, &it))
		}
		for i := range n / 2 {
			put(i, db.Item{Vectors: vector, Labels: []string{"old"}})
		}
		must(t, c.Alter(ctx,
			db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{place}}))
		for i := n / 2; i < n; i++ {
			put(i, db.Item{Vectors: map[string][]float32{"audio": {1, 2, 3}},
				Fields: map[string]any{"place": "Bern"}})
		}
		if n < bulkItems { // items that are merged with what was checked before, and the other way round
			for _, it := range []*db.Item{{Key: "k0", Vectors: map[string][]float32{"audio": {4, 5, 6}}},
				{Key: "k9", Vectors: vector}} {
				must(t, b.Merge(c, it))
			}
		}
		must(t, b.Commit(ctx))
		sum := func(where string) int {
			t.Helper()
			return need(c.Count(ctx, where))(t)
		}
		both := 0
		if n < bulkItems {
			both = 2
		}
		if sum("has(text)") != n/2+both/2 || sum("has(audio)") != n-n/2+both/2 ||
			sum("has(text) AND has(audio)") != both || sum("place = 'Bern'") != n-n/2 {
			t.Errorf("%d items: %d have text, %d audio, %d both", n, sum("has(text)"), sum("has(audio)"),
				sum("has(text) AND has(audio)"))
		}
		checkSpaces(t, d)
	}

	// A merge and an expectation that were made before.
	d, c := dbkit.OpenPairs(t)
	need(c.Put(ctx, &db.Item{Key: "a", Vectors: map[string][]float32{"image": make([]float32, 8)}}))(t)
	old := need(c.Get(ctx, "a"))(t)
	merge, expect := d.NewBatch(), d.NewBatch()
	merge.Merge(c, &db.Item{Key: "a", Vectors: map[string][]float32{"text": {1, 2, 3, 4, 5}}})
	expect.PutIf(c, &db.Item{Key: "a"}, old)
	must(t, c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{audio}}))
	need(c.Merge(ctx, &db.Item{Key: "a", Vectors: map[string][]float32{"audio": {1, 2, 3}}}))(t)
	must(t, merge.Commit(ctx))
	it, err := c.Get(ctx, "a")
	failIf(t, err != nil || len(it.Vectors) != 3, "%+v, %v", it, err)
	errorIs(t, expect.Commit(ctx), db.ErrConflict)
	checkSpaces(t, d)
}

// A collection can be altered before its codes are in memory, and nothing is lost by it.
func TestAlterRightAfterOpening(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d, c := openNew(t, "db", opts, db.Schema{Bits: 16})
	defer func() { d.Close() }()
	const n = state.LoadAtOnce + 50
	b := d.NewBatch()
	for i := range n {
		b.Put(c, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), byte(i >> 8)}})
	}
	must(t, b.Commit(ctx))
	dbkit.MustClose(t, d)
	for i := range 2 {
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
		must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: fmt.Sprint("f", i), Type: db.Int,
			Indexed: true}}}))
		if i == 0 { // it is closed before anybody has waited for the codes
			dbkit.MustClose(t, d)
		}
	}
	need(c.Put(ctx, &db.Item{Key: "new", Code: []byte{1, 2}, Fields: map[string]any{"f0": 1, "f1": 2}}))(t)
	holds(t, c, 1, "f0 = 1 AND f1 = 2")
	res, err := c.Search(ctx, db.Query{Code: []byte{1, 2}, K: 2})
	failIf(t, err != nil || len(res.Hits) != 2 || res.Hits[1].Distance != 0, "%+v, %v", res, err)
	s := dbkit.MustStats(t, d)
	failIf(t, s.Items != n+1, "%d items", s.Items)
	dbkit.CheckSound(t, d, "altered")
}

// The schema may grow while everything else goes on.
func TestAlterDuringEverything(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(120, 4)
	train(t, c, items, dbkit.TinyTraining(1))
	rounds := 4
	var all sync.WaitGroup
	do := func(f func(i int) error) {
		all.Go(func() {
			for i := range rounds {
				if err := f(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	do(func(i int) error {
		return c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{{Name: fmt.Sprint("m", i), Dim: 2}},
			AddFields: []db.Field{{Name: fmt.Sprint("f", i), Type: db.Int, Indexed: true}}})
	})
	do(func(i int) error {
		b := d.NewBatch()
		for k := range 30 {
			it := *items[(i*30+k)%120]
			if s := dbkit.MustSchema(t, c); k%2 == 0 {
				it.Fields = map[string]any{s.Fields[len(s.Fields)-1].Name: true}
				if len(s.Fields) > len(dbkit.PairsSchema.Fields) {
					it.Fields = map[string]any{s.Fields[len(s.Fields)-1].Name: k}
				}
			}
			b.Put(c, &it)
		}
		return b.Commit(ctx)
	})
	do(func(i int) error {
		_, err := c.Train(ctx, dbkit.TinyTraining(uint64(i)))
		return busy(err)
	})
	do(func(int) error { return busy(errOf(c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels}))) })
	do(func(int) error { return busy(errOf(c.Reindex(ctx, db.ReindexOptions{}))) })
	do(func(i int) error {
		s, err := d.Snapshot()
		if err != nil {
			return err
		}
		defer s.Close()
		then, err := s.Collection("main")
		if err != nil {
			return err
		}
		schema := dbkit.MustSchema(t, then)
		for _, m := range schema.Modalities {
			if _, err := then.Count(ctx, "has("+m.Name+")"); err != nil {
				return err
			}
		}
		if len(schema.Modalities)-2 != len(schema.Fields)-4 {
			return fmt.Errorf("half an alteration: %+v", schema)
		}
		_, err = then.Search(ctx, db.Query{From: "image", To: "text", Vector: items[0].Vectors["image"]})
		return err
	})
	all.Wait()
	s := dbkit.MustSchema(t, c)
	failIf(t, len(s.Modalities) != 2+rounds || len(s.Fields) != 4+rounds, "%+v", s)
	dbkit.CheckSound(t, d, "afterwards")
	checkSpaces(t, d)
}

// busy is nil where others were at it.
func busy(err error) error {
	if errors.Is(err, db.ErrBusy) {
		return nil
	}
	return err
}

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
	s.titled = need(c.Count(ctx, "title > 'title 1' OR price < 20"))(t)
	if s.modalities > len(dbkit.PairsSchema.Modalities) {
		s.heard = need(c.Count(ctx, "has(audio)"))(t)
	}
	return s
}

// alterSteps alter a collection, use what has been added, and alter it again.
var alterSteps = []func(c *db.Collection) error{
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{audio}, AddFields: []db.Field{place}})
	},
	func(c *db.Collection) error {
		return errOf(c.Merge(ctx, &db.Item{Key: "k1", Vectors: map[string][]float32{"audio": {1, 2, 3}},
			Fields: map[string]any{"place": "Bern"}}))
	},
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "note", Type: db.String},
			{Name: "rank", Type: db.Int, Indexed: true}}})
	},
	func(c *db.Collection) error {
		return c.Alter(ctx, db.Alteration{IndexFields: []string{"title", "price"},
			AddFields: []db.Field{{Name: "last", Type: db.Bool}}})
	},
	func(c *db.Collection) error { return db.Of(c).Close() },
}

// alterBase fills and trains a collection.
func alterBase(t testing.TB, opts *db.Options) (*db.DB, *db.Collection) {
	t.Helper()
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	items := dbkit.ViewItems(40, 4)
	for i, it := range items {
		it.Fields = map[string]any{"title": fmt.Sprint("title ", i%3), "price": float64(i)}
	}
	train(t, c, items, dbkit.TinyTraining(1))
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
	stopIf(t, !slices.Contains(possible, got), "%s: %+v is none of %+v", what, got, possible)
	// an index that was not made to its end is none
	found, _ := dbkit.Findings(t, d, db.VerifyOptions{})
	stopIf(t, len(found) > 0, "%s: %v", what, found)
	for _, step := range alterSteps[:4] {
		err := step(c)
		stopIf(t, err != nil && !errors.Is(err, db.ErrExists), "%s: afterwards: %v", what, err)
	}
	now := alteredStateOf(t, c)
	stopIf(t, now.titled != got.titled || now.indexed != 5, "%s: afterwards %+v, before %+v", what, now, got)
	gives(t, 1, what)(c.Count(ctx, "place = 'Bern'"))
	must(t, inconsistency(d), what)
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
				stopIf(t, !errors.Is(err, db.ErrFailed) && !errors.Is(err, dbkit.ErrInjected), "%s: %v", what,
					err)
				if i < len(alterSteps)-1 {
					now := alteredStateOf(t, c)
					stopIf(t, now != before, "%s: %v, and readers see %+v, not %+v", what, err, now, before)
					after = afterStep(before, i)
					_ = d.Close()
				}
				break
			}
			hit := fail.Hit()
			fail.Off.Store(true)
			checkAltered(t, fmt.Sprintf("write %d fails, and those after it: %v: %v", k, forever, err), mem,
				before, after)
			if !hit {
				failIf(t, err != nil || k < 8, "%d writes, %v", k, err)
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
		failIf(t, len(cr.crashes) < 8, "%d crashes", len(cr.crashes))
		t.Logf("NoSync %v: %d crashes", noSync, len(cr.crashes))
	}
}

// allKeys returns all keys of the store.
func allKeys(t testing.TB, d *db.DB) map[string]bool {
	t.Helper()
	keys := map[string]bool{}
	must(t, record.ForEach(db.State(d).Engine.DB, nil, func(key, _ []byte) error {
		keys[string(key)] = true
		return nil
	}))
	return keys
}

// Nothing is left of a collection that is dropped, and nothing else goes; what reads it already goes on.
func TestDropCollection(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	kept := need(d.CreateCollection(ctx, "kept", dbkit.PairsSchema))(t)
	train(t, kept, dbkit.Pairs(60, synth.Config{Seed: 1}), db.TrainOptions{Options: fit.Options{Bits: 32}})
	before, items := allKeys(t, d), dbkit.AllItems(t, kept)

	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	put := dbkit.Pairs(80, synth.Config{Seed: 2})
	for i, it := range put {
		it.Fields = map[string]any{"year": int64(i), "title": "words"}
	}
	putAll(t, c, put)
	for range 2 { // so that there is a space that stands by
		dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16}})
	}
	need(c.Update(ctx, db.UpdateOptions{}))(t)
	putAll(t, c, put[:20]) // so that there are retractions
	must(t, d.Compact(ctx))
	kinds := map[byte]bool{}
	for key := range allKeys(t, d) {
		if !before[key] {
			kinds[key[0]] = true
		}
	}
	for _, kind := range []byte{codec.KindItem, codec.KindFieldRows, codec.KindFieldWords,
		codec.KindRetraction, codec.KindLessons,
		codec.KindCodes, codec.KindModel} {
		stopIf(t, !kinds[kind], "the collection has no keys of kind %x", kind)
	}
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	then := need(snap.Collection("main"))(t)
	q := db.Query{From: "image", To: "text", Vector: put[3].Vectors["image"], K: 100}
	want := need(c.Search(ctx, q))(t)
	runs := need(c.SearchRadius(ctx, q, 16))(t)
	defer runs.Close()

	errorIs(t, d.DropCollection(ctx, "nosuch"), db.ErrNotFound)
	must(t, d.DropCollection(ctx, "main"))
	gone := func(c *db.Collection) {
		t.Helper()
		b := d.NewBatch()
		errorsAre(t, db.ErrNotFound, map[string]error{
			"search":   errOf(c.Search(ctx, q)),
			"get":      errOf(c.Get(ctx, "k1")),
			"count":    errOf(c.Count(t.Context(), "")),
			"put":      errOf(c.Put(ctx, put[0])),
			"batch":    b.Put(c, put[0]),
			"delete":   errOf(c.Delete(ctx, "k1")),
			"where":    errOf(c.DeleteWhere(ctx, "NOT label = ''")),
			"train":    errOf(c.Train(ctx, db.TrainOptions{})),
			"update":   errOf(c.Update(ctx, db.UpdateOptions{})),
			"activate": c.Activate(ctx, 1),
			"drop":     d.DropCollection(ctx, "main"),
			"open":     errOf(d.Collection("main")),
			"space":    errOf(c.InSpace(1, 0)),
		})
	}
	gone(c)
	codes := 0
	for _, err := range then.Codes(ctx, "text") {
		must(t, err, "codes of a snapshot")
		codes++
	}
	failIf(t, codes != len(put), "%d codes in the snapshot, want %d", codes, len(put))
	fine(t, errOf(then.Evaluate(ctx,
		db.Evaluation{Queries: map[string][][]float32{"image": {put[3].Vectors["image"]}},
			Labels: [][]string{put[3].Labels}})))
	for key := range allKeys(t, d) {
		failIf(t, key[0] != codec.KindDatabase && !before[key], "key %x is left", key)
		delete(before, key)
	}
	failIf(t, len(before) > 0, "%d keys of another collection are gone", len(before))
	dbkit.EqualItems(t, items, dbkit.AllItems(t, kept))

	// A reader of the dropped collection goes on, also while another collection takes the name.
	other := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
	need(other.Put(ctx, &db.Item{Key: "k1", Code: []byte{1, 2}}))(t)
	must(t, d.Compact(ctx))
	if got, err := then.Search(ctx, q); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("in the snapshot: %v\n%s", err, cmp.Diff(want, got))
	}
	hits, err := dbkit.Collect(runs.Hits(ctx))
	failIf(t, err != nil || len(hits) != 80, "of a search that had begun: %d hits, %v", len(hits), err)
	errorIs(t, errOf(c.Put(ctx, put[0])), db.ErrNotFound)
	holds(t, other, 1)
	runs.Close()
	snap.Close()
	d, _ = reopen(t, d, "db", opts)
	it, err := dbkit.MustCollection(t, d, "main").Get(ctx, "k1")
	failIf(t, err != nil || it.CodeFrom != "given", "after reopening: %+v, %v", it, err)
	dbkit.EqualItems(t, items, dbkit.AllItems(t, dbkit.MustCollection(t, d, "kept")))
}

// A training of a collection that is dropped ends, whatever it is doing, and leaves nothing.
func TestDropCollectionEndsItsTraining(t *testing.T) {
	t.Parallel()
	for _, phase := range []string{"", "encode"} { // as it begins, and when its space is there
		d, c, _ := openPairs(t, -1, 200, synth.Config{})
		dropped := false
		_, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 32, Progress: func(now string, _,
			_ int64) {
			if dropped || phase != "" && now != phase {
				return
			}
			dropped = true
			fine(t, d.DropCollection(ctx, "main"))
			fine(t, errOf(d.CreateCollection(ctx, "main", db.Schema{Bits: 8})))
		}}})
		failIf(t, !errors.Is(err, db.ErrNotFound) || !dropped, "dropped at %q: %v", phase, err)
		for key := range allKeys(t, d) {
			failIf(t, key[0] > codec.KindName && key[4] != 2, "dropped at %q: key %x", phase, key)
		}
	}
}

// A collection whose codes are being loaded can be dropped.
func TestDropCollectionRightAfterOpening(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	for _, name := range []string{"a", "b"} {
		c := need(d.CreateCollection(ctx, name, db.Schema{Bits: 32}))(t)
		b := d.NewBatch()
		for i := range state.LoadAtOnce + 50 {
			must(t, b.Put(c, &db.Item{Key: fmt.Sprint(i),
				Code: []byte{byte(i), byte(i >> 8), byte(i >> 16), 7}}))
		}
		must(t, b.Commit(ctx))
	}
	d, _ = reopen(t, d, "db", opts)
	defer d.Close()
	must(t, d.DropCollection(ctx, "a"))
	must(t, d.WaitForIndex(ctx))
	b := dbkit.MustCollection(t, d, "b")
	need(b.Put(ctx, &db.Item{Key: "new", Code: []byte{1, 2, 3, 4}}))(t)
	holds(t, b, state.LoadAtOnce+51)
	names, err := d.Collections()
	diff := cmp.Diff([]string{"b"}, names)
	failIf(t, err != nil || diff != "", "%v, %v", err, diff)
}

// A commit pays for the collections that it changes, and not for all that there are.
func TestCommitsAmongManyCollections(t *testing.T) {
	const many = 4000
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
	defer func() { dbkit.MustClose(t, d) }()
	first := need(d.CreateCollection(ctx, "first", dbkit.PairsSchema))(t)
	n := 0
	// allocated returns how many bytes f allocates, on average.
	allocated := func(f func()) uint64 {
		const times = 50
		var before, after runtime.MemStats
		f()
		runtime.ReadMemStats(&before)
		for range times {
			f()
		}
		runtime.ReadMemStats(&after)
		return (after.TotalAlloc - before.TotalAlloc) / times
	}
	put := func() {
		n++
		need(first.Put(ctx, &db.Item{Key: fmt.Sprint(n % 8), Labels: []string{"a"}}))(t)
	}
	create := func() {
		n++
		need(d.CreateCollection(ctx, fmt.Sprint("c", n), dbkit.PairsSchema))(t)
	}
	putAlone, createAlone := allocated(put), allocated(create)
	for range many {
		create()
	}
	putAmong, createAmong := allocated(put), allocated(create)
	// A map of so many collections takes some 100,000 bytes.
	failIf(t, putAmong > putAlone+20_000, "a put allocates %d bytes, and %d among %d collections", putAlone,
		putAmong, many)
	failIf(t, createAmong > createAlone+20_000, "creating a collection allocates %d bytes, and %d among %d",
		createAlone, createAmong, many)
	t.Logf("put: %d bytes, then %d; create: %d, then %d", putAlone, putAmong, createAlone, createAmong)
}
