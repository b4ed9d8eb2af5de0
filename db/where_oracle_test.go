package db_test

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// The oracle of filters is an expression and, beside it, a function that looks at
// an item: whoever draws the one writes down the other.
type filterCase struct {
	text  string
	match func(*db.Item) bool
}

var filterSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "text", Dim: 1}},
	Fields: []db.Field{
		{"note", db.String, false}, {"n", db.Int, true}, {"x", db.Float, true}, {"s", db.String, true}, {"b", db.Bool, true}, {"and", db.Int, true}, {"t", db.String, true},
	},
}

// What items hold and expressions ask for, so that they meet.
var (
	filterLabels = []string{"a", "b", "it's", "ä ö", "0"}
	filterInts   = []int64{
		math.MinInt64, math.MinInt64 + 1, -1<<53 - 1, -1 << 53, -300, -2, -1, 0, 1, 2, 255, 256, 2020, 2021, 1 << 53, 1<<53 + 1, math.MaxInt64,
	}
	filterFloats = []float64{
		-math.MaxFloat64, -1e300, -1.5, -1, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0, math.SmallestNonzeroFloat64,
		2.2250738585072014e-308, .1, 1, 1.5, 10, 1 << 53, 1e300, math.MaxFloat64,
	}
	filterStrings = []string{
		"", "\x00", "A", "a", "a\x00", "a\x00b", "aa", "b", "it's", `"`, "two\nlines", "\xc2\xa0", "ä", "\U0001F600",
		strings.Repeat("z", db.MaxIndexedBytes), strings.Repeat("z", db.MaxIndexedBytes-1),
	}
)

func drawFilterItem(t *rapid.T, codesOnly bool) *db.Item {
	it := &db.Item{Key: fmt.Sprintf("k%d", rapid.IntRange(0, 15).Draw(t, "key"))}
	has := func(what string) bool { return rapid.IntRange(0, 2).Draw(t, what) > 0 }
	if codesOnly {
		it.Code = []byte{rapid.Byte().Draw(t, "code"), 7}
	} else if has("image") {
		it.Vectors = map[string][]float32{"image": {1, 2}}
	}
	for _, l := range filterLabels {
		if rapid.IntRange(0, 3).Draw(t, "label") == 0 {
			it.Labels = append(it.Labels, l)
		}
	}
	it.Fields = map[string]any{}
	if has("n") {
		it.Fields["n"] = rapid.OneOf(rapid.SampledFrom(filterInts), rapid.Int64()).Draw(t, "n")
	}
	if has("x") {
		it.Fields["x"] = rapid.OneOf(rapid.SampledFrom(filterFloats), rapid.Float64()).Draw(t, "x")
	}
	if has("s") {
		it.Fields["s"] = rapid.OneOf(rapid.SampledFrom(filterStrings), rapid.StringN(0, 5, -1)).Draw(t, "s")
	}
	if has("b") {
		it.Fields["b"] = rapid.Bool().Draw(t, "b")
	}
	if has("and") {
		it.Fields["and"] = rapid.Int64Range(0, 3).Draw(t, "and")
	}
	if has("t") {
		it.Fields["t"] = rapid.SampledFrom(filterStrings).Draw(t, "t")
	}
	if has("note") {
		it.Fields["note"] = strings.Repeat("n", 2000)
	}
	return it
}

var filterOps = map[string]func(sign int) bool{
	"=": func(s int) bool { return s == 0 }, "!=": func(s int) bool { return s != 0 },
	"<": func(s int) bool { return s < 0 }, "<=": func(s int) bool { return s <= 0 },
	">": func(s int) bool { return s > 0 }, ">=": func(s int) bool { return s >= 0 },
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// A literal is how a value is typed and how the value of an item compares with it.
type filterLiteral struct {
	text    string
	compare func(v any) int
}

func drawLiteral(t *rapid.T, field string) filterLiteral {
	switch field {
	case "n", "and":
		text := strconv.FormatInt(rapid.SampledFrom(filterInts).Draw(t, "int"), 10)
		text += rapid.SampledFrom([]string{"", "", ".0", ".5", "e0", "e1", "e-1", "e30"}).Draw(t, "tail")
		x, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Fatal(text)
		}
		return filterLiteral{text, func(v any) int { return new(big.Rat).SetInt64(v.(int64)).Cmp(x) }}
	case "x":
		text := strconv.FormatFloat(rapid.SampledFrom(filterFloats).Draw(t, "float"), 'g', -1, 64)
		text = rapid.SampledFrom([]string{text, text, text, "1e400", "-1e400", "1e-400"}).Draw(t, "odd")
		x, _ := strconv.ParseFloat(text, 64)
		return filterLiteral{text, func(v any) int {
			switch f := v.(float64); {
			case f < x:
				return -1
			case f > x:
				return 1
			}
			return 0
		}}
	case "s", "t":
		s := rapid.OneOf(rapid.SampledFrom(filterStrings), rapid.StringN(0, 5, -1), rapid.Just(strings.Repeat("z", 3000))).Draw(t, "string")
		return filterLiteral{quoted(s), func(v any) int { return bytes.Compare([]byte(v.(string)), []byte(s)) }}
	}
	b := rapid.Bool().Draw(t, "bool")
	return filterLiteral{rapid.SampledFrom([]string{fmt.Sprint(b), strings.ToUpper(fmt.Sprint(b))}).Draw(t, "case"), func(v any) int {
		if v.(bool) == b {
			return 0
		}
		return 1
	}}
}

func drawFilter(t *rapid.T, depth int, codesOnly bool) filterCase {
	what := rapid.IntRange(0, 9).Draw(t, "what")
	if depth == 0 {
		what %= 7
	}
	switch what {
	case 0:
		if codesOnly {
			return filterCase{"label != 'a'", func(it *db.Item) bool { return !slices.Contains(it.Labels, "a") }}
		}
		m := rapid.SampledFrom([]string{"image", "text"}).Draw(t, "modality")
		return filterCase{"has(" + m + ")", func(it *db.Item) bool { return it.Vectors[m] != nil }}
	case 1, 2:
		l := rapid.SampledFrom(append(slices.Clone(filterLabels), "unknown")).Draw(t, "label")
		other := rapid.SampledFrom(filterLabels).Draw(t, "other label")
		switch rapid.IntRange(0, 2).Draw(t, "label op") {
		case 0:
			return filterCase{"label = " + quoted(l), func(it *db.Item) bool { return slices.Contains(it.Labels, l) }}
		case 1:
			return filterCase{"label != " + quoted(l), func(it *db.Item) bool { return !slices.Contains(it.Labels, l) }}
		}
		return filterCase{"label IN (" + quoted(l) + "," + quoted(other) + ")", func(it *db.Item) bool {
			return slices.Contains(it.Labels, l) || slices.Contains(it.Labels, other)
		}}
	case 3, 4, 5, 6:
		field := rapid.SampledFrom([]string{"n", "x", "s", "t", "b", "and"}).Draw(t, "field")
		name := field
		if field == "and" {
			name = `"and"`
		}
		lit := drawLiteral(t, field)
		if rapid.IntRange(0, 4).Draw(t, "in") == 0 {
			other := drawLiteral(t, field)
			return filterCase{name + " in (" + lit.text + " , " + other.text + ")", func(it *db.Item) bool {
				v, ok := it.Fields[field]
				return ok && (lit.compare(v) == 0 || other.compare(v) == 0)
			}}
		}
		ops := []string{"=", "!="}
		if field != "b" {
			ops = []string{"=", "!=", "<", "<=", ">", ">="}
		}
		op := rapid.SampledFrom(ops).Draw(t, "op")
		return filterCase{name + op + lit.text, func(it *db.Item) bool {
			v, ok := it.Fields[field]
			return ok && filterOps[op](lit.compare(v))
		}}
	case 7:
		x := drawFilter(t, depth-1, codesOnly)
		return filterCase{"NOT (" + x.text + ")", func(it *db.Item) bool { return !x.match(it) }}
	}
	a, b := drawFilter(t, depth-1, codesOnly), drawFilter(t, depth-1, codesOnly)
	if what == 8 {
		return filterCase{"(" + a.text + ") and (" + b.text + ")", func(it *db.Item) bool { return a.match(it) && b.match(it) }}
	}
	return filterCase{"(" + a.text + ") OR (" + b.text + ")", func(it *db.Item) bool { return a.match(it) || b.match(it) }}
}

// Whatever was put, merged, deleted and reopened, filters find what a look at every
// item finds.
func TestFiltersAgainstTheOracle(t *testing.T) {
	dbkit.LongTest(t)
	for _, codesOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("codesOnly=%v", codesOnly), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkFilters(t, codesOnly) })
		})
	}
}

func checkFilters(t *rapid.T, codesOnly bool) {
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, err := db.Open("db", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { d.Close() }()
	schema := filterSchema
	if codesOnly {
		schema.Modalities, schema.Bits = nil, 16
	}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{items: map[string]*db.Item{}}
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
		case op <= 6: // a batch may touch a key several times
			b := d.NewBatch()
			for range rapid.IntRange(1, 10).Draw(t, "batch") {
				it := drawFilterItem(t, codesOnly)
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					b.Delete(c, it.Key)
					o.delete(it.Key)
				case 1, 2:
					b.Merge(c, it)
					o.merge(it)
				default:
					b.Put(c, it)
					o.put(it)
				}
			}
			if err := b.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		case op == 7:
			f := drawFilter(t, 2, codesOnly)
			want := 0
			for _, key := range slices.Clone(o.order) {
				if f.match(o.items[key]) {
					o.delete(key)
					want++
				}
			}
			if n, err := c.DeleteWhere(ctx, f.text); err != nil || n != want {
				t.Fatalf("delete where %s: %d, %v, want %d", f.text, n, err, want)
			}
		default:
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
			if d, err = db.Open("db", opts); err != nil {
				t.Fatal(err)
			}
			if c, err = d.Collection("main"); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			checkFilter(t, c, o, drawFilter(t, 3, codesOnly), codesOnly)
		}
	}
}

func checkFilter(t *rapid.T, c *db.Collection, o *oracle, f filterCase, codesOnly bool) {
	var want []string
	for _, key := range o.order {
		if f.match(o.items[key]) {
			want = append(want, key)
		}
	}
	var got []string
	for it, err := range c.ItemsWhere(ctx, f.text) {
		if err != nil {
			t.Fatalf("%s: %v", f.text, err)
		}
		got = append(got, it.Key)
		if len(it.Fields) != len(o.items[it.Key].Fields) {
			t.Fatalf("item %s is not whole", it.Key)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s: items %v, want %v", f.text, got, want)
	}
	if n, err := c.CountWhere(ctx, f.text); err != nil || n != len(want) {
		t.Fatalf("%s: count %d, %v, want %d", f.text, n, err, len(want))
	}
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	if n, err := c.CountUpTo(ctx, limit, f.text); err != nil || n != min(limit, len(want)) {
		t.Fatalf("%s: count up to %d: %d, %v, want %d", f.text, limit, n, err, len(want))
	}
	if !codesOnly {
		return
	}
	q := db.Query{Code: []byte{rapid.Byte().Draw(t, "query"), 7}, K: rapid.IntRange(1, 10).Draw(t, "k"), Where: f.text}
	var distances []int
	for _, key := range want {
		distances = append(distances, bits.OnesCount8(o.items[key].Code[0]^q.Code[0]))
	}
	slices.Sort(distances)
	radius := rapid.IntRange(0, 8).Draw(t, "radius")
	within, _ := slices.BinarySearch(distances, radius+1)
	for _, r := range []int{-1, radius} {
		var res *db.Result
		var err error
		expect := distances[:min(q.K, len(distances))]
		if r < 0 {
			res, err = c.Search(ctx, q)
		} else {
			res, err = dbkit.FirstWithin(c, q, r)
			expect = distances[:min(q.K, within)]
		}
		if err != nil {
			t.Fatal(err)
		}
		found := make([]int, 0, len(res.Hits))
		for _, h := range res.Hits {
			it := o.items[h.Key]
			if !f.match(it) || bits.OnesCount8(it.Code[0]^q.Code[0]) != h.Distance {
				t.Fatalf("%s: hit %+v", f.text, h)
			}
			found = append(found, h.Distance)
		}
		if !slices.Equal(found, expect) || r >= 0 && res.Total != within {
			t.Fatalf("%s, k = %d, radius %d: distances %v of %d, want %v of %d", f.text, q.K, r, found, res.Total, expect, within)
		}
	}
}

// Sets of rows are cut into containers of 65,536; this goes over several, some
// of which lack what others have.
func TestFiltersOverManyContainers(t *testing.T) {
	dbkit.LongTest(t)
	n := 70_000 // more than the rows of one container
	if *dbkit.EveryFault {
		n = 150_000 // of two
	}
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	schema := filterSchema
	schema.Modalities, schema.Bits = nil, 8
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	r := seed.Rand(t, 1, 2)
	items := make([]*db.Item, n) // by row; nil: deleted
	draw := func(i int) *db.Item {
		it := &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(r.IntN(256))}, Fields: map[string]any{}}
		for j, l := range filterLabels {
			if r.IntN(3+100*j) == 0 {
				it.Labels = append(it.Labels, l)
			}
		}
		if i>>16 != 1 { // missing in a whole container
			it.Fields["n"] = filterInts[r.IntN(len(filterInts))]
		}
		if i >= n-10_000 || r.IntN(1000) == 0 {
			it.Fields["x"] = filterFloats[r.IntN(len(filterFloats))]
		}
		if r.IntN(3) > 0 {
			it.Fields["s"] = filterStrings[r.IntN(len(filterStrings))]
		}
		if r.IntN(3) > 0 {
			it.Fields["b"] = r.IntN(2) == 0
		}
		it.Fields["and"] = int64(i % 4)
		return it
	}
	commit := func(b *db.Batch) {
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for from := 0; from < n; from += 50_000 {
		b := d.NewBatch()
		for i := from; i < min(from+50_000, n); i++ {
			items[i] = draw(i)
			b.Put(c, items[i])
		}
		commit(b)
	}
	for range 2 {
		b := d.NewBatch()
		for range 10_000 {
			i := r.IntN(n)
			switch {
			case items[i] == nil: // would take another row
			case r.IntN(3) == 0:
				items[i] = nil
				b.Delete(c, fmt.Sprint("k", i))
			default:
				items[i] = draw(i)
				b.Put(c, items[i])
			}
		}
		commit(b)
		dbkit.MustClose(t, d)
		d = dbkit.MustOpen(t, "db", opts)
		c = dbkit.MustCollection(t, d, "main")
	}
	count := func(f filterCase) (n int) {
		for _, it := range items {
			if it != nil && f.match(it) {
				n++
			}
		}
		return n
	}
	filters := rapid.Custom(func(t *rapid.T) filterCase { return drawFilter(t, 3, true) })
	first := int(seed.From(t, 0))
	for s := range 40 {
		f := filters.Example(first + s)
		want := count(f)
		got, err := c.CountWhere(ctx, f.text)
		if err != nil || got != want {
			t.Fatalf("%s: %d, %v, want %d", f.text, got, err, want)
		}
		res, err := dbkit.FirstWithin(c, db.Query{Code: []byte{7}, Where: f.text, K: 5}, 8)
		if err != nil || res.Total != want || len(res.Hits) != min(5, want) {
			t.Fatalf("%s: %+v, %v, want %d", f.text, res, err, want)
		}
	}
	f := filterCase{`"and" IN (1, 2) OR label = 'a'`, func(it *db.Item) bool {
		return it.Fields["and"] == int64(1) || it.Fields["and"] == int64(2) || slices.Contains(it.Labels, "a")
	}}
	before := count(filterCase{match: func(*db.Item) bool { return true }})
	deleted, err := c.DeleteWhere(ctx, f.text)
	if err != nil || deleted != count(f) {
		t.Fatalf("deleted %d, %v, want %d", deleted, err, count(f))
	}
	if left, err := c.CountWhere(ctx, ""); err != nil || left != before-deleted {
		t.Errorf("%d left, %v", left, err)
	}
	if left, err := c.CountWhere(ctx, f.text); err != nil || left != 0 {
		t.Errorf("%d of them left, %v", left, err)
	}
}
