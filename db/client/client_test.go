package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/client"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// folder opens a new database.
func folder(t *testing.T) *db.DB {
	t.Helper()
	d, err := db.Open(filepath.Join(t.TempDir(), "db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// stores opens a folder as a place of backups.
func stores(_ context.Context, url string) (backup.Store, error) {
	return backup.Folder(url[len("file://"):])
}

// remote returns a database as a client of a server has it.
func remote(t *testing.T, d api.Database, opt serve.Options) *client.Database {
	t.Helper()
	s, err := serve.New(map[string]api.Database{"photos": d}, opt)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	c, err := client.Open(web.URL+"/photos", client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		web.Close()
		if err := s.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return c
}

// pair is a database in a folder, and the same kind of database behind a server.
func pair(t *testing.T) map[string]api.Database {
	return map[string]api.Database{
		"folder": api.Folder(folder(t), stores),
		"server": remote(t, api.Folder(folder(t), stores), serve.Options{}),
	}
}

var schema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 16}, {Name: "text", Dim: 8, Sparse: true}},
	Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "price", Type: db.Float},
		{Name: "title", Type: db.String}, {Name: "sold", Type: db.Bool}, {Name: "at", Type: db.Time}},
}

// items are pairs of vectors with labels.
func items(n int) (all []*db.Item) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		class := i % 4
		it := &db.Item{Key: fmt.Sprintf("key/%d:.%%é", i), Labels: []string{fmt.Sprint("class ", class)},
			Vectors: map[string][]float32{"image": make([]float32, 16)},
			Sparse: map[string]db.Sparse{"text": {Index: []uint32{uint32(class), 7}, Value: []float32{2,
				rng.Float32() + .1}}},
			Fields: map[string]any{"year": int64(1990 + i%30), "price": float64(i) / 3,
				"title": fmt.Sprint("<b>", i),
				"sold":  i%2 == 0, "at": time.Date(2020, 1, 1+i, 0, 0, 0, 0, time.UTC)}}
		for j := range it.Vectors["image"] {
			it.Vectors["image"][j] = rng.Float32() - .5
		}
		it.Vectors["image"][class] += 2
		if i%3 == 0 {
			it.Payload = []byte{0, 1, 255}
		}
		all = append(all, it)
	}
	return all
}

// asJSON returns values for a comparison. Times and speeds differ.
func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A server answers as the folder does: the same calls give the same results and the same errors.
func TestServerIsAFolder(t *testing.T) {
	logs := map[string][]string{}
	for name, d := range pair(t) {
		t.Run(name, func(t *testing.T) { logs[name] = exercise(t, d) })
	}
	a, b := logs["folder"], logs["server"]
	if len(a) == 0 || len(a) != len(b) {
		t.Fatalf("%d and %d results", len(a), len(b))
	}
	for i := range a {
		if a[i] != b[i] {
			t.Errorf("folder: %.600s\nserver: %.600s", a[i], b[i])
		}
	}
}

// exercise calls every method, and returns what they gave.
func exercise(t *testing.T, d api.Database) (log []string) {
	ctx := t.Context()
	say := func(what string, v any, err error) {
		text := "nil"
		if err != nil {
			text = err.Error()
			for _, e := range []error{db.ErrNotFound, db.ErrExists, db.ErrInvalid, db.ErrConflict,
				db.ErrNoModel,
				db.ErrBusy, errors.ErrUnsupported} {
				if errors.Is(err, e) {
					text += " is " + e.Error()
				}
			}
			var where *db.WhereError
			var item *db.ItemError
			var dim *db.DimensionError
			if errors.As(err, &where) {
				text += fmt.Sprint(" where ", where.Column, where.Reason)
			}
			if errors.As(err, &item) {
				text += " item " + item.Key
			}
			if errors.As(err, &dim) {
				text += fmt.Sprint(" dimension ", *dim)
			}
			v = nil
		}
		log = append(log, what+": "+asJSON(t, v)+", "+text)
	}
	_, err := d.Collection(ctx, "main")
	say("no collection", nil, err)
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	_, err = d.CreateCollection(ctx, "main", schema)
	say("collection exists", nil, err)
	_, err = d.CreateCollection(ctx, "a/b", schema)
	say("bad name", nil, err)
	_, err = d.CreateCollection(ctx, "odd:name.", db.Schema{Bits: 16})
	say("odd name", nil, err)
	names, err := d.Collections(ctx)
	say("names", names, err)
	s, err := c.Schema(ctx)
	say("schema", s, err)
	say("id", c.ID(), nil)

	all := items(60)
	for _, it := range all[:20] {
		key, err := c.Put(ctx, it)
		say("put", key, err)
	}
	b := d.NewBatch()
	for _, it := range all[20:] {
		if err := b.Put(c, it); err != nil {
			t.Fatal(err)
		}
	}
	say("mark", nil, b.Mark("my/mark: .", []byte{1, 0, 2}))
	say("commit", nil, b.Commit(ctx))
	say("keys", b.Keys(), nil)
	say("commit again", nil, b.Commit(ctx))
	mark, err := d.Mark(ctx, "my/mark: .")
	say("mark", mark, err)
	_, err = d.Mark(ctx, "no mark")
	say("no mark", nil, err)
	key, err := c.Put(ctx, &db.Item{Labels: []string{"class 0"}})
	say("number", key, err)
	_, err = c.Put(ctx, &db.Item{Key: "bad", Vectors: map[string][]float32{"image": {1}}})
	say("dimension", nil, err)
	_, err = c.Put(ctx, &db.Item{Key: "bad", Fields: map[string]any{"year": "x"}})
	say("field", nil, err)
	_, err = c.Put(ctx, nil)
	say("no item", nil, err)
	say("expect", nil, c.PutIf(ctx, all[3], nil))
	old, err := c.Get(ctx, all[3].Key)
	say("get", old, err)
	typesOf := func(it *db.Item) string { return fmt.Sprintf("%#v", it.Fields) }
	first, err := c.Get(ctx, all[0].Key) // whose price is 0
	say("types", typesOf(first), err)
	for it, err := range c.Items(ctx, "has(image)") {
		say("types of an item", typesOf(it), err)
	}
	hits, err := c.Search(ctx, db.Query{Key: all[0].Key, From: "image", K: 3, Include: db.IncludeFields})
	say("hits", nil, err)
	for _, h := range hits.Hits {
		say("types of a hit", typesOf(h.Item), nil)
	}
	changed := *old
	changed.Fields = map[string]any{"year": int64(1), "price": 2.0}
	say("put if", nil, c.PutIf(ctx, &changed, old))
	say("put if again", nil, c.PutIf(ctx, &changed, old))
	_, err = c.Merge(ctx, &db.Item{Key: all[4].Key, Fields: map[string]any{"title": "merged"}})
	say("merge", nil, err)
	it, err := c.Get(ctx, all[4].Key)
	say("merged", it, err)
	_, err = c.Get(ctx, "nobody")
	say("no such item", nil, err)
	n, err := c.Delete(ctx, all[5].Key, "nobody")
	say("delete", n, err)
	n, err = c.DeleteWhere(ctx, "year = ? AND sold = ?", 1996, true)
	say("delete where", n, err)
	n, err = c.Count(ctx, "year IN (?) AND at < ?", []int{1990, 1991, 1992}, time.Date(2020, 2, 20, 0, 0, 0,
		0, time.UTC))
	say("count", n, err)
	n, err = c.Count(ctx, "price >= ? OR title = ?", 5, "<b>1")
	say("count by numbers", n, err)
	_, err = c.Count(ctx, "year = ")
	say("bad where", nil, err)
	var seen []*db.Item
	for it, err := range c.Items(ctx, "year < ?", 1995) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, it)
	}
	say("items", seen, nil)
	for _, err := range c.Items(ctx, "yeer = 1") {
		say("bad items", nil, err)
	}
	seen = nil
	for it, err := range c.Sample(ctx, 3, 7, "") {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, it)
	}
	say("sample", seen, nil)
	var keys []string
	for key, err := range c.Keys(ctx, "key/1") {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	say("keys", keys, nil)
	labels, err := c.Labels(ctx)
	say("labels", labels, err)
	f, err := c.Facets(ctx, db.FacetQuery{By: "label", Limit: 2})
	say("facets", f, err)
	for _, radius := range []int{0, 2, -1} {
		near := db.Likeness{Radius: radius, Where: "label = ?", Args: []any{"class 1"}}
		var pairs []db.Pair
		for p, err := range c.Pairs(ctx, db.PairQuery{Likeness: near}) {
			say("pair", p, err)
			pairs = append(pairs, p)
		}
		if len(pairs) > 1 {
			after := db.PairQuery{Likeness: near, After: pairs[len(pairs)-2].Cursor}
			for p, err := range c.Pairs(ctx, after) {
				say("last pair", p, err)
			}
		}
		for g, err := range c.Groups(ctx, db.GroupQuery{Likeness: near, Keep: "newest", Connected: true}) {
			say("group", g, err)
		}
	}
	for _, err := range c.Pairs(ctx, db.PairQuery{Against: "nobody"}) {
		say("against nobody", nil, err)
	}
	say("rename", nil, c.RenameLabel(ctx, "class 1", "first"))
	say("rename again", nil, c.RenameLabel(ctx, "class 1", "first"))
	say("alter", nil, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "more", Type: db.String}}}))
	_, err = c.Put(ctx, &db.Item{Key: "more", Fields: map[string]any{"more": "yes"}})
	say("altered", nil, err)

	q := db.Query{From: "image", Vector: all[0].Vectors["image"], K: 5,
		Include: db.IncludeLabels | db.IncludeFields | db.IncludeCursor, Facets: []string{"label"}}
	r, err := c.Search(ctx, q)
	say("search by vectors", r, err)
	_, err = c.SearchRadius(ctx, q, 3)
	say("radius without codes", nil, err)
	_, err = c.Spaces(ctx)
	say("spaces", nil, err)
	var heard int
	tr, err := c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 20, Seed: 3,
		Map: map[string]model.MapKind{"image": model.MapRBF}, Fusion: fit.Fusion{Rule: fit.FusionSum},
		Progress: func(string, int64, int64) { heard++ }}})
	if err != nil {
		t.Fatal(err)
	}
	if heard == 0 {
		t.Error("a training told nothing of its progress")
	}
	say("train", []any{tr.Space, tr.Bits, tr.TrainItems, tr.Labels}, err)
	r, err = c.Search(ctx, q)
	say("search", r, err)
	q.After = r.Next
	r, err = c.Search(ctx, q)
	say("next page", r, err)
	q.After = ""
	r, err = c.SearchRadius(ctx, db.Query{Key: all[0].Key, From: "text", ExcludeSelf: true,
		Rerank: db.RerankProjection}, 4)
	say("radius", r, err)
	explained := q
	explained.Include |= db.IncludeExplain
	r, err = c.Search(ctx, explained)
	plan := r.Explain.Plan
	r.Explain = nil // times differ
	say("explain", []any{r, plan}, err)
	code, err := c.EncodeQuery(ctx, db.Query{From: "image", Vector: q.Vector})
	say("encode query", code, err)
	code, err = c.Encode(ctx, &db.Item{Sparse: all[1].Sparse})
	say("encode", code, err)
	r, err = c.Search(ctx, db.Query{Code: code, Where: "label = ?", Args: []any{"first"}})
	say("search by code", r, err)
	ev, err := c.Evaluate(ctx, db.Evaluation{Queries: map[string][][]float32{"image": {q.Vector}},
		Labels: [][]string{{"class 0"}}})
	say("evaluate", ev, err)
	_, err = c.Put(ctx, &db.Item{Key: "late", Vectors: all[0].Vectors, Labels: []string{"class 0"}})
	say("put late", nil, err)
	u, err := c.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
	if err == nil {
		u.Seconds = 0
	}
	say("update", u, err)
	re, err := c.Reindex(ctx, db.ReindexOptions{})
	if err == nil {
		re.Seconds = 0
	}
	say("reindex", re, err)
	in, err := c.InSpace(ctx, 2, 0)
	say("in space", nil, err)
	r, err = in.Search(ctx, q)
	say("search in space", r, err)
	_, err = c.InSpace(ctx, 9, 0)
	say("no space", nil, err)
	say("activate", nil, c.Activate(ctx, 2))
	space, err := c.Rollback(ctx)
	say("rollback", space, err)
	_, err = c.RestoreRevision(ctx, 1, 1)
	say("restore revision", nil, err)
	say("drop space", nil, c.DropSpace(ctx, 2))
	x, err := c.IndexVectors(ctx, db.IndexOptions{Modality: "image", Recall: .9, Seed: 1})
	say("index", x != nil && x.Modality == "image", err)
	st, err := c.Stats(ctx)
	say("indexes", len(st.VectorIndexes), err)
	say("drop index", nil, c.DropVectorIndex(ctx, "image"))
	say("drop index again", nil, c.DropVectorIndex(ctx, "image"))
	var m bytes.Buffer
	say("export model", nil, c.ExportModel(ctx, &m))
	other, err := d.CreateCollection(ctx, "other", schema)
	say("other", nil, err)
	t2, err := other.ImportModel(ctx, &m, db.ImportModelOptions{Activate: true})
	say("import model", err == nil && t2.Space == 1, err)
	_, err = other.ImportModel(ctx, bytes.NewReader([]byte("no model")), db.ImportModelOptions{})
	say("no model", nil, err)
	st, err = c.Stats(ctx)
	say("stats", []any{st.Items, st.Bits, st.Labels, st.Taught}, err)
	st, err = c.Stats(ctx, db.DiskSize, db.MeasuredDrift)
	say("disk and drift", []any{st.DiskBytes >= 0, len(st.Drift)}, err)
	say("loaded", nil, d.WaitForIndex(ctx))
	ds, err := d.Stats(ctx)
	say("database", []any{ds.Items, len(ds.Collections)}, err)
	var found []report.Finding
	v, err := d.Verify(ctx, db.VerifyOptions{Deep: true}, func(f report.Finding) error {
		found = append(found, f)
		return nil
	})
	say("verify", []any{v != nil && v.Findings == 0, found}, err)
	say("compact", nil, d.Compact(ctx))
	man, err := d.Backup(ctx, "file://"+t.TempDir(), db.BackupOptions{})
	say("backup", man != nil && man.ID != "", err)
	say("drop", nil, d.DropCollection(ctx, "other"))
	say("drop again", nil, d.DropCollection(ctx, "other"))
	say("scan dropped", nil, func() error { _, err := other.Count(ctx, ""); return err }())
	return log
}

// tempDir returns a folder for the benchmarks, which share a database.
func tempDir() (string, error) { return os.MkdirTemp("", "fddhdb-bench-") }
