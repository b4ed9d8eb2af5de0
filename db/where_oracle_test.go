package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/instant"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
)

var filterSchema = db.Schema{
	Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "text", Dim: 1}},
	Fields: []db.Field{
		{Name: "note", Type: db.String}, {Name: "n", Type: db.Int, Indexed: true},
		{Name: "x", Type: db.Float, Indexed: true}, {Name: "s", Type: db.String, Indexed: true},
		{Name: "b", Type: db.Bool, Indexed: true}, {Name: "and", Type: db.Int, Indexed: true},
		{Name: "t", Type: db.String, Indexed: true},
		{Name: "at", Type: db.Time, Indexed: true},
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
		return "label" + rapid.SampledFrom([]string{" IN (", " NOT IN ("}).Draw(t, "not") + quoted(l) + "," +
			quoted(other) + ")"
	case 3, 4, 5, 6:
		field := rapid.SampledFrom([]string{"n", "x", "s", "t", "b", "and", "note", "at"}).Draw(t, "field")
		name := field
		if field == "and" {
			name = `"and"`
		}
		literal := drawLiteral(t, field)
		not := rapid.SampledFrom([]string{" ", " NOT "}).Draw(t, "not")
		switch how := rapid.IntRange(0, 9).Draw(t, "how"); {
		case how == 0:
			return name + not + "in (" + literal + " , " + drawLiteral(t, field) + ")"
		case how == 1 && field != "b":
			return name + not + "BETWEEN " + literal + " AND " + drawLiteral(t, field)
		case how == 2:
			return name + rapid.SampledFrom([]string{" IS NULL", " is not null"}).Draw(t, "null")
		case how < 5 && slices.Contains([]string{"s", "t", "note"}, field):
			prefix := rapid.SampledFrom(append(filterStrings, "n", strings.Repeat("n", 1999))).Draw(t,
				"prefix")
			escaped := strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(prefix)
			switch rapid.IntRange(0, 3).Draw(t, "pattern") {
			case 0:
				return name + not + "CONTAINS " + quoted(prefix)
			case 1:
				return name + not + "ILIKE " + quoted("%"+escaped+"%_")
			case 2:
				wild := rapid.StringOfN(rapid.SampledFrom([]rune("abn%%_ ")), 0, 6, -1)
				return name + not + "LIKE " + quoted(wild.Draw(t, "wild"))
			}
			return name + not + "LIKE " + quoted(escaped+"%")
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
	return need(oracle.Where(filter, nil, filterSchema))(t)
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
		f := &schema.Fields[1+i]
		f.Indexed = rapid.Bool().Draw(t, "indexed")
		f.Words = f.Type == db.String && rapid.Bool().Draw(t, "words")
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
		o := need(dbkit.NewOracle(ctx, c))(t)
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

func checkFilter(t *rapid.T, c *db.Collection, o *dbkit.Oracle, filter string, codesOnly bool) {
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
		d, c = reopen(t, d, "db", opts)
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

func TestWhereRefuses(t *testing.T) {
	d, c := dbkit.OpenPairs(t) // of which year is indexed
	need(c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a"}}))(t)
	codes := need(d.CreateCollection(ctx, "codes",
		db.Schema{Bits: 8, Fields: []db.Field{{Name: "size", Type: db.Int}}}))(t)
	for _, tc := range []struct {
		c      *db.Collection
		where  string
		column int
		says   string
	}{
		{c, "label = ", 9, "a value is expected"},
		{c, "( ", 3, "is expected, not the end"},
		{c, "label = 'a' AND title = 1", 25, `field title is of type string`},
		{c, "size = 1", 1, `unknown field "size": the fields of collection "main" are year, title`},
		{c, "Tags = 'x'", 1, `unknown field "Tags": labels are asked for one at a time, label = 'cat'`},
		{c, "has(sound)", 5,
			`unknown modality or field "sound": collection "main" has the modalities image, text and the fields year`},
		{c, "year = 'x'", 8, "field year is of type int"},
		{codes, "site = 1", 1, `unknown field "site": the fields of collection "codes" are size`},
		{codes, "has(image)", 5, `the items of collection "codes" bring codes`},
		{c, strings.Repeat("(", 1<<20), 1, "bytes are too many"},
	} {
		for what, err := range map[string]error{
			"count":  errOf(tc.c.Count(ctx, tc.where)),
			"delete": errOf(tc.c.DeleteWhere(ctx, tc.where)),
			"items":  firstError(tc.c, ctx, tc.where),
		} {
			var we *db.WhereError
			failIf(t, !errors.As(err, &we) || !errors.Is(err, db.ErrInvalid) || we.Column != tc.column ||
				!strings.Contains(err.Error(), tc.says), "%s %.40q: %v", what, tc.where, err)
			s := fmt.Sprint(err)
			failIf(t, !strings.HasPrefix(s, fmt.Sprintf("fddhdb: invalid argument: where: column %d: ",
				tc.column)), "%s %.40q: %v", what, tc.where, err)
		}
	}
	mustPutAndTrain(t, c)
	var we *db.WhereError
	_, err := c.Search(ctx, db.Query{Key: "k1", Where: "year"})
	failIf(t, !errors.As(err, &we) || we.Column != 5, "search: %v", err)
	_, err = c.SearchRadius(ctx, db.Query{Key: "k1", Where: "year"}, 1)
	failIf(t, !errors.As(err, &we), "search by radius: %v", err)
	e := db.Evaluation{Queries: map[string][][]float32{"text": {{1, 2, 3, 4, 5}}}, Labels: [][]string{{"a"}},
		Where: "year"}
	_, err = c.Evaluate(ctx, e)
	failIf(t, !errors.As(err, &we), "evaluate: %v", err)
	n, _ := c.Count(t.Context(), "")
	failIf(t, n != 41, "%d items", n)
	dbkit.MustClose(t, d)
	errorsAre(t, db.ErrClosed, map[string]error{
		"count":  errOf(c.Count(ctx, "label = 'a'")),
		"delete": errOf(c.DeleteWhere(ctx, "label = 'a'")),
		"items":  firstError(c, ctx, "label = 'a'"),
	})
}

func firstError(c *db.Collection, ctx context.Context, where string) error {
	for _, err := range c.Items(ctx, where) {
		return err
	}
	return nil
}

func mustPutAndTrain(t *testing.T, c *db.Collection) {
	t.Helper()
	train(t, c, dbkit.Pairs(40, synth.Config{}), db.TrainOptions{})
}

// A deletion that finds nothing commits nothing; one that finds something is a
// commit of its own and leaves readers what they have.
func TestDeleteWhere(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	for i := range 10 {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint(i), Code: []byte{1, 2},
			Labels: []string{fmt.Sprint(i % 2)}}))(t)
	}
	sequence := func() uint64 { return need(d.Stats())(t).Sequence }
	before := sequence()
	if n, err := c.DeleteWhere(ctx, "label = 'x'"); n != 0 || err != nil || sequence() != before {
		t.Errorf("nothing: %d, %v, %d commits", n, err, sequence()-before)
	}
	seen := 0
	for it := range every(t, c.Items(ctx, "label = '1'")) {
		if seen++; seen == 1 {
			if n, err := c.DeleteWhere(ctx, "label = '1'"); n != 5 || err != nil || sequence() != before+1 {
				t.Errorf("half: %d, %v, %d commits", n, err, sequence()-before)
			}
		}
		failIf(t, it.Labels[0] != "1", "%+v", it)
	}
	n, _ := c.Count(t.Context(), "")
	failIf(t, seen != 5 || n != 5, "%d seen, %d left", seen, n)
	var we *db.WhereError
	for _, empty := range []string{"", "  ", "\t\n"} {
		n, err := c.DeleteWhere(ctx, empty)
		failIf(t, n != 0 || !errors.As(err, &we) || !strings.Contains(err.Error(), "NOT label = ''"),
			"%q: %d deleted, %v", empty, n, err)
	}
	n, err := c.Count(ctx, "  ")
	failIf(t, n != 0 || !errors.As(err, &we) || we.Column != 3, "count what blanks say: %d, %v", n, err)
	gives(t, 5)(c.DeleteWhere(ctx, "NOT label = ''"))
	holds(t, c, 0, "NOT label = 'x'")
}

// Every filter sees the items of one state, whatever is being written.
func TestFiltersSeeOneState(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenCodes(t)
	const n = 50
	put := func(label string) error {
		b := d.NewBatch()
		for i := range n {
			b.Put(c, &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 1}, Labels: []string{label}})
		}
		return b.Commit(ctx)
	}
	must(t, put("a"))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				for where, ok := range map[string]func(int) bool{
					"label = 'a'":        func(n int) bool { return n == 0 || n == 50 },
					"label IN ('a','b')": func(n int) bool { return n == 50 },
					"NOT label = 'a'":    func(n int) bool { return n == 0 || n == 50 },
				} {
					r, err := dbkit.FirstWithin(c, db.Query{Code: []byte{0, 1}, Where: where, K: 100}, 16)
					if err != nil || !ok(r.Total) || len(r.Hits) != r.Total {
						t.Errorf("%s: %d, %v", where, r.Total, err)
						return
					}
				}
			}
		})
	}
	for i := range 40 {
		fine(t, put([]string{"b", "a"}[i%2]))
	}
	close(done)
	readers.Wait()
}

// Evaluate ranks what matches only.
func TestEvaluateWhere(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	mustPutAndTrain(t, c)
	items := dbkit.AllItems(t, c)
	e := db.Evaluation{Queries: map[string][][]float32{}, Where: "year >= 2000 AND NOT label = 'nothing'"}
	matching := 0
	for i, it := range items {
		if i%3 == 0 {
			need(c.Merge(ctx, &db.Item{Key: it.Key, Fields: map[string]any{"year": 1990 + 20*(i%2)}}))(t)
			matching += i % 2
		}
		e.Queries["text"] = append(e.Queries["text"], it.Vectors["text"])
		e.Labels = append(e.Labels, it.Labels)
		e.Truth = append(e.Truth, it.Labels)
	}
	for range 2 { // with truth and without
		found := need(c.Evaluate(ctx, e))(t)
		got := found[0].Hamming.Database
		failIf(t, got != matching || matching == 0, "%d items were ranked, %d match", got, matching)
		e.Truth = nil
	}
}

// Fields without an index are filtered by all the same, and Explain says which they are, in a copy
// without vectors, too.
func TestExplainNamesScannedFields(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "db", opts)
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t) // of which year is indexed
	items := dbkit.ViewItems(60, 1)
	for i, it := range items {
		it.Fields = map[string]any{"year": 2000 + i, "title": fmt.Sprint("title ", i), "price": float64(i)}
	}
	putAll(t, c, items)
	copied := dbkit.MustCollection(t, indexOnlyOf(t, d, opts), "main")
	for where, fields := range map[string][]string{
		"":                              nil,
		"year > 2010":                   nil,
		"title > 'title 3' OR year = 1": {"title"},
		"price < 20 AND title LIKE 'title 1%' AND year < 2015": {"title", "price"},
		"NOT has(new)": {"new"},
	} {
		is := need(oracle.Where(where, nil, dbkit.PairsSchema))(t)
		want, err := c.Count(ctx, where)
		stopIf(t, err != nil || want == 0, "%s: %d, %v", where, want, err)
		for range 2 { // the second time the rows are known
			e, res, err := dbkit.Explain(ctx, c, db.Query{From: "text", To: "image", Key: "k0", K: 100,
				Where: where}, -1)
			failIf(t, err != nil || !slices.Equal(e.ScannedFields, fields), "%s: fields %v, %v, want %v",
				where, e.ScannedFields, err, fields)
			for _, h := range res.Hits {
				it, err := c.Get(ctx, h.Key)
				failIf(t, err != nil || !is(it), "%s: hit %+v, %v", where, it, err)
			}
		}
		holds(t, copied, want, where)
	}
}

// Damage to a record fails the filters that have to read it, and no others.
func TestFiltersMeetDamagedItems(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	items := dbkit.ViewItems(60, 1)
	for i, it := range items {
		it.Labels, it.Fields = []string{"a"}, map[string]any{"year": i, "price": float64(i)}
	}
	putAll(t, c, items)
	wrong := need((&codec.ItemRecord{Fields: []codec.Field{{ID: 0, Value: int64(7)}, {ID: 2,
		Value: "7"}}}).Append(nil))(t)
	key := codec.NumberKey(codec.KindItem, db.Inside(c).ID, 7)
	for what, value := range map[string][]byte{"gone": nil, "damaged": []byte("damage"), "empty": {},
		"of another type": wrong} {
		kv := db.State(d).Engine.DB
		err := kv.Set(key, value, pebble.NoSync)
		if what == "gone" {
			err = kv.Delete(key, pebble.NoSync)
		}
		must(t, err)
		if _, err := c.Put(ctx, &db.Item{Key: "other"}); err != nil { // readers see the store as it is then
			t.Fatal(err)
		}
		n, err := c.Count(ctx, "price < 30")
		failIf(t, !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), "item in row 7"),
			"%s: %d, %v", what, n, err)
		gives(t, 7, what)(c.Count(ctx, "year < 7 AND price < 30"))
	}
}

// A filter holds within a code that many items share as it does between codes: in every order, by every plan,
// for few hits and for all, within a radius, page by page and in counts. Learned codes are a few that most
// items share.
func TestFiltersWithinLargeCodes(t *testing.T) {
	t.Parallel()
	const n = 1500
	for _, learned := range []bool{true, false} {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
		schema := db.Schema{Bits: 16}
		items := dbkit.CodeItems(n, 16, 1, nil)
		if learned {
			schema, items = dbkit.PairsSchema, dbkit.Pairs(n, synth.Config{Classes: 2})
		}
		schema.Fields = []db.Field{{Name: "year", Type: db.Int, Indexed: true}, {Name: "month", Type: db.Int}}
		c := need(d.CreateCollection(ctx, "main", schema))(t)
		for i, it := range items {
			it.Fields = map[string]any{"year": 2000 + i%3, "month": i % 12}
			if !learned {
				it.Key = fmt.Sprint("k", i)
				it.Code = []byte{byte(i % 2), 0}
			}
		}
		dbkit.PutAll(t, d, c, items)
		queries := []db.Query{{Code: []byte{1, 0}}, {Code: []byte{1, 128}, Plan: db.PlanDisk},
			{Key: items[4].Key}, {Key: items[4].Key, ExcludeSelf: true}}
		if learned {
			dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
			queries = nil
			x := items[4].Vectors["image"]
			for _, order := range []db.Rerank{db.RerankAuto, db.RerankNone, db.RerankProjection,
				db.RerankAsymmetric} {
				queries = append(queries, db.Query{From: "image", To: "text", Vector: x, Rerank: order})
			}
			queries = append(queries, db.Query{From: "image", Key: items[4].Key, Rerank: db.RerankProjection})
		}
		o := need(dbkit.NewOracle(ctx, c))(t)
		share := map[string]int{}
		for _, it := range dbkit.AllItems(t, c) {
			share[string(it.Code)]++
		}
		for code, items := range share {
			stopIf(t, items < 600, "%d items have the code %x: the test needs more", items, code)
		}
		for _, where := range []string{"year = 2001", "month = 7", "year = 2001 AND month < 6"} {
			fine(t, o.CheckWhere(ctx, where))
			for _, q := range queries {
				for _, q.K = range []int{20, n} {
					q.Where = where
					fine(t, o.CheckSearch(ctx, q))
				}
				q.K = 0
				fine(t, o.CheckRadius(ctx, q, 2))
				checkWithin(t, c, q, items)
			}
		}
		dbkit.MustClose(t, d)
	}
}

// checkWithin compares the runs within a radius that takes in everything, and a search for those that are
// similar enough, with the hits of a search for all.
func checkWithin(t *testing.T, c *db.Collection, q db.Query, items []*db.Item) {
	t.Helper()
	q.K = len(items)
	all := need(c.Search(ctx, q))(t)
	rows, at := map[uint32]bool{}, map[int]int{}
	var similar []db.Hit
	for _, h := range all.Hits {
		rows[h.Row] = true
		at[h.Distance]++
		if h.Similarity >= .3 {
			similar = append(similar, h)
		}
	}
	runs := need(c.SearchRadius(ctx, q, 1000))(t)
	distances := need(runs.Distances(ctx))(t)
	with := q
	with.Include |= db.IncludeDistances
	again := need(c.SearchRadius(ctx, with, 1000))(t)
	failIf(t, !slices.Equal(need(again.First(ctx, 1))(t).Distances, distances), "%+v: First has other distances", q)
	fine(t, again.Close())
	found := 0
	for r := range every(t, runs.All(ctx)) {
		for _, row := range r.Rows {
			if found++; !rows[row] {
				t.Errorf("%+v: row %d is in a run, and no hit", q, row)
				break
			}
		}
	}
	fine(t, runs.Close())
	for distance, n := range distances {
		failIf(t, n != at[distance], "%+v: %d items are counted at %d bits, %d hits are there", q, n,
			distance, at[distance])
	}
	failIf(t, found != len(all.Hits), "%+v: %d rows in runs, %d hits", q, found, len(all.Hits))
	if q.Rerank != db.RerankProjection {
		return
	}
	q.MinSimilarity = .3
	r, err := c.Search(ctx, q)
	stopIf(t, err != nil || len(similar) == 0 || len(similar) == len(all.Hits),
		"%+v: %d of %d hits are similar enough, %v", q, len(similar), len(all.Hits), err)
	failIf(t, !sameHits(r.Hits, similar), "%+v: %d hits are similar enough, want %d", q, len(r.Hits),
		len(similar))
}

// While DeleteWhere reads the items, as a field has no index, others write, and what they have
// written by its commit decides what is deleted.
func TestDeleteWhereReadsBesideWrites(t *testing.T) {
	for _, where := range []string{"price < 10", "NOT price >= 10", "new = true AND price < 10",
		"label = 'gone' OR price < 10"} {
		t.Run(where, func(t *testing.T) { deleteBesideWrites(t, where) })
	}
}

// A heldContext holds the goroutine that asks it, in a function of that name, whether it is cancelled:
// once, until it may go on. A goroutine that is held in a read of a file may be the one that opens a table,
// and all that need the table wait for it, writers too.
type heldContext struct {
	context.Context
	in          string
	is          *atomic.Bool
	there, goOn chan struct{}
}

func heldIn(function string) heldContext {
	return heldContext{ctx, function, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
}

func (c heldContext) Err() error {
	if strings.Contains(string(debug.Stack()), c.in) && c.is.CompareAndSwap(false, true) {
		close(c.there)
		<-c.goOn
	}
	return c.Context.Err()
}

func deleteBesideWrites(t *testing.T, where string) {
	item := func(i, price int) *db.Item {
		return &db.Item{Key: fmt.Sprintf("k%02d", i), Fields: map[string]any{"price": float64(price),
			"new": true}}
	}
	var items []*db.Item
	for i := range 20 {
		items = append(items, item(i, i))
	}
	_, c := openWith(t, vfs.NewMem(), dbkit.PairsSchema, items)
	held := heldIn("fieldScan")
	deleted, written := make(chan error), make(chan error, 1)
	n := 0
	go func() {
		var err error
		n, err = c.DeleteWhere(held, where)
		deleted <- err
	}()
	<-held.there
	go func() {
		write := func() error {
			// two of them new
			for _, it := range []*db.Item{item(3, 30), item(13, 3), item(20, 2), item(21, 22)} {
				if _, err := c.Put(ctx, it); err != nil {
					return err
				}
			}
			if _, err := c.Merge(ctx, &db.Item{Key: "k04",
				Fields: map[string]any{"price": 40.}}); err != nil {
				return err
			}
			if _, err := c.Merge(ctx, &db.Item{Key: "k05", Labels: []string{"other"}}); err != nil {
				return err
			}
			return errOf(c.Delete(ctx, "k06"))
		}
		written <- write()
	}()
	select {
	case err := <-written:
		fine(t, err)
	case <-time.After(time.Minute):
		t.Error("writers wait until all items are read")
	}
	close(held.goOn)
	if err := <-deleted; err != nil || n != 9 { // k00 to k09 but for k03, k04 and k06, and k13 and k20
		t.Errorf("%d deleted, %v", n, err)
	}
	var left []string
	for _, it := range dbkit.AllItems(t, c) {
		left = append(left, it.Key)
	}
	slices.Sort(left)
	want := "[k03 k04 k10 k11 k12 k14 k15 k16 k17 k18 k19 k21]"
	failIf(t, fmt.Sprint(left) != want, "left are %v, want %s", left, want)
}

// filterable returns a trained collection, of which item i has number i and the label
// "it's" or "' OR label != '".
func filterable(t *testing.T) (*db.DB, *db.Collection) {
	t.Helper()
	d := dbkit.Open(t)
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "number", Type: db.Int, Indexed: true},
		{Name: "price", Type: db.Float, Indexed: true}, {Name: "sold", Type: db.Bool, Indexed: true},
		{Name: "taken", Type: db.Time, Indexed: true}}
	c := need(d.CreateCollection(t.Context(), "main", schema))(t)
	b := d.NewBatch()
	for i, it := range dbkit.Pairs(120, synth.Config{}) {
		it.Labels = []string{"it's", "' OR label != '"}[i%2 : i%2+1]
		it.Fields = map[string]any{"number": int64(i), "price": float64(i) / 10, "sold": i%3 == 0,
			"taken": day.AddDate(0, 0, i)}
		must(t, b.Put(c, it))
	}
	must(t, b.Commit(t.Context()))
	opt := db.TrainOptions{}
	opt.Bits, opt.Anchors = 16, 20
	need(c.Train(t.Context(), opt))(t)
	return d, c
}

// day is that on which the first item was taken, each other one a day later.
var day = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// Arguments take the place of values in every call that has an expression.
func TestFilterArguments(t *testing.T) {
	t.Parallel()
	type money float64
	_, c := filterable(t)
	words := make([]float32, 5)
	words[3] = 1
	for _, q := range []db.Query{
		{Where: "label = ?", Args: []any{"it's"}},
		{Where: "label = ? AND price < ?", Args: []any{"' OR label != '", 3.5}},
		{Where: "number IN (?) AND NOT sold = ?", Args: []any{[]int{1, 2, 3, 4, 50}, true}},
		{Where: "number > ? AND price <= ? AND number != ?", Args: []any{uint8(7), money(4.4), 9.5}},
		{Where: "label = '?' OR number = ?", Args: []any{int64(5)}},
		{Where: "taken >= ? AND taken < ?", Args: []any{day.AddDate(0, 0, 7).In(time.FixedZone("", 7200)),
			"2024-01-31"}},
		{Where: "taken IN (?)", Args: []any{[]time.Time{day, day.AddDate(0, 0, 9), day.Add(1)}}},
	} {
		q.Key = "k3"
		dbkit.CheckSearches(t, c, q)
		for _, from := range []string{"image", "text"} {
			q.From = from
			dbkit.CheckSearches(t, c, q)
		}
	}
	n, err := c.Count(t.Context(), "price < ?", 1)
	failIf(t, n != 10 || err != nil, "%d items, %v", n, err)
	e := db.Evaluation{Queries: map[string][][]float32{"image": {make([]float32, 8)}},
		Labels: [][]string{{"it's"}}}
	e.Where, e.Args = "label = ?", []any{"it's"}
	found := need(c.Evaluate(t.Context(), e))(t)
	if len(found) == 0 || found[0].Hamming.MAP < .999 { // among relevant items only
		t.Errorf("%+v", found)
	}
	gives(t, 30)(c.DeleteWhere(t.Context(), "label = ? AND number >= ?", "it's", 60))
	holds(t, c, 30, "label = ?", "it's")
}

// What is wrong with an argument is said before anything is done, with its number.
func TestFilterArgumentsRefused(t *testing.T) {
	_, c := filterable(t)
	for _, test := range []struct {
		where string
		args  []any
		says  string
	}{
		{"label = ?", nil, "column 9: placeholder 1 has no argument"},
		{"label = ? OR label = ?", []any{"a"}, "column 22: placeholder 2 has no argument"},
		{"label = ?", []any{"a", "b"}, "placeholders (?): 1, arguments: 2;"},
		{"label = ? AND number = ?", []any{"a", "b"},
			"field number is of type int: it is compared with numbers, not with argument 2, the string 'b'"},
		{"label = ?", []any{7}, "label is compared with strings, not with argument 1, the number 7"},
		{"price < ?", []any{math.NaN()}, "argument 1: NaN is no value"},
		{"taken > ?", []any{"soon"},
			"field taken is of type time, and argument 1, the string 'soon' is no time: YYYY-MM-DD is one"},
		{"taken > ?", []any{time.Date(-20_000, 1, 1, 0, 0, 0, 0, time.UTC)},
			"field taken is of type time, and argument 1, the time -20000-01-01T00:00:00Z is beyond the times"},
		{"taken > '2024-02-30'", nil,
			"column 9: field taken is of type time, and the string '2024-02-30' is no time"},
		{"taken > '10000-01-01'", nil,
			"the string '10000-01-01' is beyond the times that a field can have, those of the years 0 to 9999"},
		{"label = ?", []any{day},
			"label is compared with strings, not with argument 1, the time 2024-01-01T00:00:00Z"},
		{"price < ?", []any{day},
			"field price is of type float: it is compared with numbers, not with argument 1, the time 2024-01-01T00:00:00Z"},
		{"taken > 2024", nil,
			"field taken is of type time: it is compared with times in quotes, as '2024-05-01' or '2024-05-01T12:30:00Z', not with the number 2024"},
		{"taken LIKE '2024%'", nil,
			"field taken is of type time: LIKE is for strings; a span of time is >= its begin AND < its end"},
		{"label = ?", []any{[]string{"a"}}, "argument 1 is a list"},
		{"number IN (?)", []any{[]int{}}, "argument 1 is a list without values"},
		{"has(?)", []any{"image"}, "the name of a modality or field is expected"},
		{"", []any{1}, "there is no expression, and 1 arguments are given"},
	} {
		said := map[string]error{}
		_, said["count"] = c.Count(t.Context(), test.where, test.args...)
		if test.where != "" {
			_, said["delete"] = c.DeleteWhere(t.Context(), test.where, test.args...)
		}
		_, said["search"] = c.Search(t.Context(), db.Query{Key: "k1", Where: test.where, Args: test.args})
		_, said["evaluate"] = c.Evaluate(t.Context(),
			db.Evaluation{Queries: map[string][][]float32{"text": {make([]float32, 5)}},
				Labels: [][]string{{"a"}}, Where: test.where, Args: test.args})
		for _, err := range c.Items(t.Context(), test.where, test.args...) {
			said["items"] = err
		}
		for what, err := range said {
			var at *db.WhereError
			failIf(t, !errors.As(err, &at) || !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(),
				test.says), "%s where %q with %v: %v", what, test.where, test.args, err)
		}
	}
	holds(t, c, 120)
}

// A cursor belongs to a query with these arguments, whatever the Go types of the numbers.
func TestCursorWithArguments(t *testing.T) {
	_, c := filterable(t)
	q := db.Query{Key: "k1", K: 5, Where: "number < ?", Args: []any{100}}
	first := need(c.Search(t.Context(), q))(t)
	q.After = first.Next
	q.Args = []any{int16(100)}
	second, err := c.Search(t.Context(), q)
	failIf(t, err != nil || len(second.Hits) != 5 || second.Hits[0] == first.Hits[0],
		"the same query: %v, %v", second, err)
	q.Args = []any{101}
	errorIs(t, errOf(c.Search(t.Context(), q)), db.ErrInvalid, "another query")
	q.Args = []any{100}
	q.After = ""
	runs := need(c.SearchRadius(t.Context(), q, 16))(t)
	defer runs.Close()
	q.Args[0] = 7 // the caller's again
	some := need(runs.First(t.Context(), 5))(t)
	q.Args[0], q.After = 100, some.Next
	fine(t, errOf(c.Search(t.Context(), q)))
}
