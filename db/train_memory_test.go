package db_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/model"
)

// A training for which there is not enough memory says so, and leaves the collection as it
// was: another map can be trained at once.
func TestTrainingWithoutMemory(t *testing.T) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem()})
	defer dbkit.MustClose(t, d)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Modalities: []db.Modality{{Name: "text", Dim: 20_000, Sparse: true}}})
	if err != nil {
		t.Fatal(err)
	}
	var items []*db.Item
	for i := range 100 {
		class := uint32(i % 4)
		items = append(items, &db.Item{
			Key: fmt.Sprint(i), Labels: []string{fmt.Sprint(class)},
			Sparse: map[string]db.Sparse{"text": {Index: []uint32{class, 10 + uint32(i)}, Value: []float32{1, 2}}},
		})
	}
	putAll(t, c, items)
	opt := db.TrainOptions{Options: fit.Options{Bits: 16, MemoryBytes: 1 << 30, Map: map[string]model.MapKind{"text": model.MapLinear}}}
	_, err = c.Train(ctx, opt)
	var memory *fit.MemoryError
	if !errors.As(err, &memory) || !errors.Is(err, db.ErrInvalid) || memory.Modality != "text" || memory.Needed <= 1<<30 {
		t.Fatalf("%v", err)
	}
	if spaces := spacesOf(t, c); len(spaces) != 0 {
		t.Errorf("%+v", spaces)
	}
	opt.Map = nil // chosen
	dbkit.MustTrain(t, c, opt)
}
