package metamorphic

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A filter agrees as text and as a function with cases that are spelt out.
func TestExpr(t *testing.T) {
	s := &program.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}}
	e := &program.Expr{Op: "or", Args: []program.Expr{
		{Op: "and", Args: []program.Expr{{Op: "in", Field: "label", Values: []string{"it's", "b"}},
			{Op: ">", Field: "n", Values: []string{"1.5"}}}},
		{Op: "not", Args: []program.Expr{{Op: "has", Field: "image"}}},
	}}
	if got, want := e.String(),
		`((label IN ('it''s', 'b')) AND (n > 1.5)) OR (NOT (has(image)))`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	where, args := e.Bound()
	if got, want := fmt.Sprintf("%s %v", where, args),
		`((label IN (?)) AND (n > ?)) OR (NOT (has(image))) [[it's b] 1.5]`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	x := map[string][]float32{"image": {1, 2}}
	match := func(e *program.Expr, it item) bool {
		is, err := matcher(e)
		if err != nil {
			t.Fatal(err)
		}
		return is(&it)
	}
	for i, tc := range []struct {
		it   item
		want bool
	}{
		{item{}, true},
		{item{vectors: x}, false},
		{item{vectors: x, labels: []string{"a", "it's"}, fields: map[string]any{"n": int64(2)}}, true},
		{item{vectors: x, labels: []string{"b"}, fields: map[string]any{"n": int64(1)}}, false},
		{item{vectors: x, labels: []string{"b"}}, false},
	} {
		if match(e, tc.it) != tc.want {
			t.Errorf("item %d: %v", i, !tc.want)
		}
	}
	if !e.Valid(s) || (&program.Expr{Op: "has", Field: "text"}).Valid(s) ||
		(&program.Expr{Op: "=", Field: "memo", Values: []string{""}}).Valid(s) {
		t.Error("what can be asked")
	}
	lacks := &program.Expr{Op: "!=", Field: "x", Values: []string{"1"}}
	if match(lacks, item{}) || !match(lacks, item{fields: map[string]any{"x": 1.5}}) {
		t.Error("a comparison with a field that an item lacks is false")
	}
}

// A forked world does not change when the other one is written to.
func TestForkedWorldsAreApart(t *testing.T) {
	code := uint64(3)
	w := &world{collections: map[string]*collection{"a": newCollection("a", &program.Schema{Bits: 16})}}
	w.edit("a").put("k", &program.Item{Code: &code}, false)
	text := func(w *world) string {
		var b strings.Builder
		for _, name := range names(w) {
			c := w.collections[name]
			for _, key := range c.order {
				own, _ := c.space(0).code(key)
				fmt.Fprintf(&b, "%s %s %+v %x\n", name, key, *c.items[key], own)
			}
		}
		return b.String()
	}
	before, next := text(w), w.fork()
	other := uint64(9)
	next.edit("a").put("k", &program.Item{Code: &other, Labels: []string{"x"}}, false)
	next.edit("a").put("l", &program.Item{Code: &code}, false)
	next.edit("a").delete("k")
	if text(w) != before || text(next) == before {
		t.Errorf("before\n%safter\n%sthe other\n%s", before, text(w), text(next))
	}
}

// Merges and deletions follow the definition, key by key.
func TestModelOfItems(t *testing.T) {
	c := newCollection("a", &program.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}, {Name: "text",
		Dim: 3}}})
	c.put("k", &program.Item{Vectors: map[string]uint64{"image": 1}, Labels: []string{"a", "b", "a"},
		Fields: map[string]string{"n": "1"}, Payload: "p"}, false)
	c.put("k", &program.Item{Vectors: map[string]uint64{"text": 2}, Fields: map[string]string{"b": "true"}},
		true)
	it := c.items["k"]
	if len(it.vectors) != 2 || !slices.Equal(it.labels, []string{"a", "b"}) || it.payload != "p" ||
		!maps.Equal(it.fields, map[string]any{"n": int64(1), "b": true}) {
		t.Errorf("merged: %+v", it)
	}
	c.put("k", &program.Item{Unlabel: true, Unload: true}, true)
	if it = c.items["k"]; len(it.labels) != 0 || it.payload != "" || len(it.vectors) != 2 || it.row != 0 {
		t.Errorf("taken away: %+v", it)
	}
	c.put("", &program.Item{}, false)
	c.put("1", &program.Item{}, false)
	if key := c.put("", &program.Item{}, false); key != "2" || c.items["2"].row != 3 {
		t.Errorf("the next free number is %q, row %d", key, c.items["2"].row)
	}
	if !c.delete("1") || c.delete("1") || !slices.Equal(c.order, []string{"k", "0", "2"}) {
		t.Errorf("order %q", c.order)
	}
	c.put("1", &program.Item{}, false)
	if c.items["1"].row != 4 || !slices.Equal(c.labels, []string{"a", "b"}) {
		t.Errorf("row %d, labels %q", c.items["1"].row, c.labels)
	}
}

// A part of a world is a world of its own. It has one collection; and no vectors if it
// is index-only, but collections of given codes have none anyway.
func TestPartsOfWorlds(t *testing.T) {
	code := uint64(3)
	w := &world{collections: map[string]*collection{
		"a": newCollection("a", &program.Schema{Bits: 16}),
		"b": newCollection("b", &program.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}}),
	}}
	w.edit("a").put("k", &program.Item{Code: &code}, false)
	w.edit("b").put("k", &program.Item{Vectors: map[string]uint64{"image": 1}}, false)
	w.edit("b").indexes = []vectorIndex{{modality: "image", recall: .9}}
	only, without := w.part("b", false), w.part("", true)
	if !slices.Equal(names(only), []string{"b"}) || only.collections["b"].indexOnly {
		t.Errorf("%+v", only)
	}
	if len(only.collections["b"].indexes) != 1 || len(without.collections["b"].indexes) != 0 {
		t.Error("an index of vectors goes with the vectors")
	}
	if !slices.Equal(names(without), []string{"a", "b"}) || without.collections["a"].indexOnly ||
		!without.collections["b"].indexOnly {
		t.Errorf("%+v", without)
	}
	without.edit("b").delete("k")
	if w.collections["b"].indexOnly || w.collections["b"].items["k"] == nil ||
		only.collections["b"].items["k"] == nil {
		t.Error("a part changes the whole")
	}

	h := &history{now: without}
	for do, want := range map[string]bool{"put": true, "deletewhere": true, "train": true, "activate": false,
		"create": false, "get": false, "alter": true, "indexvectors": true, "dropindex": true} {
		got := h.refuses(&program.Op{Do: do, In: "b"})
		if got != want || h.refuses(&program.Op{Do: do, In: "a"}) {
			t.Errorf("%s of an index-only collection is refused: %v", do, got)
		}
		h.options.ReadOnly = true
		if got := h.refuses(&program.Op{Do: do, In: "a"}); got != (do != "get") {
			t.Errorf("%s, opened for reading only, is refused: %v", do, got)
		}
		h.options.ReadOnly = false
	}
}

// A collection refuses wrong alterations. Of the worlds that share a collection, only
// the one that is altered sees the alteration.
func TestAlterable(t *testing.T) {
	c := newCollection("a", &program.Schema{Modalities: []db.Modality{{Name: "image", Dim: 2}}})
	codes := newCollection("b", &program.Schema{Bits: 16})
	sound, place := db.Modality{Name: "sound", Dim: 3}, db.Field{Name: "place", Type: db.String}
	for i, tc := range []struct {
		c    *collection
		add  program.Schema
		want error
	}{
		{c, program.Schema{Modalities: []db.Modality{sound}, Fields: []db.Field{place}}, nil},
		{codes, program.Schema{Fields: []db.Field{place}}, nil},
		{codes, program.Schema{Modalities: []db.Modality{sound}, Fields: []db.Field{place}}, db.ErrInvalid},
		{c, program.Schema{}, db.ErrInvalid},
		{c, program.Schema{Modalities: []db.Modality{sound, sound}}, db.ErrInvalid},
		{c, program.Schema{Modalities: []db.Modality{sound},
			Fields: []db.Field{{Name: "sound", Type: db.Int}}},
			db.ErrInvalid},
		{c, program.Schema{Modalities: []db.Modality{{Name: "flat"}}}, db.ErrInvalid},
		{c, program.Schema{Fields: []db.Field{place, {Name: "when", Type: "date"}}}, db.ErrInvalid},
		{c, program.Schema{Fields: []db.Field{place, {Name: "image", Type: db.Int}}}, db.ErrExists},
		{c, program.Schema{Fields: []db.Field{{Name: "n", Type: db.Int}}, Modalities: []db.Modality{sound}},
			db.ErrExists},
	} {
		if got := tc.c.alterable(&tc.add); got != tc.want {
			t.Errorf("alteration %d: %v, want %v", i, got, tc.want)
		}
	}
	h := &history{now: &world{collections: map[string]*collection{"a": c}}}
	before := h.now
	if err := h.altered(&program.Op{In: "a", Schema: &program.Schema{Modalities: []db.Modality{sound},
		Fields: []db.Field{place}}}); err != nil {
		t.Fatal(err)
	}
	where := &program.Expr{Op: "has", Field: "sound"}
	if then, now := before.collections["a"].schema, h.now.collections["a"].schema; where.Valid(&then) ||
		then.HasField("place") || !where.Valid(&now) || !now.HasField("place") {
		t.Errorf("%+v, altered %+v", then, now)
	}
	it := &program.Item{Vectors: map[string]uint64{"sound": 1}, Fields: map[string]string{"place": "a"}}
	if then, now := before.collections["a"].made(it), h.now.collections["a"].made(it); len(then.vectors)+len(
		then.fields) > 0 || len(now.vectors) != 1 || len(now.fields) != 1 {
		t.Errorf("%+v, in the collection that is altered %+v", then, now)
	}
}

// An answer that lacks items has the others in their order and as similar; one that is exact lacks none
// between those that it has. What is missing is added up.
func TestAnswersThatLackItems(t *testing.T) {
	nan := math.NaN()
	want := []db.Hit{
		{Key: "a", Row: 3, Distance: -1, Similarity: .9, Score: nan},
		{Key: "b", Row: 1, Distance: -1, Similarity: .8, Score: nan},
		{Key: "c", Row: 7, Distance: -1, Similarity: .8, Score: nan},
		{Key: "d", Row: 2, Distance: -1, Similarity: .1, Score: nan},
	}
	less, moved := want[1], want[1]
	less.Similarity, moved.Row = .79, 5
	for i, tc := range []struct {
		hits               []db.Hit
		at                 int
		approximate, loose bool
		end                int // 0: they are wrong
	}{
		{hits: want, end: 4},
		{hits: want[1:3], at: 1, end: 3},
		{hits: want[1:]},
		{hits: want[1:], approximate: true, end: 4},
		{hits: []db.Hit{want[0], want[2]}, approximate: true, end: 3},
		{hits: []db.Hit{want[2], want[1]}, approximate: true},
		{hits: []db.Hit{want[1], want[1]}, approximate: true},
		{hits: []db.Hit{want[1]}, at: 2, approximate: true},
		{hits: []db.Hit{less}, approximate: true},
		{hits: []db.Hit{moved}, approximate: true},
		{hits: []db.Hit{moved}, approximate: true, loose: true, end: 2},
		{hits: []db.Hit{{Key: "e", Score: nan}}, approximate: true},
	} {
		if end, err := follow(tc.hits, want, tc.at, tc.approximate, tc.loose); (err == nil) != (tc.end > 0) ||
			err == nil && end != tc.end {
			t.Errorf("answer %d ends at %d, %v, want %d", i, end, err, tc.end)
		}
	}
	var r recallSum
	r.add([]db.Hit{want[0], want[2]}, want, .9) // as good as the first two
	if r.had != 1 || r.enough() != nil {
		t.Errorf("%+v, %v", r, r.enough())
	}
	for range 20 {
		r.add([]db.Hit{want[3]}, want, .9)
	}
	if r.had != 1 || r.enough() == nil {
		t.Errorf("%+v", r)
	}
}
