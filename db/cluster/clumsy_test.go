package cluster_test

import (
	"errors"
	"testing"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// A callback that panics ends its call, in the goroutine of the caller, and nothing else; what is not there
// is refused; a client that was closed says so.
func TestClumsyPrograms(t *testing.T) {
	h := build(t, 1, 1, 2, 1)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 5})
	panics := func(string, int64, int64) { panic("a mistake") }
	caught := func(what string, f func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: the panic of its callback is lost", what)
			}
		}()
		f()
	}
	importAll(t, pairs, items)
	if _, err := pairs.Train(t.Context(),
		db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}}); err != nil {
		t.Fatal(err)
	}
	caught("update", func() { _, _ = pairs.Update(t.Context(), cluster.UpdateOptions{Progress: panics}) })
	if u, err := pairs.Update(t.Context(), cluster.UpdateOptions{}); err != nil || u.Revision != 2 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := pairs.ImportModel(t.Context(), nil, true); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	if err := pairs.ExportModel(t.Context(), nil, 0); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	other, err := cluster.Connect(t.Context(), h.conn("other"), "test", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := other.Close(); !errors.Is(err, db.ErrClosed) {
		t.Error("closed again:", err)
	}
}
