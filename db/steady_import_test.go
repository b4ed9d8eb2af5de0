package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A steadyImporter imports items without keys, each import in two sessions, and alters a
// collection after each: what is there after any of them can be told.
type steadyImporter struct {
	begun, acked      atomic.Int64 // imports
	altering, altered atomic.Int64
}

const (
	steadyImportItems = 60
	steadyAlterations = 100 // at most
)

func steadyAlteration(n int64) db.Alteration {
	return db.Alteration{AddModalities: []db.Modality{{Name: fmt.Sprint("m", n), Dim: 2}}, AddFields: []db.Field{{Name: fmt.Sprint("f", n), Type: db.Int, Indexed: true}}}
}

// carryOut does the n-th import, and an alteration.
func (w *steadyImporter) carryOut(into, alter *db.Collection, n int64) error {
	w.begun.Store(n)
	for _, to := range []int{steadyImportItems / 2, steadyImportItems} {
		if err := importSome(into, n, to); err != nil {
			return err
		}
	}
	w.acked.Store(n)
	if n > steadyAlterations {
		return nil
	}
	w.altering.Store(n)
	if err := alter.Alter(ctx, steadyAlteration(n)); err != nil {
		return err
	}
	w.altered.Store(n)
	return nil
}

// importSome goes on with the n-th import up to an item, and commits it after the last.
func importSome(c *db.Collection, n int64, to int) error {
	im, err := c.NewImport(ctx, db.ImportOptions{Source: fmt.Sprint("import ", n)})
	if err != nil {
		return err
	}
	db.Spool(im).ChunkBytes = 300
	for i := im.Rows(); i < to && err == nil; i++ {
		err = im.Put(&db.Item{Code: []byte{byte(i), byte(n)}, Payload: []byte(fmt.Sprint(n))})
	}
	if err == nil && to == steadyImportItems {
		err = im.Commit(ctx)
	}
	return errors.Join(err, im.Close())
}

// check checks what a crash has left, where so many imports and alterations at least had been
// acknowledged, and so many at most had begun; and goes on with the import that was going on.
func (w *steadyImporter) check(t *testing.T, label string, d *db.DB, least, most [2]int64) {
	t.Helper()
	c := dbkit.MustCollection(t, d, "imports")
	count := func() map[string]int {
		counts := map[string]int{}
		for _, it := range dbkit.AllItems(t, c) {
			counts[string(it.Payload)]++
		}
		return counts
	}
	counts := count()
	staged, err := d.StagedImports(ctx)
	if err != nil {
		t.Fatal(label, ": ", err)
	}
	for n := int64(1); n <= most[0]; n++ {
		there := counts[fmt.Sprint(n)]
		if there != steadyImportItems && (there != 0 || n <= least[0]) {
			t.Fatalf("%s: import %d of %d to %d: %d items", label, n, least[0], most[0], there)
		}
		i := slices.IndexFunc(staged, func(im db.StagedImport) bool { return im.Source == fmt.Sprint("import ", n) })
		if i >= 0 && (n <= least[0] || staged[i].Committed != (there > 0)) {
			t.Fatalf("%s: import %d of %d to %d has %d items, and is staged: %+v", label, n, least[0], most[0], there, staged[i])
		}
		if i < 0 && there > 0 {
			continue // it is done
		}
		if err := importSome(c, n, steadyImportItems); err != nil {
			t.Fatal(label, ": ", err)
		}
		if there := count()[fmt.Sprint(n)]; there != steadyImportItems {
			t.Fatalf("%s: import %d has %d items in the end", label, n, there)
		}
	}
	want := dbkit.PairsSchema
	n := int64(0)
	for s := dbkit.MustSchema(t, dbkit.MustCollection(t, d, "main")); ; n++ {
		if n >= least[1] && slices.Equal(s.Modalities, want.Modalities) && slices.Equal(s.Fields, want.Fields) {
			return
		}
		if n == most[1] {
			t.Fatalf("%s: after %d to %d alterations: %+v", label, least[1], most[1], s)
		}
		a := steadyAlteration(n + 1)
		want.Modalities, want.Fields = slices.Concat(want.Modalities, a.AddModalities), slices.Concat(want.Fields, a.AddFields)
	}
}

// importAgain goes on with an import of a thousand items, of which some or all replace those
// of the one before, and one time in three leaves it where it is then.
func importAgain(ctx context.Context, c *db.Collection, r *rand.Rand) (err error) {
	im, err := c.NewImport(ctx, db.ImportOptions{Source: "again"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, im.Close()) }()
	db.Spool(im).ChunkBytes = 4000
	to, first := 1000, r.IntN(500)
	if r.IntN(3) == 0 {
		to = im.Rows() + r.IntN(300)
	}
	for i := im.Rows(); i < to; i++ {
		if err := im.Put(&db.Item{Key: fmt.Sprint(first + i), Code: []byte{byte(i), byte(r.IntN(256))}}); err != nil {
			return err
		}
	}
	if to != 1000 {
		return nil
	}
	return im.Commit(ctx)
}
