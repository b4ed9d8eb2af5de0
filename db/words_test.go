package db_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/dbtest"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
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
			o := need(dbtest.NewOracle(ctx, c))(t)
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
