package db_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// Whatever the budget of the cache of keys, hits have the right keys, and memory
// stays within it.
func TestKeysStayWithinTheirBudget(t *testing.T) {
	dbkit.LongTest(t)
	for _, budget := range []int64{1, 4000, 20_000, 1 << 20} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), KeyCacheBytes: budget})
		c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 16}))(t)
		key := func(i int) string { return fmt.Sprint(strings.Repeat("long ", i%7), i) }
		var items []*db.Item
		for i := range 3000 {
			items = append(items, &db.Item{Key: key(i), Code: []byte{byte(i), byte(i >> 8)}})
		}
		putAll(t, c, items)
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				for i := range 300 {
					n := (i*769 + g*31) % 3000
					res, err := c.Search(ctx, db.Query{Code: items[n].Code, K: 3})
					if err != nil || res.Hits[0].Key != key(n) {
						t.Errorf("item %d: %v, %v", n, res, err)
						return
					}
					for _, h := range res.Hits {
						if h.Key != key(int(h.Row)) {
							t.Errorf("row %d has key %q", h.Row, h.Key)
						}
					}
				}
			})
		}
		wg.Wait()
		held := int64(0)
		for _, k := range db.SearchTools(d).Keys.Collections {
			for _, br := range *k.Top.Load() {
				for i := range br {
					if b := br[i].Load(); b != nil {
						held += b.Bytes()
					}
				}
			}
		}
		// Those who read at the same time may each bring a block.
		if most := budget + 4*256*(4+45); held > most {
			t.Errorf("%d bytes of keys are held, the budget is %d", held, budget)
		}
		if budget == 1<<20 && held == 0 {
			t.Error("no key is held")
		}
		dbkit.MustClose(t, d)
	}
}

// Rows that come to a block that is held are found, those that go are not, and
// a snapshot still knows them.
func TestKeysOfRowsThatComeAndGo(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 8)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1}}, {Key: "b", Code: []byte{1}}})
	keys := func(c *db.Collection) string {
		res := need(c.Search(ctx, db.Query{Code: []byte{1}}))(t)
		var out []string
		for _, h := range res.Hits {
			out = append(out, h.Key)
		}
		return strings.Join(out, " ")
	}
	if got := keys(c); got != "a b" {
		t.Error(got)
	}
	s := need(d.Snapshot())(t)
	defer s.Close()
	then := need(s.Collection("main"))(t)
	putAll(t, c, []*db.Item{{Key: "c", Code: []byte{1}}, {Key: "d", Code: []byte{3}}})
	need(c.Delete(ctx, "a"))(t)
	putAll(t, c, []*db.Item{{Key: "a", Code: []byte{1}}}) // in another row
	for range 2 {
		if got := keys(c); got != "b c a d" {
			t.Error(got)
		}
		if got := keys(then); got != "a b" {
			t.Errorf("in the snapshot: %s", got)
		}
	}
	now, release := need2(db.State(d).Acquire())(t)
	defer release()
	db.SearchTools(d).Keys.Clear()
	for _, row := range []uint32{0, 9, 1 << 20} { // gone, never there
		if key, err := db.SearchTools(d).Keys.Get(now.Snap, db.Inside(c).ID, row); !errors.Is(err, db.ErrCorrupt) {
			t.Errorf("row %d: %q, %v", row, key, err)
		}
	}
}
