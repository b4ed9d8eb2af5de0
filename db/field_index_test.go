package db_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// unindexed has a field of each type, and no index.
var unindexed = []db.Field{{"n", db.Int, false}, {"x", db.Float, false}, {"s", db.String, false},
	{"b", db.Bool, false}, {"at", db.Time, false}}

// openUnindexed makes a collection of n items that have fields without an index.
func openUnindexed(t testing.TB, opts *db.Options, n int) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, "db", opts)
	t.Cleanup(func() { _ = d.Close() })
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 8, Fields: unindexed}))(t)
	b := d.NewBatch()
	for i := range n {
		must(t, b.Put(c, unindexedItem(i, i)))
	}
	must(t, b.Commit(ctx))
	return d, c
}

// unindexedItem returns item i, in one of its versions.
func unindexedItem(i, version int) *db.Item {
	it := &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i)}, Fields: map[string]any{}}
	if version%7 > 0 {
		it.Fields["n"], it.Fields["s"] = filterInts[version%len(filterInts)],
			filterStrings[version%len(filterStrings)]
	}
	if version%5 > 0 {
		it.Fields["x"], it.Fields["b"] = filterFloats[version%len(filterFloats)], version%2 == 0
		it.Fields["at"] = filterTimes[version%len(filterTimes)]
	}
	return it
}

// indexedFilters ask for what the fields have.
var indexedFilters = []string{
	"n >= 0", "n = 9007199254740993", "x < .5", "x = 0", "s >= 'a'", "s LIKE 'z%'", "b = true",
	"NOT (n < 3 AND x > 1)", "has(n)", "s IS NULL OR b IS NULL",
	"at > '1970'", "at = '2024-04-30 22:00'", "has(at)",
}

// checkIndexed compares what filters find with the items, and tells whether fields are indexed.
func checkIndexed(t testing.TB, c *db.Collection, indexed ...string) {
	t.Helper()
	for _, f := range dbkit.MustSchema(t, c).Fields {
		failIf(t, f.Indexed != slices.Contains(indexed, f.Name), "%+v", f)
	}
	o := need(dbtest.NewOracle(ctx, c))(t)
	for i, where := range indexedFilters {
		if testing.Short() && i%3 > 0 { // the oracle takes long with the race detector, and runs alone
			continue
		}
		fine(t, o.CheckWhere(ctx, where))
		e, _, err := c.Explain(ctx, db.Query{Code: []byte{1}, Where: where}, -1)
		if err != nil || slices.ContainsFunc(e.ScannedFields,
			func(name string) bool { return slices.Contains(indexed, name) }) {
			t.Errorf("%s: %v are scanned, %v", where, e.ScannedFields, err)
		}
	}
	dbkit.CheckSound(t, db.Of(c), fmt.Sprint(indexed))
}

// Fields are indexed, some and then all, and stay so; what is asked for twice is done once.
func TestAlterIndexesFields(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, c := openUnindexed(t, opts, 300)
	need(c.DeleteWhere(ctx, "n = 2"))(t)
	checkIndexed(t, c)
	mustAlter(t, c, db.Alteration{IndexFields: []string{"s", "x", "s"}})
	checkIndexed(t, c, "s", "x")
	for i := range 50 {
		need(c.Put(ctx, unindexedItem(i*8, i+3)))(t)
	}
	mustAlter(t, c, db.Alteration{IndexFields: []string{"b", "s", "n", "at"},
		AddFields: []db.Field{{"more", db.Int, true}}})
	checkIndexed(t, c, "s", "x", "n", "b", "at", "more")
	mustAlter(t, c, db.Alteration{IndexFields: []string{"b"}})
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c = dbkit.MustCollection(t, d, "main")
	checkIndexed(t, c, "s", "x", "n", "b", "at", "more")
	errorIs(t, errOf(c.Put(ctx, &db.Item{Key: "long", Code: []byte{1},
		Fields: map[string]any{"s": strings.Repeat("s", db.MaxIndexedBytes+1)}})), db.ErrInvalid)
}

// An index is made in blocks of rows, each a commit of its own, between which others write.
func TestIndexesAreMadeInBlocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		items, payload int
		commits        uint64 // one that begins, and the blocks
	}{{10, 0, 2}, {20_000, 0, 4}, {12, 1 << 20, 5}} { // 8,192 rows are a block, or records of 4 MiB
		d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, test.items)
		for i := range test.items {
			it := unindexedItem(i, i)
			if it.Payload = make([]byte, test.payload); test.payload > 0 {
				need(c.Put(ctx, it))(t)
			}
		}
		sequence := func() uint64 {
			s := need(d.Stats())(t)
			return s.Sequence
		}
		before := sequence()
		mustAlter(t, c, db.Alteration{IndexFields: []string{"n", "s"}})
		n := sequence() - before
		failIf(t, n != test.commits, "%d items with payloads of %d bytes: %d commits, want %d", test.items,
			test.payload, n, test.commits)
		if test.items < 100 { // a scan of all items for each filter
			checkIndexed(t, c, "n", "s")
		}
		dbkit.MustClose(t, d)
	}
}

// Writers go on while fields are indexed, one by one and with many items at once, and the sets of rows
// are right at the end.
func TestFieldsAreIndexedBesideWrites(t *testing.T) {
	t.Parallel()
	n := effort.Of(40_000, 9_000) // five blocks, or two
	d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, n)
	begun, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	write := func(change func(i int) error) {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				if err := change(i); err != nil {
					t.Error(err)
					return
				}
				if i == 3 {
					begun <- struct{}{}
				}
			}
		})
	}
	r := seed.Rand(t, 3, 1)
	write(func(i int) error { return errOf(c.Put(ctx, unindexedItem(r.IntN(n), i))) })
	write(func(i int) error { return errOf(c.Delete(ctx, fmt.Sprint("k", (i*7919)%n))) })
	write(func(i int) error {
		return errOf(c.Merge(ctx, &db.Item{Key: fmt.Sprint("k", (i*31)%n), Code: []byte{1},
			Fields: map[string]any{"n": i, "s": "merged"}}))
	})
	write(func(i int) error {
		if i > 3 {
			return errOf(c.Count(ctx, "n > 3"))
		}
		b := d.NewBatch()
		for j := range 2000 {
			if err := b.Put(c, unindexedItem(n+i*2000+j, j)); err != nil {
				return err
			}
		}
		return b.Commit(ctx)
	})
	for range 4 {
		<-begun
	}
	mustAlter(t, c, db.Alteration{IndexFields: []string{"n", "x", "s", "b"}})
	close(done)
	wg.Wait()
	checkIndexed(t, c, "n", "x", "s", "b")
}

// What cannot be indexed is refused, and then the collection is as before.
func TestAlterRefusesIndexes(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, c := openUnindexed(t, opts, 100)
	long := strings.Repeat("z", db.MaxIndexedBytes+1)
	for _, key := range []string{"k40", "k70"} {
		need(c.Merge(ctx, &db.Item{Key: key, Fields: map[string]any{"s": long}}))(t)
	}
	var at *db.ItemError
	err := c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "s"}})
	if !errors.As(err, &at) || at.Key != "k40" || !errors.Is(err, db.ErrInvalid) ||
		!strings.Contains(err.Error(),
			`field "s" is indexed: a string in it has at most 1024 bytes, this one has 1025`) {
		t.Errorf("a long string: %v", err)
	}
	errorIs(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n", "z"}}), db.ErrInvalid,
		`unknown field "z"`)
	errorIs(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"n"}, AddFields: unindexed[:1]}),
		db.ErrExists)
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	errorIs(t, c.Alter(cctx, db.Alteration{IndexFields: []string{"n"}}), context.Canceled)
	checkIndexed(t, c)
	prefix := codec.CollectionKey(codec.KindFieldRows, db.Inside(c).ID)
	fine(t, record.ForEach(db.State(d).Engine.DB, prefix,
		func(key, _ []byte) error { return fmt.Errorf("%x is left", key) }))
	mustAlter(t, c, db.Alteration{IndexFields: []string{"n"}})
	checkIndexed(t, c, "n")
	fine(t, dbkit.MustCollection(t, indexOnlyOf(t, d, opts), "main").Alter(ctx,
		db.Alteration{IndexFields: []string{"x"}}))
}

// A string that an index does not take may come while the index is made: either it or the index is refused.
func TestLongStringsBesideAnIndex(t *testing.T) {
	effort.Slow(t)
	_, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, 10_000) // two blocks
	long := &db.Item{Key: "k5", Code: []byte{1},
		Fields: map[string]any{"s": strings.Repeat("z", db.MaxIndexedBytes+1)}}
	for round := range 4 {
		need(c.Put(ctx, unindexedItem(5, 5)))(t)
		var put error
		var wg sync.WaitGroup
		wg.Go(func() {
			for range round * 5 { // between blocks of rows
				fine(t, errOf(c.Put(ctx, unindexedItem(7, 7))))
			}
			_, put = c.Put(ctx, long)
		})
		err := c.Alter(ctx, db.Alteration{IndexFields: []string{"s"}})
		wg.Wait()
		var at *db.ItemError
		refused := err != nil
		if refused {
			put, err = err, put
		}
		stopIf(t, err != nil || !errors.Is(put, db.ErrInvalid) || !errors.As(put, &at) || at.Key != "k5",
			"index refused: %v; %v; the other: %v", refused, put, err)
		if !refused {
			checkIndexed(t, c, "s")
			return
		}
		checkIndexed(t, c)
	}
}

// A batch that was filled before its field was indexed is checked again.
func TestFullBatchMeetsAnIndex(t *testing.T) {
	for _, n := range []int{1, 3000} { // one by one, and as tables
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d, c := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, 10)
			b := d.NewBatch()
			for i := range n {
				it := unindexedItem(100+i, i)
				if i == n/2 {
					it.Fields["s"] = strings.Repeat("z", db.MaxIndexedBytes+1)
				}
				must(t, b.Put(c, it))
			}
			mustAlter(t, c, db.Alteration{IndexFields: []string{"n", "s"}})
			var at *db.ItemError
			err := b.Commit(ctx)
			failIf(t, !errors.Is(err, db.ErrInvalid) || !errors.As(err, &at) ||
				at.Key != fmt.Sprint("k", 100+n/2), "commit: %v", err)
			holds(t, c, 10)
			checkIndexed(t, c, "n", "s")
		})
	}
}

func BenchmarkIndexFields(b *testing.B) {
	for _, field := range []string{"year", "price", "maker", "sku"} {
		c := benchFiltered(b, 1_000_000, false)
		b.Run(field, func(b *testing.B) {
			for range b.N {
				must(b, c.Alter(ctx, db.Alteration{IndexFields: []string{field}}))
			}
		})
	}
}
