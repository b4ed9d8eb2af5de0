package openapi

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/client"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/db/serve"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// What the Go client sends is as the document says, too.
func TestOwnClient(t *testing.T) {
	c := serving(t, serve.Options{})
	d, err := client.Open(c.url+"/photos", client.Options{Transport: c, Patience: -1})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(err, kind error) {
		t.Helper()
		if !errors.Is(err, kind) {
			t.Errorf("%v is no %v", err, kind)
		}
	}
	m, err := d.CreateCollection(ctx, "main", db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 8, Metric: db.Cosine},
			{Name: "text", Dim: 16, Sparse: true}},
		Fields:   []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "at", Type: db.Time}},
		Encoders: []db.Encoder{{Modality: "text", Input: "text", Command: []string{"cat"}}}})
	ok(err)
	ok(m.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "price", Type: db.Float}}}))
	ok(m.Alter(ctx, db.Alteration{IndexFields: []string{"price"}}))
	itemOf := func(i int) *db.Item {
		x, _ := vector(i)
		return &db.Item{Key: string(rune('a'+i%26)) + "/:.é", Vectors: map[string][]float32{"image": x},
			Sparse: map[string]db.Sparse{"text": {}}, Labels: []string{string(rune('A' + i%4))},
			Fields:  map[string]any{"year": int64(i), "price": float64(i), "at": time.Unix(int64(i), 1000)},
			Payload: []byte{1}}
	}
	for i := range 26 {
		_, err := m.Put(ctx, itemOf(i))
		ok(err)
	}
	_, err = m.Put(ctx, &db.Item{Labels: []string{"A"}})
	ok(err)
	_, err = m.Merge(ctx, &db.Item{Key: "a/:.é", Labels: []string{}})
	ok(err)
	old, err := m.Get(ctx, "b/:.é")
	ok(err)
	ok(m.PutIf(ctx, old, old))
	ok(m.PutIf(ctx, &db.Item{Key: "new"}, nil))
	refused(m.PutIf(ctx, &db.Item{Key: "new"}, nil), db.ErrConflict)
	b := d.NewBatch()
	ok(b.RegisterLabels(m, []string{"more"}))
	ok(b.Mark("a/b", []byte{1}))
	ok(b.Mark("none", nil))
	ok(b.Delete(m, "new"))
	ok(b.Expect(m, old.Key, old))
	ok(b.Commit(ctx))
	_, err = d.Mark(ctx, "a/b")
	ok(err)
	_, err = m.Delete(ctx, "nobody")
	ok(err)
	_, err = m.DeleteWhere(ctx, "year IN (?) OR at < ? AND price = ?", []int{100, 101}, time.Unix(0, 0), nil)
	refused(err, db.ErrInvalid)
	_, err = m.DeleteWhere(ctx, "year IN (?) OR at < ?", []int{100, 101}, time.Unix(0, 0))
	ok(err)
	for _, err := range m.Items(ctx, "year < ?", 10) {
		ok(err)
	}
	for _, err := range m.Sample(ctx, 3, 4, "price > ?", 1.5) {
		ok(err)
	}
	for _, err := range m.Keys(ctx, "a/") {
		ok(err)
	}
	_, err = m.Count(ctx, "label = ?", "A")
	ok(err)
	_, err = m.Labels(ctx)
	ok(err)
	_, err = m.Facets(ctx, db.FacetQuery{By: "year", Where: "year < ?", Args: []any{3}, Limit: 2})
	ok(err)
	ok(m.RenameLabel(ctx, "A", "first"))
	x, _ := vector(1)
	q := db.Query{From: "image", To: "text", Vector: x, K: 3, Where: "year > ?", Args: []any{int64(1)},
		Include: db.IncludeLabels | db.IncludeVectors | db.IncludeCursor, Facets: []string{"label"}}
	_, err = m.Search(ctx, q)
	ok(err)
	_, err = m.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10, Seed: 1 << 40,
		Map:    map[string]model.MapKind{"image": model.MapRBF},
		Fusion: fit.Fusion{Rule: fit.FusionSum}}})
	ok(err)
	q.Rerank, q.MinSimilarity = db.RerankProjection, -.9
	r, err := m.Search(ctx, q)
	ok(err)
	q.After = r.Next
	_, err = m.Search(ctx, q)
	ok(err)
	_, err = m.SearchRadius(ctx, db.Query{Key: old.Key, From: "image", ExcludeSelf: true,
		Rerank: db.RerankAsymmetric}, 5)
	ok(err)
	_, err = m.SearchRadius(ctx, db.Query{From: "text", Sparse: &db.Sparse{Index: []uint32{1},
		Value: []float32{2}}, Include: db.IncludeExplain | db.IncludeDistances}, 3)
	ok(err)
	code, err := m.EncodeQuery(ctx, db.Query{From: "image", Vector: x})
	ok(err)
	_, err = m.Encode(ctx, itemOf(2))
	ok(err)
	_, err = m.Search(ctx, db.Query{Code: code})
	ok(err)
	_, err = m.Evaluate(ctx, db.Evaluation{Queries: map[string][][]float32{"image": {x}},
		Sparse: map[string][]db.Sparse{"text": {{Index: []uint32{1}, Value: []float32{2}}}},
		Labels: [][]string{{"B"}}, Where: "year > ?", Args: []any{3}})
	ok(err)
	_, err = m.Put(ctx, itemOf(27))
	ok(err)
	_, err = m.Update(ctx, db.UpdateOptions{Teacher: db.TeacherLabels})
	ok(err)
	_, err = m.Reindex(ctx, db.ReindexOptions{Activate: true})
	ok(err)
	in, err := m.InSpace(ctx, 1, 1)
	ok(err)
	_, err = in.Search(ctx, db.Query{From: "image", Vector: x})
	ok(err)
	_, err = m.Spaces(ctx)
	ok(err)
	ok(m.Activate(ctx, 1))
	_, err = m.Rollback(ctx)
	ok(err)
	_, err = m.RestoreRevision(ctx, 1, 1)
	ok(err)
	ok(m.DropSpace(ctx, 1))
	_, err = m.IndexVectors(ctx, db.IndexOptions{Modality: "image", Recall: .9})
	ok(err)
	ok(m.DropVectorIndex(ctx, "image"))
	var exported bytes.Buffer
	ok(m.ExportModel(ctx, &exported))
	schema, err := m.Schema(ctx)
	ok(err)
	other, err := d.CreateCollection(ctx, "a.b-c", schema)
	ok(err)
	_, err = other.ImportModel(ctx, &exported, db.ImportModelOptions{Activate: true})
	ok(err)
	_, err = m.Stats(ctx)
	ok(err)
	_, err = m.Stats(ctx, db.DiskSize, db.MeasuredDrift)
	ok(err)
	_, err = d.Stats(ctx)
	ok(err)
	ok(d.WaitForIndex(ctx))
	ok(d.Compact(ctx))
	_, err = d.Verify(ctx, db.VerifyOptions{Deep: true}, func(report.Finding) error { return nil })
	ok(err)
	_, err = d.Backup(ctx, "file://"+t.TempDir(), db.BackupOptions{Collection: "main"})
	ok(err)
	_, err = d.Collections(ctx)
	ok(err)
	ok(d.DropCollection(ctx, "a.b-c"))
	ok(d.Close())
}
