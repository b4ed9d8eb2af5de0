package db_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/oracle"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/internal/synth"
	"github.com/fddhdb/fddhdb/model/fit"
)

var captionSchema = db.Schema{Bits: 8,
	Fields: []db.Field{{Name: "caption", Type: db.String, Words: true}, {Name: "note", Type: db.String}}}

// captionWords are few, so that they meet: some are parts of others, and some differ in case alone.
var captionWords = []string{"red", "Red", "star", "STARLING", "red-star", "a", "Éa", "éa", "日本語", "K\u212A",
	"100%", "x_y", strings.Repeat("long ", 4000)}

func drawCaption(t *rapid.T, label string) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(captionWords), 0, 5).Draw(t, label), " ")
}

func drawWordFilter(t *rapid.T) string {
	part := rapid.OneOf(rapid.SampledFrom(captionWords[:12]), rapid.SampledFrom([]string{"ed st", "STAR",
		"tarl", "日本", "éa É", "kk", "x_y 1", "g l", ""})).Draw(t, "part")
	pattern := strings.NewReplacer("%", `\%`, "_", `\_`).Replace(part)
	return rapid.SampledFrom([]string{
		"caption CONTAINS " + quoted(part), "caption LIKE " + quoted("%"+pattern+"%"),
		"caption NOT ILIKE " + quoted("%"+pattern+"%_%"+pattern), "caption LIKE " + quoted(pattern+"%"),
		"NOT caption CONTAINS " + quoted(part) + " AND note CONTAINS " + quoted(part),
		"caption CONTAINS " + quoted(part) + " OR caption ILIKE '%r_d star%'",
	}).Draw(t, "filter")
}

// Whatever is put, merged, deleted, loaded, indexed later or reopened: an index of words finds what a look at
// every item finds, and agrees with the items.
func TestWordsAgainstTheOracle(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
		d := need(db.Open("db", opts))(t)
		defer func() { d.Close() }()
		schema := captionSchema
		schema.Fields = slices.Clone(schema.Fields)
		schema.Fields[0].Words = rapid.Bool().Draw(t, "from the start")
		schema.Fields[0].Indexed = false
		c := need(d.CreateCollection(ctx, "main", schema))(t)
		n := 0
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "op") {
			case 0, 1, 2:
				b := d.NewBatch()
				for range rapid.IntRange(1, 10).Draw(t, "batch") {
					it := &db.Item{Key: fmt.Sprint("k", rapid.IntRange(0, 9).Draw(t, "key")), Code: []byte{1}}
					switch rapid.IntRange(0, 5).Draw(t, "change") {
					case 0:
						b.Delete(c, it.Key)
					case 1:
						it.Fields = map[string]any{"note": drawCaption(t, "note")}
						b.Merge(c, it)
					default:
						it.Fields = map[string]any{"caption": drawCaption(t, "caption")}
						b.Put(c, it)
					}
				}
				must(t, b.Commit(ctx))
			case 3: // as tables
				b := d.NewBatch()
				for i := range 300 {
					n++
					b.Put(c, &db.Item{Key: fmt.Sprint("new", n), Code: []byte{byte(i)},
						Fields: map[string]any{"caption": fmt.Sprint(captionWords[i%12], " ", i)}})
				}
				must(t, b.Commit(ctx))
			case 4:
				must(t, c.Alter(ctx, db.Alteration{IndexWords: []string{"caption"}}))
			default:
				must(t, d.Close())
				d = need(db.Open("db", opts))(t)
				c = need(d.Collection("main"))(t)
			}
			o := need(dbkit.NewOracle(ctx, c))(t)
			for range 3 {
				must(t, o.CheckWhere(ctx, drawWordFilter(t)))
			}
		}
		must(t, c.Alter(ctx, db.Alteration{IndexWords: []string{"caption", "note"}}))
		need(d.Verify(ctx, db.VerifyOptions{},
			func(f report.Finding) error { return fmt.Errorf("%+v", f) }))(t)
	})
}

// With an index of words a filter reads few items, and none whose text lacks the trigrams. What lies behind
// the bound of a long text is found.
func TestWordsReadFewItems(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d := dbkit.MustOpen(t, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c := need(d.CreateCollection(ctx, "main", captionSchema))(t)
	long := strings.Repeat("x ", 16<<10) + "a needle"
	for i, text := range []string{"a red star", "Needles", "nee dle", long} {
		need(c.Put(ctx, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{1},
			Fields: map[string]any{"caption": text, "note": text}}))(t)
	}
	for where, want := range map[string]int{
		"caption CONTAINS 'NEEDLE'": 2, "caption LIKE '%needle'": 1, "caption ILIKE '%r_d ST%'": 1,
	} {
		e, _, err := dbkit.Explain(ctx, c, db.Query{Code: []byte{1}, Where: where}, -1)
		n := need(c.Count(ctx, where))(t)
		failIf(t, err != nil || n != want || len(e.ScannedFields) > 0, "%s: %d items, %+v, %v", where, n,
			e.ScannedFields, err)
	}
	// An item that has lost its record is not among those that a filter reads.
	key := codec.NumberKey(codec.KindItem, db.Inside(c).ID, 0)
	must(t, db.State(d).Engine.DB.Delete(key, nil))
	must(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "x", Type: db.Int}}}))
	failIf(t, need(c.Count(ctx, "caption CONTAINS 'needle'"))(t) != 2, "items without the trigrams are read")
	errorIs(t, errOf(c.Count(ctx, "note CONTAINS 'needle'")), db.ErrCorrupt)
}

// An index of words is of strings, is made and kept by Alter, and leaves nothing behind when it cannot be.
func TestAlterIndexesWords(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem(), NoSync: true}
	d, c := openUnindexed(t, opts, 50)
	errorIs(t, c.Alter(ctx, db.Alteration{IndexWords: []string{"n"}}), db.ErrInvalid,
		`field "n" is of type int: an index of words is of strings`)
	errorIs(t, c.Alter(ctx, db.Alteration{AddFields: []db.Field{{Name: "m", Type: db.Int, Words: true}}}),
		db.ErrInvalid, "an index of words is of strings")
	errorIs(t, c.Alter(ctx, db.Alteration{IndexWords: []string{"z"}}), db.ErrInvalid, `unknown field "z"`)
	errorIs(t, c.Alter(cancelled, db.Alteration{IndexWords: []string{"s"}}), context.Canceled)
	prefix := codec.CollectionKey(codec.KindFieldWords, db.Inside(c).ID)
	fine(t, record.ForEach(db.State(d).Engine.DB, prefix,
		func(key, _ []byte) error { return fmt.Errorf("%x is left", key) }))
	must(t, c.Alter(ctx, db.Alteration{IndexFields: []string{"s"}}))
	must(t, c.Alter(ctx, db.Alteration{IndexWords: []string{"s"}, IndexFields: []string{"n", "s"}}))
	checkIndexed(t, c, "n", "s")
	failIf(t, !dbkit.MustSchema(t, c).Fields[slices.IndexFunc(dbkit.MustSchema(t, c).Fields,
		func(f db.Field) bool { return f.Name == "s" })].Words, "no index of words")
	d, _ = reopen(t, d, "db", opts)
	defer func() { dbkit.MustClose(t, d) }()
	c = dbkit.MustCollection(t, d, "main")
	errorIs(t, errOf(d.CreateCollection(ctx, "other", db.Schema{Bits: 8,
		Fields: []db.Field{{Name: "t", Type: db.Time, Words: true}}})), db.ErrInvalid, "is of type time")
	checkIndexed(t, c, "n", "s")
}

// byDefinition returns the keys of the items that a search by words finds, in order, by a look at every item.
func byDefinition(t testing.TB, c *db.Collection, text, where string) ([]string, map[string]float64) {
	var keys []string
	word := regexp.MustCompile(`[\pL\pM\pN]+`)
	wordsOf := func(s string) map[string]bool {
		out := map[string]bool{}
		for _, w := range word.FindAllString(s, -1) {
			out[strings.ToLower(w)] = true
		}
		return out
	}
	has, df := map[string]map[string]bool{}, map[string]float64{}
	var all []string
	rows := map[string]int{}
	n := 0.
	is := need(oracle.Where(where, nil, dbkit.MustSchema(t, c)))(t)
	for it := range every(t, c.Items(ctx, "")) {
		own := map[string]bool{}
		for _, f := range dbkit.MustSchema(t, c).Fields {
			if s, ok := it.Fields[f.Name].(string); ok && f.Words {
				maps.Copy(own, wordsOf(s))
			}
		}
		has[it.Key] = own
		for w := range own {
			df[w]++
		}
		if is(it) {
			all = append(all, it.Key)
		}
		rows[it.Key] = int(n) // items come in the order of their rows
		n++
	}
	scores := map[string]float64{}
	for _, key := range all {
		// in one order, as sums of floats depend on it
		for _, w := range slices.Sorted(maps.Keys(wordsOf(text))) {
			if has[key][w] {
				scores[key] += math.Log(n / df[w])
			}
		}
	}
	for key := range scores {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if math.Abs(scores[a]-scores[b]) > 1e-9 {
			return cmp.Compare(scores[b], scores[a])
		}
		return rows[a] - rows[b]
	})
	return keys, scores
}

func keysOfHits(hits []db.Hit) (keys []string) {
	for _, h := range hits {
		keys = append(keys, h.Key)
	}
	return keys
}

// captions makes a trained collection of items with captions.
func captions(t testing.TB, n int) *db.Collection {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: vfs.NewMem(), NoSync: true})
	t.Cleanup(func() { dbkit.MustClose(t, d) })
	schema := dbkit.PairsSchema
	schema.Fields = []db.Field{{Name: "caption", Type: db.String, Words: true},
		{Name: "more", Type: db.String, Words: true}, {Name: "year", Type: db.Int}}
	c := need(d.CreateCollection(ctx, "main", schema))(t)
	r := seed.Rand(t, 5, 1)
	list := []string{"a", "red", "Star", "green", "sea", "Éclair", "two-words", "the", "The", "日本"}
	items := dbkit.Pairs(n, synth.Config{Classes: 4, Missing: .3, Seed: 4})
	for i, it := range items {
		var text []string
		for range r.IntN(6) {
			text = append(text, list[min(r.IntN(len(list)), r.IntN(len(list)))])
		}
		it.Fields = map[string]any{"caption": strings.Join(text, " "), "year": i % 3}
		if i%4 == 0 {
			it.Fields["more"] = list[r.IntN(len(list))] + "!"
		}
	}
	train(t, c, items, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 12, Seed: 1}})
	return c
}

// Words alone come by the sum of log(N/df), with filters and included parts.
func TestSearchByWords(t *testing.T) {
	c := captions(t, 400)
	for _, text := range []string{"red", "RED star", "a The éclair nothing", "日本, sea!", "words two",
		"nothing"} {
		for _, where := range []string{"", "year = 1", "has(image) AND NOT has(more)"} {
			want, scores := byDefinition(t, c, text, where)
			q := db.Query{Words: text, Where: where, K: 50, Include: db.IncludeFields | db.IncludeCursor,
				Facets: []string{"year"}}
			r := need(c.Search(ctx, q))(t)
			if got := keysOfHits(r.Hits); !slices.Equal(got, want[:min(50, len(want))]) {
				t.Errorf("%q where %s: %q, want %q", text, where, got, want[:min(50, len(want))])
			}
			for _, h := range r.Hits {
				failIf(t, math.Abs(h.Score-scores[h.Key]) > 1e-9 || h.Distance != -1 || h.Cursor != "" ||
					!math.IsNaN(float64(h.Similarity)) || h.Item.Fields["year"] == nil, "%+v, want %v", h,
					scores[h.Key])
			}
			failIf(t, r.Next != "" || r.Facets[0].Items != len(r.Hits), "%+v", r)
		}
	}
	to := need(c.Search(ctx, db.Query{Words: "red", To: "image", K: 500}))(t)
	want, _ := byDefinition(t, c, "red", "has(image)")
	failIf(t, !slices.Equal(keysOfHits(to.Hits), want), "to images: %q, want %q", keysOfHits(to.Hits), want)
	for _, k := range []int{math.MaxInt, math.MaxInt / 8} {
		to = need(c.Search(ctx, db.Query{Words: "red", Key: "k2", From: "image", To: "image", K: k}))(t)
		failIf(t, len(to.Hits) < len(want), "k = %d: %d hits", k, len(to.Hits))
	}
}

// Beside a vector, a key or a code the two lists are fused by their ranks.
func TestWordsAreFused(t *testing.T) {
	c := captions(t, 400)
	code := need(c.Get(ctx, "k9"))(t).Code
	for name, q := range map[string]db.Query{
		"vector":  {From: "image", Vector: need(c.Get(ctx, "k2"))(t).Vectors["image"], Where: "year != 2"},
		"key":     {Key: "k9", ExcludeSelf: true, To: "text", K: 40},
		"code":    {Code: code, K: 3},
		"vectors": {From: "text", Key: "k7", Recall: 1, ExcludeSelf: true, K: 30},
	} {
		k := cmp.Or(q.K, 10)
		alone := q
		alone.K = max(100, 4*k)
		scores, rows := map[string]float64{}, map[string]uint32{}
		distances := map[string]int{}
		for i, h := range need(c.Search(ctx, alone))(t).Hits {
			scores[h.Key] += 1 / float64(61+i)
			rows[h.Key], distances[h.Key] = h.Row, h.Distance
		}
		words := db.Query{Words: "red star sea", Where: q.Where, To: q.To, K: alone.K + 1}
		var i int
		for _, h := range need(c.Search(ctx, words))(t).Hits {
			if q.ExcludeSelf && h.Key == q.Key {
				continue
			}
			if i++; i > alone.K {
				break
			}
			scores[h.Key] += 1 / float64(60+i)
			rows[h.Key] = h.Row
		}
		want := slices.SortedFunc(maps.Keys(scores), func(a, b string) int {
			return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(rows[a], rows[b]))
		})
		q.Words = words.Words
		r := need(c.Search(ctx, q))(t)
		if got := keysOfHits(r.Hits); !slices.Equal(got, want[:k]) {
			t.Errorf("%s: %q, want %q", name, got, want[:k])
		}
		for _, h := range r.Hits {
			d, there := distances[h.Key]
			if !there {
				d = -1
			}
			failIf(t, h.Score != scores[h.Key] || h.Distance != d, "%s: %+v, want %v and %d bits", name, h,
				scores[h.Key], d)
		}
		many := need(c.SearchAll(ctx, []db.Query{alone, q, {Words: "sea"}, alone}))(t)
		failIf(t, !slices.Equal(keysOfHits(many[1].Hits), want[:k]) || len(many[0].Hits) == 0 ||
			!slices.Equal(keysOfHits(many[0].Hits), keysOfHits(many[3].Hits)), "%s: together: %+v", name,
			many[1])
	}
}

func TestWordsRefuse(t *testing.T) {
	c := captions(t, 30)
	for says, q := range map[string]db.Query{
		"there is no word":           {Words: " -!"},
		"17 different words":         {Words: "a b c d e f g h i j k l m n o p q a A"},
		"has no cursor":              {Words: "a", After: "x"},
		"have no similarity":         {Words: "a", MinSimilarity: .5},
		"k = -1":                     {Words: "a", K: -1},
		"k = -2":                     {Words: "a", K: -2, Key: "k1"},
		"the query starts from no":   {Words: "a", ExcludeSelf: true},
		"unknown field":              {Words: "a", Where: "x = 1"},
		"unknown modality":           {Words: "a", To: "sound"},
		"unknown parts":              {Words: "a", Include: 1 << 20},
		"2 are given":                {Words: "a", Key: "k1", Code: []byte{1, 2}},
		"code of 8 bits, collection": {Words: "a", Code: []byte{1}},
	} {
		_, err := c.Search(ctx, q)
		errorIs(t, err, db.ErrInvalid, says)
		_, err = c.SearchAll(ctx, []db.Query{{Key: "k1"}, q})
		errorIs(t, err, db.ErrInvalid, says)
	}
	errorIs(t, errOf(c.SearchRadius(ctx, db.Query{Words: "a", Key: "k1"}, 3)), db.ErrInvalid, "call Search")
	errorIs(t, errOf(c.Search(cancelled, db.Query{Words: "a"})), context.Canceled)
	_, bare := openUnindexed(t, &db.Options{FS: vfs.NewMem(), NoSync: true}, 3)
	errorIs(t, errOf(bare.Search(ctx, db.Query{Words: "a"})), db.ErrInvalid, "Alter makes one")
}
