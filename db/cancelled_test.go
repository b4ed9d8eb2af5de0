package db_test

import (
	"context"
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A leaving context is cancelled after it has been asked so often.
type leaving struct {
	context.Context
	asked *int
}

func (c leaving) Err() error {
	if *c.asked--; *c.asked < 0 {
		return context.Canceled
	}
	return nil
}

// A search that is cancelled, whenever that is, ends with the error of its context, or has been
// answered before.
func TestSearchThatIsCancelled(t *testing.T) {
	items := dbkit.CodeItems(400, 8, 1, nil)
	_, c := openWith(t, vfs.NewMem(), db.Schema{Bits: 8}, items)
	q := db.Query{Code: items[0].Code, K: 390, Facets: []string{"label"}}
	want, err := c.Search(ctx, q)
	if err != nil || len(want.Hits) != q.K {
		t.Fatalf("%v, %v", want, err)
	}
	answered := false
	for n := 0; !answered; n++ {
		left := n
		r, err := c.Search(leaving{ctx, &left}, q)
		switch {
		case err == nil && len(r.Hits) == q.K:
			answered = true
		case !errors.Is(err, context.Canceled):
			t.Fatalf("cancelled when asked for the %dth time: %v, %v", n, r, err)
		}
		left = n
		runs, err := c.SearchRadius(leaving{ctx, &left}, q, 8)
		if errors.Is(err, context.Canceled) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if r, err := runs.First(leaving{ctx, &left}, q.K); err != nil && !errors.Is(err, context.Canceled) || err == nil && len(r.Hits) != q.K {
			t.Fatalf("within a radius, cancelled when asked for the %dth time: %v, %v", n, r, err)
		}
		must(t, runs.Close())
		if n > 10_000 {
			t.Fatal("the search never ends")
		}
	}
}
