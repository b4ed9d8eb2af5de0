package db_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

// indexOnlyOf makes an index-only copy of a database, and opens it.
func indexOnlyOf(t testing.TB, d *db.DB, opts *db.Options) *db.DB {
	t.Helper()
	must(t, d.Checkpoint(ctx, "index-only", db.CheckpointOptions{IndexOnly: true}))
	is := dbkit.MustOpen(t, "index-only", opts)
	t.Cleanup(func() { _ = is.Close() })
	return is
}

// What an index-only collection lacks it says it lacks, what would change items is
// refused, and spaces can be changed as ever.
func TestIndexOnlyCollection(t *testing.T) {
	dbkit.LongTest(t)
	var log strings.Builder
	opts := &db.Options{
		FS: vfs.NewMem(), UpdateItems: 1, UpdateInterval: time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	d := manyKinds(t, &db.Options{FS: opts.FS})
	is := indexOnlyOf(t, d, opts)
	c, was := dbkit.MustCollection(t, is, "main"), dbkit.MustCollection(t, d, "main")
	items, full := dbkit.AllItems(t, c), dbkit.AllItems(t, was)
	b := is.NewBatch()
	errorsAre(t, db.ErrReadOnly, map[string]error{
		"put":      errOf(c.Put(ctx, full[0])),
		"merge":    errOf(c.Merge(ctx, &db.Item{Key: "k1", Payload: []byte("x")})),
		"delete":   errOf(c.Delete(ctx, "k1")),
		"where":    errOf(c.DeleteWhere(ctx, "label = 'class1'")),
		"batch":    b.Put(c, full[0]),
		"labels":   is.NewBatch().RegisterLabels(c, []string{"new"}),
		"alter":    c.Alter(ctx, db.Alteration{AddFields: []db.Field{place}}),
		"train":    errOf(c.Train(ctx, db.TrainOptions{})),
		"update":   errOf(c.Update(ctx, db.UpdateOptions{})),
		"reindex":  errOf(c.Reindex(ctx, db.ReindexOptions{})),
		"restore":  errOf(c.RestoreRevision(ctx, 0, 1)),
		"commit":   b.Commit(ctx),
		"in space": errOf(mustInSpace(t, c, 1).Update(ctx, db.UpdateOptions{})),
	}, "index-only", "fddhdb: ")
	vectors := db.Query{From: "image", To: "text", Vector: full[0].Vectors["image"], Recall: 1}
	errorsAre(t, db.ErrInvalid, map[string]error{
		"recall": errOf(c.Search(ctx, vectors)),
		"created": errOf(is.CreateCollection(ctx, "other",
			db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 3}}, IndexOnly: true})),
	}, "index-only")
	schema := need(c.Schema())(t)
	for i, it := range items {
		var has []string
		for _, m := range schema.Modalities {
			if full[i].Vectors[m.Name] != nil {
				has = append(has, m.Name)
			}
		}
		failIf(t, it.Vectors != nil || it.Sparse != nil || cmp.Diff(has, it.Modalities) != "" ||
			full[i].Modalities != nil, "item %d: %+v", i, it)
	}

	// A query by key has no features to start from, and starts from the code.
	byCode := need(was.Search(ctx, db.Query{Key: "k5", To: "text", K: 9}))(t)
	byKey, err := c.Search(ctx, db.Query{Key: "k5", From: "image", To: "text", K: 9})
	failIf(t, err != nil || !oracle.SameHits(byCode.Hits, byKey.Hits), "by key: %+v, %v", byKey, err)
	errorIs(t, errOf(c.Search(ctx, db.Query{Key: "k5", From: "sound", To: "text"})), db.ErrInvalid)
	// Evaluation and encoding take the vectors that they are given.
	e := db.Evaluation{Queries: map[string][][]float32{"image": {vectors.Vector}},
		Labels: [][]string{{"class1"}}}
	want := need(was.Evaluate(ctx, e))(t)
	if got, err := c.Evaluate(ctx, e); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("%v, %s", err, cmp.Diff(want, got))
	}
	code, z := need2(was.Encode(full[0]))(t)
	if code2, z2, err := c.Encode(full[0]); err != nil || cmp.Diff([]any{code, z}, []any{code2, z2}) != "" {
		t.Errorf("encode: %x, %v", code2, err)
	}
	s, err := c.Stats()
	failIf(t, err != nil || !s.IndexOnly || s.Taught != 0 || s.Pending != 0 || s.Modalities[0].Items == 0,
		"stats %+v, %v", s, err)

	// Spaces: each is complete, and nothing comes that would have to be coded.
	spaces, err := c.Spaces(ctx)
	stopIf(t, err != nil || len(spaces) != 2 || spaces[0].StatisticsBytes != 0, "%+v, %v", spaces, err)
	must(t, c.Activate(ctx, 1))
	gives(t, db.Space(2))(c.Rollback(ctx))
	must(t, c.PinRevision(ctx, 2, 1, true))
	dbkit.CheckSound(t, is, "spaces changed")
	must(t, c.DropSpace(ctx, 1))
	must(t, is.DropCollection(ctx, "mainly-news"))
	// Others are written to, of given codes too, and what has gone can be cleared away.
	putAll(t, dbkit.MustCollection(t, is, "codes"), []*db.Item{{Key: "x", Code: []byte{1, 2}}})
	other := need(is.CreateCollection(ctx, "other", dbkit.PairsSchema))(t)
	putAll(t, other, dbkit.Pairs(60, synth.Config{}))
	dbkit.MustTrain(t, other, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}})
	must(t, is.Compact(ctx))
	dbkit.CheckSound(t, is, "dropped")
	dbkit.MustClose(t, is)
	is = dbkit.MustOpen(t, "index-only", opts)
	defer is.Close()
	equal(t, items, dbkit.AllItems(t, dbkit.MustCollection(t, is, "main")),
		cmp.Transformer("", func(it db.Item) any {
			return []any{it.Key, it.Labels, it.Fields, it.Payload, it.Modalities}
		}))
	dbkit.CheckSound(t, is, "opened again")
	dbkit.MustClose(t, is)
	failIf(t, log.Len() > 0, "in the background: %s", &log)
}

func mustInSpace(t testing.TB, c *db.Collection, space db.Space) *db.Collection {
	t.Helper()
	in := need(c.InSpace(space, 0))(t)
	return in
}

// A program that knows versions of descriptors up to 0 does not open an index-only
// collection, and this one none of a version to come.
func TestIndexOnlyDescriptor(t *testing.T) {
	fsys := vfs.NewMem()
	d, _ := openForCheckpoints(t, fsys)
	defer d.Close()
	is := indexOnlyOf(t, d, &db.Options{FS: fsys})
	b := need(record.Get(db.State(is).Engine.DB, codec.CollectionKey(codec.KindCollection, 1)))(t)
	var stored map[string]any
	err := json.Unmarshal(b, &stored)
	stopIf(t, err != nil || stored["index_only"] != true, "%s, %v", b, err)
	for text, ok := range map[string]bool{
		`{"id":1,"name":"a","bits":8}`:                                                                 true,
		`{"id":1,"name":"a","modalities":[{"name":"x","dim":1}]}`:                                      true,
		`{"id":1,"name":"a","modalities":[{"name":"x","dim":1}],"index_only":true}`:                    true,
		`{"id":1,"name":"a","bits":8,"index_only":true}`:                                               false,
		`{"id":1,"name":"a","bits":8,"modalities":[{"name":"x","dim":1}],"index_only":true,"more":{}}`: false,
	} {
		_, err := record.DecodeDescriptor([]byte(text))
		failIf(t, (err == nil) != ok, "%s: %v", text, err)
	}
}

// Verify finds in an index-only collection what should not be there, and codes that are
// not those of their labels.
func TestVerifyIndexOnly(t *testing.T) {
	dbkit.LongTest(t)
	fsys := vfs.NewMem()
	d := manyKinds(t, &db.Options{FS: fsys})
	is := indexOnlyOf(t, d, &db.Options{FS: fsys})
	v := dbkit.CheckSound(t, is, "as it is")
	s := need(dbkit.MustCollection(t, is, "main").Stats())(t)
	whole := dbkit.CheckSound(t, d, "the original")
	failIf(t, v.CodesUnchecked == 0 || v.CodesChecked == 0 || v.CodesChecked+
		v.CodesUnchecked != whole.CodesChecked+whole.CodesUnchecked, "%+v, of the whole %+v; %+v", v, whole,
		s)
	copied := func(key []byte) []byte {
		b, err := record.Get(db.State(d).Engine.DB, key)
		stopIf(t, err != nil || b == nil, "%x: %v", key, err)
		return b
	}
	first := func(prefix []byte) (key []byte) {
		errorIs(t, record.ForEach(db.State(d).Engine.DB, prefix, func(k, _ []byte) error {
			key = append([]byte{}, k...)
			return record.ErrStopped
		}), record.ErrStopped)
		return key
	}
	counters := need(codec.DecodeCounters(copied(codec.CollectionKey(codec.KindCounters, 1))))(t)
	labelled := dbkit.AllItems(t, dbkit.MustCollection(t, d, "main"))[1]
	stopIf(t, labelled.CodeFrom != "labels", "%+v", labelled)
	for what, c := range map[string]struct {
		key, value []byte
		says       string
	}{
		"features":    {codec.FeatureKey(1, 5, 0), []byte{1}, "index-only"},
		"statistics":  {codec.ChunkKey(codec.KindStatistics, 1, 2, 0), []byte{1}, "there is a chunk 0 of 0"},
		"lessons":     {first(codec.NumberKey(codec.KindLessons, 1, 2)), nil, "index-only"},
		"retractions": {codec.RetractionKey(1, 2, 0), []byte{1}, "index-only"},
		"pending":     {codec.OnlineRowsKey(1, 2, codec.SetPending, 0), []byte{1, 0}, "index-only"},
		"counters":    {codec.CollectionKey(codec.KindCounters, 1), counters.Append(nil), "index-only"},
		"labels": {codec.NumberKey(codec.KindItem, 1, 1), mustRecord(t, nil),
			"of labels, and it has none"},
		"code": {codec.NumberKey(codec.KindItem, 1, 1), mustRecord(t, []uint32{0, 1, 2, 3}),
			"it is not that of its labels"},
	} {
		before, err := record.Get(db.State(is).Engine.DB, c.key)
		must(t, err)
		if c.value == nil {
			c.value = copied(c.key)
		}
		must(t, db.State(is).Engine.DB.Set(c.key, c.value, nil))
		all, _ := dbkit.Findings(t, is, db.VerifyOptions{Deep: true})
		found := false
		for _, f := range all {
			found = found || strings.Contains(f.Problem, c.says) && f.Collection == "main"
		}
		failIf(t, !found, "%s: %v", what, all)
		if before == nil {
			err = db.State(is).Engine.DB.Delete(c.key, nil)
		} else {
			err = db.State(is).Engine.DB.Set(c.key, before, pebble.Sync)
		}
		must(t, err)
	}
	dbkit.CheckSound(t, is, "as it was")
}

func mustRecord(t testing.TB, labels []uint32) []byte {
	t.Helper()
	b := need((&codec.ItemRecord{Labels: labels}).Append(nil))(t)
	return b
}

// Rows that wait for another code, as a label of theirs has just got a direction, keep the
// one that they have: nothing in the background gives them another.
func TestIndexOnlyWhileLabelsGrow(t *testing.T) {
	dbkit.LongTest(t)
	var log strings.Builder
	fsys := vfs.NewMem()
	d, items := openForCheckpoints(t, fsys)
	defer d.Close()
	c := dbkit.MustCollection(t, d, "main")
	for _, it := range items[:20] {
		it.Labels = []string{"grown"}
	}
	putAll(t, c, items[:20])
	must(t, taught(c).GrowLabels(ctx, 0, new(report.Update)))
	before := sayings(t, c, items, false)
	is := indexOnlyOf(t, d, &db.Options{FS: fsys,
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	only := dbkit.MustCollection(t, is, "main")
	spaces, err := only.Spaces(ctx)
	stopIf(t, err != nil || spaces[0].Recode != 20, "%+v, %v", spaces, err)
	dbkit.CheckSound(t, is, "as it is")
	sameSayings(t, before, sayings(t, only, items, false))
	dbkit.MustClose(t, is)
	failIf(t, log.Len() > 0, "in the background: %s", &log)
}
