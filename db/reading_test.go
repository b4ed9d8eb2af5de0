package db_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
)

// collect returns what an iteration yields until its error.
func collect[T any](all iter.Seq2[T, error]) (got []T, err error) {
	for x, err := range all {
		if err != nil {
			return got, err
		}
		got = append(got, x)
	}
	return got, nil
}

// Keys are in the order of their bytes, those with a prefix together, and items come with all that they hold.
func TestKeysInOrder(t *testing.T) {
	ctx := t.Context()
	d := dbtest.Open(t, "", nil)
	fields := []db.Field{{Name: "n", Type: db.Int}}
	c := must1[*db.Collection](t)(d.CreateCollection(ctx, "main", db.Schema{Bits: 8, Fields: fields}))
	other := must1[*db.Collection](t)(d.CreateCollection(ctx, "other", db.Schema{Bits: 8}))
	keys := []string{"b/2", "a", "b/10", "ü", "b/1", "b", "b0", "\U0010ffff", "B/1", "b/\U0010ffff"}
	for i, key := range keys {
		it := &db.Item{Key: key, Code: []byte{byte(i)}, Labels: []string{"l"},
			Fields: map[string]any{"n": int64(i)}, Payload: []byte(key)}
		must1[string](t)(c.Put(ctx, it))
	}
	must1[string](t)(other.Put(ctx, &db.Item{Key: "b/3", Code: []byte{9}}))
	snap := must1[*db.Snapshot](t)(d.Snapshot())
	defer snap.Close()
	then := must1[*db.Collection](t)(snap.Collection("main"))
	must1[int](t)(c.Delete(ctx, "b/10"))
	now := slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return k == "b/10" })
	for _, test := range []struct {
		c    *db.Collection
		keys []string
	}{{c, now}, {then, keys}} {
		for _, prefix := range []string{"", "b", "b/", "b/1", "b/\U0010ffff", "ü", "\xc3", "nothing",
			strings.Repeat("x", db.MaxKeyBytes+1)} {
			var want []string
			for _, k := range slices.Sorted(slices.Values(test.keys)) {
				if strings.HasPrefix(k, prefix) {
					want = append(want, k)
				}
			}
			got, err := collect(test.c.Keys(ctx, prefix))
			failIf(t, err != nil || !slices.Equal(got, want), "keys with %.20q: %q, %v; want %q", prefix, got,
				err, want)
		}
		for _, k := range append(keys, "", "b/3", "never", strings.Repeat("x", db.MaxKeyBytes+1)) {
			gives(t, slices.Contains(test.keys, k), k)(test.c.Has(ctx, k))
		}
	}
	// An iteration shows what there was when it began, whatever is written meanwhile.
	var seen []string
	for key := range every(t, c.Keys(ctx, "b")) {
		if len(seen) == 0 {
			must1[string](t)(c.Put(ctx, &db.Item{Key: "b/new", Code: []byte{1}}))
			must1[int](t)(c.Delete(ctx, "b0"))
		}
		if seen = append(seen, key); len(seen) == 4 {
			break
		}
	}
	want := []string{"b", "b/1", "b/2", "b/\U0010ffff"}
	failIf(t, !slices.Equal(seen, want), "during writes: %q, want %q", seen, want)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, keysErr := collect(c.Keys(gone, ""))
	_, hasErr := c.Has(gone, "a")
	for _, err := range []error{keysErr, hasErr} {
		failIf(t, !errors.Is(err, context.Canceled), "cancelled: %v", err)
	}
}

// EnsureCollection creates a collection, or returns the one that fits the schema.
func TestEnsureCollection(t *testing.T) {
	ctx := t.Context()
	d := dbtest.Open(t, "", nil)
	schema := db.Schema{
		Modalities: []db.Modality{{Name: "image", Dim: 4}, {Name: "text", Dim: 9, Sparse: true}},
		Fields:     []db.Field{{Name: "year", Type: db.Int, Indexed: true}},
	}
	var group sync.WaitGroup
	all := make([]*db.Collection, 8)
	for i := range all {
		group.Go(func() {
			c, err := d.EnsureCollection(ctx, "main", schema)
			if err != nil {
				t.Error(err)
				return
			}
			fine(t, errOf(c.Put(ctx, &db.Item{Key: fmt.Sprint(i)})))
			all[i] = c
		})
	}
	group.Wait()
	holds(t, all[0], len(all))
	more := db.Alteration{AddModalities: []db.Modality{{Name: "sound", Dim: 3}},
		AddFields: []db.Field{{Name: "title", Type: db.String}}}
	must(t, all[0].Alter(ctx, more))
	fine(t, errOf(d.EnsureCollection(ctx, "main", schema)))
	before := must1[*db.Stats](t)(d.Stats()).Sequence
	for says, wrong := range map[string]db.Schema{
		"bring codes of 0 bits, not 8": {Bits: 8},
		`modality "image" is of dimension 4, not of dimension 5`: {Modalities: []db.Modality{
			{Name: "image", Dim: 5}}},
		`modality "text" is sparse, of dimension 9, not of dimension 9`: {Modalities: []db.Modality{
			{Name: "text", Dim: 9}}},
		`without modality "smell": Alter adds it`: {Modalities: []db.Modality{
			{Name: "image", Dim: 4}, {Name: "smell", Dim: 4}}},
		`field "year" is of type int, indexed, not of type int, not indexed`: {Modalities: schema.Modalities,
			Fields: []db.Field{{Name: "year", Type: db.Int}}},
		`without field "price": Alter adds it`: {Modalities: schema.Modalities,
			Fields: []db.Field{{Name: "price", Type: db.Float}}},
	} {
		_, err := d.EnsureCollection(ctx, "main", wrong)
		failIf(t, !errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), says), "%v, want %s", err,
			says)
	}
	errorIs(t, errOf(d.EnsureCollection(ctx, "bad", db.Schema{Bits: 7})), db.ErrInvalid)
	indexOnly := db.Schema{Modalities: schema.Modalities, IndexOnly: true}
	for _, name := range []string{"main", "none"} { // what CreateCollection says of it
		_, refused := d.CreateCollection(ctx, name, indexOnly)
		_, err := d.EnsureCollection(ctx, name, indexOnly)
		failIf(t, !errors.Is(err, db.ErrInvalid) || err.Error() != refused.Error(),
			"an index-only collection %q: %v, want %v", name, err, refused)
	}
	after := must1[*db.Stats](t)(d.Stats()).Sequence
	failIf(t, after != before, "%d commits", after-before)
}

// A sample has as many items as it is asked for, each once, whole and in database order, of those that
// match; each is as likely as any other.
func TestSample(t *testing.T) {
	t.Parallel()
	d := dbtest.Open(t, "", nil)
	c := must1[*db.Collection](t)(d.CreateCollection(t.Context(), "main", db.Schema{Bits: 8}))
	const items = 40
	for i := range items {
		it := &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}
		if i%2 == 0 {
			it.Labels = []string{"even"}
		}
		must1[string](t)(c.Put(t.Context(), it))
	}
	must1[int](t)(c.Delete(t.Context(), "8"))
	for _, where := range []string{"", "label = 'even'", "label = 'none'"} {
		all := must1[[]*db.Item](t)(collect(c.Items(t.Context(), where)))
		drawn := map[string]int{}
		const n, seeds = 5, 600
		for seed := range uint64(seeds) {
			got := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), n, seed, where)))
			stopIf(t, len(got) != min(n, len(all)), "where %q, seed %d: %d items", where, seed, len(got))
			rest := all
			for _, it := range got {
				drawn[it.Key]++
				i := slices.IndexFunc(rest, func(other *db.Item) bool { return cmp.Equal(other, it) })
				stopIf(t, i < 0, "where %q, seed %d: %v is not among those that come next", where, seed, it)
				rest = rest[i+1:]
			}
		}
		// Six standard deviations of a binomial distribution.
		p := float64(n) / float64(len(all))
		for _, it := range all {
			if far := math.Abs(float64(drawn[it.Key]) - seeds*p); far > 6*math.Sqrt(seeds*p*(1-p)) {
				t.Errorf("where %q: %s is drawn %d times of %d", where, it.Key, drawn[it.Key], seeds)
			}
		}
	}
	once, again := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), 5, 7, ""))),
		must1[[]*db.Item](t)(collect(c.Sample(t.Context(), 5, 7, "")))
	equal(t, once, again)
	all := must1[[]*db.Item](t)(collect(c.Sample(t.Context(), items, 1, "label = ?", "even")))
	failIf(t, len(all) != items/2-1, "%d of all", len(all))
	for n, where := range map[int]string{0: "", -1: "", 1: "label =", 2: "label = ?"} {
		_, err := collect(c.Sample(t.Context(), n, 1, where))
		failIf(t, !errors.Is(err, db.ErrInvalid), "%d where %q: %v", n, where, err)
	}
}
