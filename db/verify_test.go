package db_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// verified is a small database with all sorts of records: two learned collections, one of
// them with sparse vectors and codes for each target, and one of given codes.
func verified(t testing.TB, opts *db.Options) *db.DB {
	t.Helper()
	d := dbkit.MustOpen(t, t.TempDir(), opts)
	t.Cleanup(func() { _ = d.Close() })
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{"year", db.Int, true}, {"title", db.String, true}, {"price", db.Float, true}, {"new", db.Bool, true}, {"note", db.String, false}, {"at", db.Time, true}}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(120, synth.Config{Missing: .2, Seed: 2})
	for i, it := range items {
		it.Payload = []byte("payload")
		if i%7 > 0 {
			it.Fields = map[string]any{"year": i - 60, "title": fmt.Sprintf("title %d", i%5), "price": float64(i) / 4, "new": i%2 == 0, "note": "x", "at": time.Unix(int64(i)<<20, 0)}
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
	if _, err := c.Delete(ctx, "k11", "k12", "k61", "k95"); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "updated, and items have come and gone")
	// The first model does not know what has been added, the second one does.
	err = c.Alter(ctx, db.Alteration{AddModalities: []db.Modality{{Name: "audio", Dim: 3}}, AddFields: []db.Field{{"place", db.String, true}}})
	if err != nil {
		t.Fatal(err)
	}
	b := d.NewBatch()
	for i := range 40 {
		added := &db.Item{Key: fmt.Sprint("k", 14+2*i), Fields: map[string]any{"place": fmt.Sprint("place ", i%3)}}
		if i%4 > 0 {
			added.Vectors = map[string][]float32{"audio": {float32(i % 5), float32(i), 1}}
		}
		b.Merge(c, added)
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "altered")
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 24, Anchors: 15}})
	putAll(t, c, items[20:30])
	if _, err := c.Delete(ctx, "k33"); err != nil {
		t.Fatal(err)
	}
	putAll(t, c, []*db.Item{{Key: "bare"}, {Key: "odd", Labels: []string{"unseen"}, Vectors: items[0].Vectors}})
	dbkit.CheckSound(t, d, "several spaces")
	dbkit.MustUpdate(t, c, db.UpdateOptions{Teacher: db.TeacherSelf})
	dbkit.CheckSound(t, d, "updated by itself")
	if err := c.SetEncoders(ctx, []db.Encoder{{"text", db.InputText, []string{"encode", "--lines"}}}); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "with an encoder")
	if _, err := c.IndexVectors(ctx, db.IndexOptions{Modality: "image"}); err != nil {
		t.Fatal(err)
	}
	for i, it := range items[40:45] { // their entries are out of date
		other := *it
		other.Vectors = items[50+i].Vectors
		putAll(t, c, []*db.Item{&other})
	}
	dbkit.CheckSound(t, d, "vectors indexed")
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	var given []*db.Item
	for i := range 40 {
		given = append(given, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i % 7), byte(i % 3)}})
	}
	putAll(t, codes, given)
	if _, err := codes.Delete(ctx, "3", "21", "24"); err != nil {
		t.Fatal(err)
	}
	putMarks(t, d, "position", "one", "log/2", "two")
	return d
}

// Nothing is found where nothing is wrong, whatever a database has gone through.
func TestVerifyFindsNothing(t *testing.T) {
	dbkit.LongTest(t)
	d := verified(t, nil)
	v := dbkit.CheckSound(t, d, "all of it")
	if v.Items != 120-5+2+37 || v.CodesChecked == 0 || v.Records == 0 {
		t.Errorf("%+v", v)
	}
	if err := d.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	dbkit.CheckSound(t, d, "compacted")
	dir := db.State(d).Engine.Dir
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, nil)
	defer d.Close()
	dbkit.CheckSound(t, d, "opened again")
}
