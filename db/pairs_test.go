package db_test

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/search"
)

// codedItems returns n items with random codes, and fields and labels.
func codedItems(rng *rand.Rand, prefix string, n, bytes int) []*db.Item {
	return made(n, func(i int) *db.Item {
		it := &db.Item{Key: fmt.Sprint(prefix, i), Code: make([]byte, bytes),
			Fields: map[string]any{"size": rng.IntN(9), "main": rng.IntN(3) == 0}}
		for k := range it.Code {
			it.Code[k] = byte(rng.Uint32())
		}
		if i%7 == 0 {
			delete(it.Fields, "size")
		}
		if rng.IntN(3) == 0 {
			it.Labels = []string{"odd"}
		}
		return it
	})
}

// blur makes most codes copies of earlier ones, with some bits changed.
func blur(rng *rand.Rand, items []*db.Item, from []*db.Item) {
	for _, it := range items {
		if len(from) > 0 && rng.IntN(4) > 0 {
			copy(it.Code, from[rng.IntN(len(from))].Code)
			for range rng.IntN(6) {
				k := rng.IntN(8 * len(it.Code))
				it.Code[k/8] ^= 1 << (k % 8)
			}
		}
		from = append(from, it)
	}
}

func apart(a, b *db.Item) (d int) {
	for i, x := range a.Code {
		d += bits.OnesCount8(x ^ b.Code[i])
	}
	return d
}

var sized = db.Schema{Bits: 64,
	Fields: []db.Field{{Name: "size", Type: db.Int}, {Name: "main", Type: db.Bool}}}

// pairsOf returns the pairs by the definition. others are nil for pairs within items.
func pairsOf(items, others []*db.Item, radius int, match func(*db.Item) bool) (all []db.Pair) {
	for i, a := range items {
		among := others
		if others == nil {
			among = items[:i]
		}
		for _, b := range among {
			if d := apart(a, b); d <= radius && match(a) && (others != nil || match(b)) {
				all = append(all, db.Pair{Key: a.Key, Other: b.Key, Distance: d})
			}
		}
	}
	return all
}

func withoutCursors(t testing.TB, c *db.Collection, q db.PairQuery) (all []db.Pair) {
	t.Helper()
	for p := range every(t, c.Pairs(ctx, q)) {
		p.Cursor = ""
		all = append(all, p)
	}
	return all
}

func TestPairsAgreeWithTheDefinition(t *testing.T) {
	for _, together := range []int{search.PairsTogether, 20} {
		defer func(n int) { search.PairsTogether = n }(search.PairsTogether)
		search.PairsTogether = together
		rng := rand.New(rand.NewPCG(1, 2))
		items, others := codedItems(rng, "a", 600, 8), codedItems(rng, "b", 300, 8)
		blur(rng, items, nil)
		blur(rng, others, items)
		d, c := openNew(t, t.TempDir(), nil, sized)
		defer dbkit.MustClose(t, d)
		putAll(t, c, items[:500])
		putEach(t, c, items[500:]) // codes that are in no segment
		o := need(d.CreateCollection(ctx, "others", db.Schema{Bits: 64}))(t)
		for _, it := range others {
			it.Fields = nil
		}
		putAll(t, o, others)
		odd := func(it *db.Item) bool { return len(it.Labels) > 0 }
		all := func(*db.Item) bool { return true }
		for _, radius := range []int{0, 3, 12} {
			q := db.PairQuery{Likeness: db.Likeness{Radius: radius}}
			equal(t, pairsOf(items, nil, radius, all), withoutCursors(t, c, q))
			q.Where = "label = 'odd'"
			equal(t, pairsOf(items, nil, radius, odd), withoutCursors(t, c, q))
			q.Against = "others"
			equal(t, pairsOf(items, others, radius, odd), withoutCursors(t, c, q))
			q.Where = ""
			equal(t, pairsOf(items, others, radius, all), withoutCursors(t, c, q))
		}
	}
}

// Pairs go on behind any cursor, and a cursor of the last pair goes on with items that came since.
func TestPairsGoOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	items := codedItems(rng, "a", 300, 8)
	blur(rng, items, nil)
	d, c := openNew(t, t.TempDir(), nil, sized, items[:200]...)
	defer dbkit.MustClose(t, d)
	q := db.PairQuery{Likeness: db.Likeness{Radius: 4}}
	all := need(dbkit.Collect(c.Pairs(ctx, q)))(t)
	stopIf(t, len(all) < 50, "%d pairs", len(all))
	for _, i := range []int{0, 1, len(all) / 2, len(all) - 1} {
		q.After = all[i].Cursor
		rest := need(dbkit.Collect(c.Pairs(ctx, q)))(t)
		equal(t, slices.Clip(all[i+1:]), append([]db.Pair{}, rest...))
	}
	putAll(t, c, items[200:])
	want := pairsOf(items, nil, 4, func(*db.Item) bool { return true })[len(all):]
	equal(t, want, withoutCursors(t, c, q))
	q.Radius = 5
	_, err := dbkit.Collect(c.Pairs(ctx, q))
	errorIs(t, err, db.ErrInvalid, "other pairs")
	q.After = "x" + q.After[1:]
	_, err = dbkit.Collect(c.Pairs(ctx, q))
	errorIs(t, err, db.ErrInvalid, "cursor")
}

// groupsOf returns the groups by the definition, each in the order of keys.
func groupsOf(items []*db.Item, radius int, connected bool,
	better func(a, b *db.Item) int) (all [][]string) {
	left := slices.Clone(items)
	slices.SortStableFunc(left, better)
	for len(left) > 0 {
		group, rest := []*db.Item{left[0]}, left[1:]
		for grown := true; grown; {
			grown = false
			var out []*db.Item
			for _, it := range rest {
				among := group[:1]
				if connected {
					among = group
				}
				if slices.ContainsFunc(among, func(x *db.Item) bool { return apart(it, x) <= radius }) {
					group, grown = append(group, it), connected
				} else {
					out = append(out, it)
				}
			}
			rest = out
		}
		left = rest
		if len(group) > 1 {
			keys := []string{}
			for _, it := range group {
				keys = append(keys, it.Key)
			}
			slices.Sort(keys[1:])
			all = append(all, keys)
		}
	}
	return all
}

func TestGroupsAgreeWithTheDefinition(t *testing.T) {
	defer func(n int) { search.PairsTogether = n }(search.PairsTogether)
	rng := rand.New(rand.NewPCG(5, 6))
	items := codedItems(rng, "a", 500, 8)
	blur(rng, items, nil)
	d, c := openNew(t, t.TempDir(), nil, sized, items...)
	defer dbkit.MustClose(t, d)
	byKey := map[string]*db.Item{}
	row := map[string]int{}
	for i, it := range items {
		byKey[it.Key], row[it.Key] = it, i
	}
	size := func(it *db.Item, none float64) float64 {
		if n, ok := it.Fields["size"]; ok {
			return float64(n.(int))
		}
		return none
	}
	for keep, better := range map[string]func(a, b *db.Item) int{
		"":       func(a, b *db.Item) int { return cmp.Compare(row[a.Key], row[b.Key]) },
		"newest": func(a, b *db.Item) int { return cmp.Compare(row[b.Key], row[a.Key]) },
		"max size": func(a, b *db.Item) int {
			return cmp.Compare(size(b, math.Inf(-1)), size(a, math.Inf(-1)))
		},
		"min size": func(a, b *db.Item) int {
			return cmp.Compare(size(a, math.Inf(1)), size(b, math.Inf(1)))
		},
		"main = true": func(a, b *db.Item) int {
			of := func(it *db.Item) int {
				if it.Fields["main"] == true {
					return 0
				}
				return 1
			}
			return of(a) - of(b)
		},
	} {
		for _, connected := range []bool{false, true} {
			for _, together := range []int{1 << 20, 30} {
				search.PairsTogether = together
				for _, radius := range []int{0, 4, 10} {
					q := db.GroupQuery{Keep: keep, Connected: connected}
					q.Radius = radius
					var got [][]string
					for g := range every(t, c.Groups(ctx, q)) {
						keys := []string{}
						for i, it := range g.Items {
							keys = append(keys, it.Key)
							failIf(t, it.Distance != apart(byKey[it.Key], byKey[keys[0]]) ||
								i > 1 && it.Distance < g.Items[i-1].Distance, "%+v", g)
						}
						slices.Sort(keys[1:])
						got = append(got, keys)
					}
					want := groupsOf(items, radius, connected, better)
					slices.SortFunc(want, func(a, b []string) int { return row[a[0]] - row[b[0]] })
					equal(t, want, got)
				}
			}
		}
	}
}

func TestGroupsGoOn(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	items := codedItems(rng, "a", 200, 8)
	blur(rng, items, nil)
	d, c := openNew(t, t.TempDir(), nil, sized, items...)
	defer dbkit.MustClose(t, d)
	q := db.GroupQuery{Likeness: db.Likeness{Radius: 4}}
	all := need(dbkit.Collect(c.Groups(ctx, q)))(t)
	q.After = all[len(all)/2].Cursor
	equal(t, all[len(all)/2+1:], need(dbkit.Collect(c.Groups(ctx, q)))(t))
	q.Keep = "newest"
	_, err := dbkit.Collect(c.Groups(ctx, q))
	errorIs(t, err, db.ErrInvalid, "other pairs or groups")
}

// Pairs and groups by vectors are those of all similar vectors.
func TestSimilarPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	items := made(300, func(i int) *db.Item {
		x := make([]float32, 16)
		for k := range x {
			x[k] = float32(rng.NormFloat64())
		}
		return &db.Item{Key: fmt.Sprint(i), Vectors: map[string][]float32{"image": x}}
	})
	for i := 1; i < len(items); i++ {
		if rng.IntN(2) == 0 {
			x := items[i].Vectors["image"]
			for k, v := range items[rng.IntN(i)].Vectors["image"] {
				x[k] = v + .3*x[k]
			}
		}
	}
	clear(items[7].Vectors["image"]) // nothing is like a vector of zeros
	schema := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 16}}}
	d, c := openNew(t, t.TempDir(), nil, schema, items...)
	defer dbkit.MustClose(t, d)
	cosine := func(a, b *db.Item) float64 {
		x, y, xy, xx, yy := a.Vectors["image"], b.Vectors["image"], 0., 0., 0.
		for k := range x {
			xy += float64(x[k]) * float64(y[k])
			xx += float64(x[k]) * float64(x[k])
			yy += float64(y[k]) * float64(y[k])
		}
		return xy / math.Sqrt(xx*yy)
	}
	like := db.Likeness{Modality: "image", MinSimilarity: .9, Recall: 1}
	var want, got []string
	for i, a := range items {
		for _, b := range items[:i] {
			if cosine(a, b) >= .9 {
				want = append(want, a.Key+" "+b.Key)
			}
		}
	}
	for p := range every(t, c.Pairs(ctx, db.PairQuery{Likeness: like})) {
		got = append(got, p.Key+" "+p.Other)
		failIf(t, p.Distance != -1 || p.Similarity < .9, "%+v", p)
	}
	equal(t, want, got)
	stopIf(t, len(want) < 30, "%d pairs", len(want))
	inGroups := map[string]bool{}
	for _, connected := range []bool{true, false} {
		for g := range every(t, c.Groups(ctx, db.GroupQuery{Likeness: like, Connected: connected})) {
			for _, it := range g.Items[1:] {
				failIf(t, !connected && it.Similarity < .9, "%+v", g)
				failIf(t, math.Abs(float64(it.Similarity)-cosine(items[need(strconv.Atoi(it.Key))(t)],
					items[need(strconv.Atoi(g.Items[0].Key))(t)])) > 1e-5, "%+v", g)
				inGroups[fmt.Sprint(connected, it.Key)] = true
			}
			inGroups[fmt.Sprint(connected, g.Items[0].Key)] = true
		}
	}
	for _, p := range want {
		var a, b string
		fmt.Sscan(p, &a, &b)
		failIf(t, !inGroups["true"+a] || !inGroups["true"+b], "%s is in no group", p)
	}
}

func TestPairsRefuse(t *testing.T) {
	items := codedItems(rand.New(rand.NewPCG(1, 1)), "a", 5, 8)
	d, c := openNew(t, t.TempDir(), nil, sized, items...)
	defer dbkit.MustClose(t, d)
	need(d.CreateCollection(ctx, "long", db.Schema{Bits: 128}))(t)
	learned := db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}}
	need(d.CreateCollection(ctx, "learned", learned))(t)
	pairs := func(q db.PairQuery) error { return errOf(dbkit.Collect(c.Pairs(ctx, q))) }
	groups := func(q db.GroupQuery) error { return errOf(dbkit.Collect(c.Groups(ctx, q))) }
	errorsAre(t, db.ErrInvalid, map[string]error{
		"radius":     pairs(db.PairQuery{Likeness: db.Likeness{Radius: -1}}),
		"similarity": pairs(db.PairQuery{Likeness: db.Likeness{MinSimilarity: .5}}),
		"modality":   pairs(db.PairQuery{Likeness: db.Likeness{Modality: "image", MinSimilarity: .5}}),
		"both":       pairs(db.PairQuery{Likeness: db.Likeness{Modality: "image", Radius: 1}}),
		"none":       pairs(db.PairQuery{Likeness: db.Likeness{Modality: "image"}}),
		"long":       pairs(db.PairQuery{Against: "long"}),
		"learned":    pairs(db.PairQuery{Against: "learned"}),
		"itself":     pairs(db.PairQuery{Against: "main"}),
		"keep":       groups(db.GroupQuery{Keep: "max weight"}),
		"expression": groups(db.GroupQuery{Keep: "biggest"}),
	})
	errorIs(t, pairs(db.PairQuery{Against: "gone"}), db.ErrNotFound, `"gone"`)
	errorIs(t, errOf(dbkit.Collect(c.Pairs(cancelled, db.PairQuery{}))), cancelled.Err())
}
