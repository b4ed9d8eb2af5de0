package db_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/instant"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/seed"
)

var filterSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "text", Dim: 1}},
	Fields: []db.Field{
		{"note", db.String, false}, {"n", db.Int, true}, {"x", db.Float, true}, {"s", db.String, true},
		{"b", db.Bool, true}, {"and", db.Int, true}, {"t", db.String, true},
		{"at", db.Time, true},
	},
}

// What items hold and expressions ask for, so that they meet.
var (
	filterLabels = []string{"a", "b", "it's", "ä ö", "0"}
	filterInts   = []int64{
		math.MinInt64, math.MinInt64 + 1, -1<<53 - 1, -1 << 53, -300, -2, -1, 0, 1, 2, 255, 256, 2020, 2021,
		1 << 53, 1<<53 + 1, math.MaxInt64,
	}
	filterFloats = []float64{
		-math.MaxFloat64, -1e300, -1.5, -1, -math.SmallestNonzeroFloat64, math.Copysign(0, -1), 0,
		math.SmallestNonzeroFloat64,
		2.2250738585072014e-308, .1, 1, 1.5, 10, 1 << 53, 1e300, math.MaxFloat64,
	}
	filterTimes = []string{
		"0000-01-01", "1969-12-31T23:59:59.999999Z", "1970-01-01", "1970-01-01T00:00:00.000001Z",
		"2024-02-29 12:30", "2024-05-01T00:00:00+02:00",
		"2024-05-01T00:00:00.5Z", "9999-12-31T23:59:59.999999Z",
	}
	filterStrings = []string{
		"", "\x00", "A", "a", "a\x00", "a\x00b", "aa", "b", "it's", `"`, "two\nlines", "\xc2\xa0", "ä",
		"\U0001F600",
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
	if has("at") {
		it.Fields["at"] = drawTime(t)
	}
	if has("note") {
		it.Fields["note"] = strings.Repeat("n", 2000)
	}
	return it
}

// drawTime draws a value of a field of times, as a time or as text.
func drawTime(t *rapid.T) any {
	micros := rapid.Int64Range(instant.Least, instant.Most)
	return rapid.OneOf(
		rapid.Custom(func(t *rapid.T) any { return rapid.SampledFrom(filterTimes).Draw(t, "text") }),
		rapid.Custom(func(t *rapid.T) any { return time.UnixMicro(micros.Draw(t, "micros")) }),
	).Draw(t, "at")
}

func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// drawLiteral draws how a value of a field is typed.
func drawLiteral(t *rapid.T, field string) string {
	switch field {
	case "n", "and":
		text := strconv.FormatInt(rapid.SampledFrom(filterInts).Draw(t, "int"), 10)
		return text + rapid.SampledFrom([]string{"", "", ".0", ".5", "e0", "e1", "e-1", "e30"}).Draw(t,
			"tail")
	case "x":
		text := strconv.FormatFloat(rapid.SampledFrom(filterFloats).Draw(t, "float"), 'g', -1, 64)
		return rapid.SampledFrom([]string{text, text, text, "1e400", "-1e400", "1e-400"}).Draw(t, "odd")
	case "at":
		text := rapid.SampledFrom(append(filterTimes, "2024", "2024-05", "1970-01-01T00:00:00.0000005Z",
			"1969-12-31T23:59:59.9999995Z")).Draw(t, "time")
		return quoted(text)
	case "s", "t", "note":
		return quoted(rapid.OneOf(rapid.SampledFrom(filterStrings), rapid.StringN(0, 5, -1),
			rapid.Just(strings.Repeat("z", 3000))).Draw(t, "string"))
	}
	text := fmt.Sprint(rapid.Bool().Draw(t, "bool"))
	return rapid.SampledFrom([]string{text, strings.ToUpper(text)}).Draw(t, "case")
}

func drawFilter(t *rapid.T, depth int, codesOnly bool) string {
	what := rapid.IntRange(0, 9).Draw(t, "what")
	if depth == 0 {
		what %= 7
	}
	switch what {
	case 0:
		if codesOnly {
			return "has(label)"
		}
		return "has(" + rapid.SampledFrom([]string{"image", "text", "label", "n", "s", `"and"`, "note",
			"at"}).Draw(t, "modality") + ")"
	case 1, 2:
		l := rapid.SampledFrom(append(slices.Clone(filterLabels), "unknown")).Draw(t, "label")
		other := rapid.SampledFrom(filterLabels).Draw(t, "other label")
		switch rapid.IntRange(0, 2).Draw(t, "label op") {
		case 0:
			return "label = " + quoted(l)
		case 1:
			return "label != " + quoted(l)
		}
		return "label IN (" + quoted(l) + "," + quoted(other) + ")"
	case 3, 4, 5, 6:
		field := rapid.SampledFrom([]string{"n", "x", "s", "t", "b", "and", "note", "at"}).Draw(t, "field")
		name := field
		if field == "and" {
			name = `"and"`
		}
		literal := drawLiteral(t, field)
		switch how := rapid.IntRange(0, 9).Draw(t, "how"); {
		case how < 2:
			return name + " in (" + literal + " , " + drawLiteral(t, field) + ")"
		case how == 2:
			return name + rapid.SampledFrom([]string{" IS NULL", " is not null"}).Draw(t, "null")
		case how < 5 && slices.Contains([]string{"s", "t", "note"}, field):
			prefix := rapid.SampledFrom(append(filterStrings, "n", strings.Repeat("n", 1999))).Draw(t,
				"prefix")
			return name + " LIKE " + quoted(strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(
				prefix)+"%")
		}
		ops := []string{"=", "!="}
		if field != "b" {
			ops = []string{"=", "!=", "<", "<=", ">", ">="}
		}
		return name + rapid.SampledFrom(ops).Draw(t, "op") + literal
	case 7:
		return "NOT (" + drawFilter(t, depth-1, codesOnly) + ")"
	}
	a, b := drawFilter(t, depth-1, codesOnly), drawFilter(t, depth-1, codesOnly)
	if what == 8 {
		return "(" + a + ") and (" + b + ")"
	}
	return "(" + a + ") OR (" + b + ")"
}

// matching returns a function that looks whether a filter is true for an item.
func matching(t fataler, filter string) func(*db.Item) bool {
	is := need(oracle.Where(filter, nil, filterSchema))(t)
	return is
}

// Whatever was put, merged, deleted and reopened, filters find what a look at every item finds.
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
	d := need(db.Open("db", opts))(t)
	defer func() { d.Close() }()
	schema := filterSchema
	schema.Fields = slices.Clone(schema.Fields)
	for i := range schema.Fields[1:] {
		schema.Fields[1+i].Indexed = rapid.Bool().Draw(t, "indexed")
	}
	if codesOnly {
		schema.Modalities, schema.Bits = nil, 16
	}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	for range rapid.IntRange(1, 12).Draw(t, "steps") {
		switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
		case op <= 6: // a batch may touch a key several times
			b := d.NewBatch()
			for range rapid.IntRange(1, 10).Draw(t, "batch") {
				it := drawFilterItem(t, codesOnly)
				switch rapid.IntRange(0, 5).Draw(t, "change") {
				case 0:
					b.Delete(c, it.Key)
				case 1, 2:
					b.Merge(c, it)
				default:
					b.Put(c, it)
				}
			}
			must(t, b.Commit(ctx))
		case op == 7:
			deleteFiltered(t, c, drawFilter(t, 2, codesOnly))
		default:
			must(t, d.Close())
			d = need(db.Open("db", opts))(t)
			c = need(d.Collection("main"))(t)
		}
		o := need(dbtest.NewOracle(ctx, c))(t)
		for range 3 {
			checkFilter(t, c, o, drawFilter(t, 3, codesOnly), codesOnly)
		}
	}
}

// deleteFiltered deletes what a filter finds, and nothing else.
func deleteFiltered(t *rapid.T, c *db.Collection, filter string) {
	is := matching(t, filter)
	var left []string
	deleted := 0
	for it := range every(t, c.Items(ctx, "")) {
		if is(it) {
			deleted++
		} else {
			left = append(left, it.Key)
		}
	}
	gives(t, deleted, filter)(c.DeleteWhere(ctx, filter))
	for it, err := range c.Items(ctx, "") {
		stopIf(t, err != nil || len(left) == 0 || it.Key != left[0], "delete where %s: %v, %v, want %v",
			filter, it, err, left)
		left = left[1:]
	}
	stopIf(t, len(left) > 0, "delete where %s: %v are gone", filter, left)
}

func checkFilter(t *rapid.T, c *db.Collection, o *dbtest.Oracle, filter string, codesOnly bool) {
	must(t, o.CheckWhere(ctx, filter))
	if !codesOnly {
		return
	}
	q := db.Query{Code: []byte{rapid.Byte().Draw(t, "query"), 7}, K: rapid.IntRange(1, 10).Draw(t, "k"),
		Where: filter}
	must(t, errors.Join(o.CheckSearch(ctx, q), o.CheckRadius(ctx, q, rapid.IntRange(0, 8).Draw(t, "radius"))))
}

// Sets of rows are cut into containers of 65,536; this goes over several, some
// of which lack what others have.
func TestFiltersOverManyContainers(t *testing.T) {
	dbkit.LongTest(t)
	n := effort.Of(150_000, 66_000) // more than the rows of two containers, or of one
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { d.Close() }()
	schema := filterSchema
	schema.Modalities, schema.Bits = nil, 8
	schema.Fields = slices.Clone(schema.Fields)
	for i, f := range schema.Fields {
		schema.Fields[i].Indexed = f.Name == "n" || f.Name == "s" || f.Name == "and"
	}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
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
		if i >= n-300 || r.IntN(1000) == 0 {
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
	commit := func(b *db.Batch) { must(t, b.Commit(ctx)) }
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
	count := func(filter string) (n int) {
		is := matching(t, filter)
		for _, it := range items {
			if it != nil && is(it) {
				n++
			}
		}
		return n
	}
	filters := rapid.Custom(func(t *rapid.T) string { return drawFilter(t, 3, true) })
	first := int(seed.From(t, 0))
	for s := range effort.Of(40, 10) {
		f := filters.Example(first + s)
		want := count(f)
		got, err := c.Count(ctx, f)
		stopIf(t, err != nil || got != want, "%s: %d, %v, want %d", f, got, err, want)
		res, err := dbkit.FirstWithin(c, db.Query{Code: []byte{7}, Where: f, K: 5}, 8)
		stopIf(t, err != nil || res.Total != want || len(res.Hits) != min(5, want), "%s: %+v, %v, want %d", f,
			res, err, want)
	}
	var live []*db.Item
	for _, it := range items {
		if it != nil {
			live = append(live, it)
		}
	}
	for _, by := range []string{"label", "n", "x", "s", "b", "and"} {
		want := countedBy(by, live)
		if got, err := c.Facets(ctx, db.FacetQuery{By: by}); err != nil || !reflect.DeepEqual(*got, want) {
			t.Errorf("by %s: %+v, %v, want %+v", by, got, err, want)
		}
	}
	f := `"and" IN (1, 2) OR label = 'a'`
	before := count("")
	deleted, err := c.DeleteWhere(ctx, f)
	stopIf(t, err != nil || deleted != count(f), "deleted %d, %v, want %d", deleted, err, count(f))
	holds(t, c, before-deleted)
	holds(t, c, 0, f)
}
