package db_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	return db.Alteration{AddModalities: []db.Modality{{Name: fmt.Sprint("m", n), Dim: 2}},
		AddFields: []db.Field{{Name: fmt.Sprint("f", n), Type: db.Int, Indexed: true}}}
}

// carryOut does the n-th import, and an alteration.
func (w *steadyImporter) carryOut(d *db.DB, into, alter *db.Collection, n int64) error {
	w.begun.Store(n)
	for _, to := range []int{steadyImportItems / 2, steadyImportItems} {
		if err := importSome(d, into, n, to); err != nil {
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

// importSome goes on with the n-th import up to an item, which its mark says then; at the end the mark goes.
func importSome(d *db.DB, c *db.Collection, n int64, to int) error {
	name := fmt.Sprint("import ", n)
	from, err := 0, error(nil)
	if mark, merr := d.Mark(name); merr == nil {
		from, err = strconv.Atoi(string(mark))
	} else if !errors.Is(merr, db.ErrNotFound) {
		err = merr
	}
	if err != nil {
		return err
	}
	b := d.NewBatch()
	for i := from; i < to; i++ {
		b.Put(c, &db.Item{Code: []byte{byte(i), byte(n)}, Payload: []byte(fmt.Sprint(n))})
	}
	b.Mark(name, []byte(strconv.Itoa(to)))
	if err := b.Commit(ctx); err != nil || to < steadyImportItems {
		return err
	}
	b = d.NewBatch()
	b.Mark(name, nil)
	return b.Commit(ctx)
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
	for n := int64(1); n <= most[0]; n++ {
		there, name := counts[fmt.Sprint(n)], fmt.Sprint("import ", n)
		mark, err := d.Mark(name)
		stopIf(t, err != nil && !errors.Is(err, db.ErrNotFound), "%v: %v", label, err)
		switch {
		case mark == nil && there == steadyImportItems, mark == nil && there == 0 && n > least[0]:
		case n <= least[0] || string(mark) != fmt.Sprint(there):
			t.Fatalf("%s: import %d of %d to %d: %d items, and its mark says %q", label, n, least[0], most[0],
				there, mark)
		}
		if mark == nil && there > 0 {
			continue // it is done
		}
		must(t, importSome(d, c, n, steadyImportItems), label)
		if there := count()[fmt.Sprint(n)]; there != steadyImportItems {
			t.Fatalf("%s: import %d has %d items in the end", label, n, there)
		}
	}
	want := dbkit.PairsSchema
	n := int64(0)
	for s := dbkit.MustSchema(t, dbkit.MustCollection(t, d, "main")); ; n++ {
		if n >= least[1] && slices.Equal(s.Modalities, want.Modalities) &&
			slices.Equal(s.Fields, want.Fields) {
			return
		}
		if n == most[1] {
			t.Fatalf("%s: after %d to %d alterations: %+v", label, least[1], most[1], s)
		}
		a := steadyAlteration(n + 1)
		want.Modalities, want.Fields = slices.Concat(want.Modalities, a.AddModalities),
			slices.Concat(want.Fields, a.AddFields)
	}
}

// importAgain imports a thousand items in parts, of which some or all replace those of the time before.
func importAgain(ctx context.Context, d *db.DB, c *db.Collection, r *rand.Rand) error {
	first := r.IntN(500)
	for i := 0; i < 1000; {
		b := d.NewBatch()
		for to := i + 1 + r.IntN(1000); i < min(to, 1000); i++ {
			b.Put(c, &db.Item{Key: fmt.Sprint(first + i), Code: []byte{byte(i), byte(r.IntN(256))}})
		}
		b.Mark("again", []byte(strconv.Itoa(i)))
		if err := b.Commit(ctx); err != nil {
			return err
		}
	}
	return nil
}
