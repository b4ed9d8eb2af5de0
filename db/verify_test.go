package db

import (
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model"
)

// verified is a small database with all sorts of records: two learned collections, one of
// them with sparse vectors and codes for each target, and one of given codes.
func verified(t testing.TB, opts *Options) *DB {
	t.Helper()
	d := mustOpen(t, t.TempDir(), opts)
	t.Cleanup(func() { _ = d.Close() })
	schema := pairsSchema
	schema.Fields = []Field{{"year", Int, true}, {"title", String, true}, {"price", Float, true}, {"new", Bool, true}, {"note", String, false}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := pairs(120, synth.Config{Missing: .2, Seed: 2})
	for i, it := range items {
		it.Payload = []byte("payload")
		if i%7 > 0 {
			it.Fields = map[string]any{"year": i - 60, "title": fmt.Sprintf("title %d", i%5), "price": float64(i) / 4, "new": i%2 == 0, "note": "x"}
		}
		if i%9 == 0 {
			it.Labels = nil
		}
	}
	putAll(t, c, items[:60])
	checkSound(t, d, "before training")
	opt := TrainOptions{Options: model.Options{Bits: 32, Anchors: 20}}
	mustTrain(t, c, opt)
	checkSound(t, d, "trained")
	putAll(t, c, items[60:90])
	checkSound(t, d, "items have come")
	mustUpdate(t, c, UpdateOptions{})
	putAll(t, c, items[90:])
	putAll(t, c, items[:10])
	if _, err := c.Delete(ctx, "k11", "k12", "k61", "k95"); err != nil {
		t.Fatal(err)
	}
	checkSound(t, d, "updated, and items have come and gone")
	// The first model does not know what has been added, the second one does.
	err = c.Alter(ctx, Alteration{AddModalities: []Modality{{Name: "audio", Dim: 3}}, AddFields: []Field{{"place", String, true}}})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	for i := range 40 {
		added := &Item{Key: fmt.Sprint("k", 14+2*i), Fields: map[string]any{"place": fmt.Sprint("place ", i%3)}}
		if i%4 > 0 {
			added.Vectors = map[string][]float32{"audio": {float32(i % 5), float32(i), 1}}
		}
		b.Merge(c, added)
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	checkSound(t, d, "altered")
	mustTrain(t, c, TrainOptions{Options: model.Options{Bits: 24, Anchors: 15, Views: model.ViewsTarget}})
	putAll(t, c, items[20:30])
	if _, err := c.Delete(ctx, "k33"); err != nil {
		t.Fatal(err)
	}
	putAll(t, c, []*Item{{Key: "bare"}, {Key: "odd", Labels: []string{"unseen"}, Vectors: items[0].Vectors}})
	checkSound(t, d, "several spaces")
	mustUpdate(t, c, UpdateOptions{Teacher: TeacherSelf})
	checkSound(t, d, "updated by itself")
	codes, err := d.CreateCollection(ctx, "codes", Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	var given []*Item
	for i := range 40 {
		given = append(given, &Item{Key: fmt.Sprint(i), Code: []byte{byte(i % 7), byte(i % 3)}})
	}
	putAll(t, codes, given)
	if _, err := codes.Delete(ctx, "3", "21", "24"); err != nil {
		t.Fatal(err)
	}
	return d
}

// Nothing is found where nothing is wrong, whatever a database has gone through.
func TestVerifyFindsNothing(t *testing.T) {
	longTest(t)
	d := verified(t, nil)
	v := checkSound(t, d, "all of it")
	if v.Items != 120-5+2+37 || v.CodesChecked == 0 || v.Records == 0 {
		t.Errorf("%+v", v)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	checkSound(t, d, "compacted")
	dir := State(d).Engine.Dir
	mustClose(t, d)
	d = mustOpen(t, dir, nil)
	defer d.Close()
	checkSound(t, d, "opened again")
}
