package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/encoder"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/model/fit"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// spoken makes vectors of words without a program: how often the words have the letters a to e.
type spoken struct{}

func (spoken) Takes(_, modality string) bool { return modality == "text" }

func (spoken) Encode(_ context.Context, _ string, m db.Modality, text string) (encoder.Vector, error) {
	if text == "refuse" {
		return encoder.Vector{}, errors.New("the encoder of text: no such word")
	}
	x := make([]float32, m.Dim)
	for i := range x {
		x[i] = float32(strings.Count(text, string(rune('a'+i))))
	}
	return encoder.Vector{Dense: x}, nil
}

// newDatabase returns a database in memory with a collection of notes, which take words, and an empty one.
func newDatabase(t testing.TB) api.Database {
	t.Helper()
	d, err := db.Open(t.TempDir(), nil)
	check(t, err)
	t.Cleanup(func() { check(t, d.Close()) })
	c, err := d.CreateCollection(t.Context(), "notes", db.Schema{
		Modalities: []db.Modality{{Name: "text", Dim: 5}, {Name: "image", Dim: 3}},
		Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true},
			{Name: "title", Type: db.String}},
		Encoders: []db.Encoder{{Modality: "text", Input: db.InputText, Command: []string{"true"}},
			{Modality: "image", Input: db.InputText, Command: []string{"true"}}}})
	check(t, err)
	_, err = d.CreateCollection(t.Context(), "other", db.Schema{
		Modalities: []db.Modality{{Name: "e", Dim: 2}}})
	check(t, err)
	for i := range 20 {
		x := make([]float32, 5)
		x[i%5] = float32(1 + i)
		x[(i+1)%5] = 1
		_, err := c.Put(t.Context(), &db.Item{Key: fmt.Sprintf("note %02d", i),
			Labels:  []string{[]string{"cat", "dog"}[i%2]},
			Fields:  map[string]any{"year": 2000 + i, "title": "t"},
			Vectors: map[string][]float32{"text": x}, Payload: fmt.Appendf(nil, "text of note %d", i)})
		check(t, err)
	}
	return api.Folder(d, nil)
}

// connect returns the session of an assistant with a server.
func connect(t testing.TB, d api.Database, opt Options) *mcp.ClientSession {
	t.Helper()
	opt.Words = spoken{}
	opt.Report = func(fault string) { t.Error(fault) }
	s, err := New(d, opt)
	check(t, err)
	ours, theirs := mcp.NewInMemoryTransports()
	_, err = s.tool.Connect(t.Context(), theirs, nil)
	check(t, err)
	c, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), ours, nil)
	check(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// raw calls a tool, and checks that the answer has the promised size.
func raw(t testing.TB, c *mcp.ClientSession, tool, arguments string, most int) *mcp.CallToolResult {
	t.Helper()
	r, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatalf("%s %.200s: %v", tool, arguments, err)
	}
	b, err := json.Marshal(r)
	check(t, err)
	if len(b) > most {
		t.Errorf("%s %.200s: an answer of %d bytes, more than %d", tool, arguments, len(b), most)
	}
	return r
}

func text(r *mcp.CallToolResult) string { return r.Content[0].(*mcp.TextContent).Text }

// ask calls a tool and decodes its answer, which is the same in both forms.
func ask[T any](t testing.TB, c *mcp.ClientSession, tool, arguments string) (out T) {
	t.Helper()
	r := raw(t, c, tool, arguments, defaultBytes)
	if r.IsError {
		t.Fatalf("%s %s: %s", tool, arguments, text(r))
	}
	check(t, json.Unmarshal([]byte(text(r)), &out))
	structured, err := json.Marshal(r.StructuredContent)
	check(t, err)
	var one, other any
	check(t, json.Unmarshal(structured, &one))
	check(t, json.Unmarshal([]byte(text(r)), &other))
	if fmt.Sprint(one) != fmt.Sprint(other) {
		t.Errorf("%s: the text and the structured content differ: %s, %s", tool, text(r), structured)
	}
	return out
}

// refused calls a tool that has to answer with an error.
func refused(t testing.TB, c *mcp.ClientSession, tool, arguments string, parts ...string) {
	t.Helper()
	r := raw(t, c, tool, arguments, defaultBytes)
	if !r.IsError {
		t.Errorf("%s %.200s: %.300s instead of an error with %q", tool, arguments, text(r), parts)
		return
	}
	for _, part := range append(parts, tool+": ") {
		if !strings.Contains(text(r), part) {
			t.Errorf("%s %.200s: %q lacks %q", tool, arguments, text(r), part)
		}
	}
}

type hits struct {
	Hits []struct {
		Key        string
		Distance   *int
		Similarity *float64
		Labels     []string
		Fields     map[string]any
		Text       string
	}
	LeftOut int `json:"left_out"`
	Next    string
	Total   *int
	Note    string
}

func (h *hits) keys() (all []string) {
	for _, x := range h.Hits {
		all = append(all, x.Key)
	}
	return all
}

type items struct {
	Items []struct {
		Key  string
		Text string
	}
	Next    string
	LeftOut int `json:"left_out"`
}

func TestTools(t *testing.T) {
	c := connect(t, newDatabase(t), Options{Write: true})
	list := ask[struct{ Collections []collectionForm }](t, c, "list_collections", `{}`)
	if len(list.Collections) != 2 || list.Collections[0].Name != "notes" || list.Collections[0].Items != 20 ||
		list.Collections[0].Labels != 2 || !list.Collections[0].Modalities[0].Words ||
		list.Collections[0].Modalities[1].Words || list.Collections[0].Fields[0].Type != "int" {
		t.Errorf("%+v", list)
	}
	if n := ask[struct{ Count int }](t, c, "count_items",
		`{"collection":"notes","where":"label = ? AND year >= ?","args":["cat",2010]}`); n.Count != 5 {
		t.Errorf("count %d", n.Count)
	}
	f := ask[db.Facets](t, c, "facets", `{"collection":"notes","by":"label"}`)
	if len(f.Counts) != 2 || f.Counts[0].Items != 10 {
		t.Errorf("%+v", f)
	}
	it := ask[struct {
		Key, Text string
		Labels    []string
		Vectors   []vectorForm
	}](t, c, "get_item", `{"collection":"notes","key":"note 03","include":["vectors"],"max_bytes":null}`)
	if it.Text != "text of note 3" || len(it.Vectors) != 1 || it.Vectors[0].Values[3] != 4 {
		t.Errorf("%+v", it)
	}
}

// Searches by words, by an item and by a vector find what package db finds, page by page.
func TestSearch(t *testing.T) {
	d := newDatabase(t)
	c := connect(t, d, Options{Collection: "notes"})
	collection, err := d.Collection(t.Context(), "notes")
	check(t, err)
	var want []string
	r, err := collection.Search(t.Context(), db.Query{From: "text", Vector: []float32{2, 1, 0, 0, 0}, K: 20})
	check(t, err)
	for _, h := range r.Hits {
		want = append(want, h.Key)
	}
	for _, by := range []string{`"words":"aba"`, `"vector":[2,1,0,0,0],"from":"text"`} {
		var got []string
		after := ""
		for {
			h := ask[hits](t, c, "search", fmt.Sprintf(`{%s,"k":7,"after":%q}`, by, after))
			got = append(got, h.keys()...)
			if after = h.Next; after == "" {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", by, got, want)
		}
	}
	h := ask[hits](t, c, "search", `{"key":"note 03","k":2,"where":"label = 'cat'","include":["payload"]}`)
	if len(h.Hits) != 2 || h.Hits[0].Labels[0] != "cat" ||
		!strings.HasPrefix(h.Hits[0].Text, "text of note") ||
		h.Hits[0].Fields["title"] != "t" || h.Hits[0].Distance != nil || h.Hits[0].Similarity == nil ||
		slices.Contains(h.keys(), "note 03") {
		t.Errorf("%+v", h)
	}
	if h := ask[hits](t, c, "search", `{"words":"a","min_similarity":0.9}`); len(h.Hits) == 0 ||
		*h.Hits[len(h.Hits)-1].Similarity < 0.9 {
		t.Errorf("%+v", h)
	}
	// Of a learned collection, also by codes.
	_, err = collection.Train(t.Context(), db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 6}})
	check(t, err)
	h = ask[hits](t, c, "search", `{"key":"note 03","radius":16,"k":3}`)
	if len(h.Hits) != 3 || h.Hits[0].Distance == nil || h.Total == nil || *h.Total != 19 {
		t.Errorf("%+v", h)
	}
	if h := ask[hits](t, c, "search", `{"code":"0000"}`); len(h.Hits) != 10 {
		t.Errorf("%+v", h)
	}
	if h := ask[hits](t, c, "search", `{"words":"aba","recall":1,"k":20}`); !slices.Equal(h.keys(), want) {
		t.Errorf("by vectors: %q", h.keys())
	}
	ask[hits](t, c, "search", `{"words":"a","min_similarity":0.5}`)
	// By the words of texts, alone and fused.
	check(t, collection.Alter(t.Context(), db.Alteration{IndexWords: []string{"title"}}))
	_, err = collection.Merge(t.Context(), &db.Item{Key: "note 05",
		Fields: map[string]any{"title": "Rare words"}})
	check(t, err)
	for _, q := range []string{`{"in_fields":"rare"}`, `{"in_fields":"WORDS rare","key":"note 03","k":3}`} {
		if h := ask[hits](t, c, "search", q); !slices.Contains(h.keys(), "note 05") {
			t.Errorf("%s: %q", q, h.keys())
		}
	}
	refused(t, c, "search", `{"in_fields":"rare","min_similarity":0.5}`, "no similarity")
}

// What an assistant stores with words is found by words, also by another assistant.
func TestRemember(t *testing.T) {
	d := newDatabase(t)
	c, other := connect(t, d, Options{Write: true}), connect(t, d, Options{})
	type stored struct {
		Stored int
		Keys   []string
		Note   string
	}
	put := ask[stored](t, c, "put_items", `{"collection":"notes","items":[
		{"key":"memory","labels":["new"],"fields":{"year":2026},"text":"the fact","words":{"text":"eeee"}},
		{"text":"without a key","vectors":{"image":[1,2,3]}}]}`)
	if put.Note != "" || put.Stored != 2 || put.Keys[0] != "memory" || put.Keys[1] == "" {
		t.Errorf("%+v", put)
	}
	h := ask[hits](t, other, "search",
		`{"collection":"notes","words":"e","where":"label = 'new'","include":["payload"]}`)
	if len(h.Hits) != 1 || h.Hits[0].Key != "memory" || h.Hits[0].Text != "the fact" {
		t.Errorf("%+v", h)
	}
	ask[any](t, c, "put_items",
		`{"collection":"notes","merge":true,"items":[{"key":"memory","labels":["changed"]}]}`)
	it := ask[struct {
		Text   string
		Labels []string
		Fields map[string]int
	}](t, c, "get_item", `{"collection":"notes","key":"memory"}`)
	if it.Text != "the fact" || it.Labels[0] != "changed" || it.Fields["year"] != 2026 {
		t.Errorf("%+v", it)
	}
	put = ask[stored](t, c, "put_items", `{"collection":"notes","items":[{"key":"mute","text":"x"}]}`)
	if !strings.Contains(put.Note, "1 of them by words") {
		t.Errorf("%+v", put)
	}
	// All or none.
	refused(t, c, "put_items",
		`{"collection":"notes","items":[{"key":"x","text":"x"},{"key":"y","fields":{"year":"soon"}}]}`,
		"items[1]", "year")
	refused(t, c, "get_item", `{"collection":"notes","key":"x"}`, "no item")
	gone := ask[map[string]int](t, c, "delete_items", `{"collection":"notes","keys":["memory","nobody"]}`)
	if gone["deleted"] != 1 || gone["not_there"] != 1 {
		t.Errorf("%v", gone)
	}
	refused(t, other, "get_item", `{"collection":"notes","key":"memory"}`, "no item")
}

// Lists go on where they ended.
func TestPages(t *testing.T) {
	c := connect(t, newDatabase(t), Options{Collection: "notes"})
	var got []string
	after := ""
	for {
		l := ask[items](t, c, "list_items", fmt.Sprintf(`{"where":"label = 'dog'","limit":3,"after":%q}`, after))
		for _, it := range l.Items {
			got = append(got, it.Key)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if len(got) != 10 || got[0] != "note 01" || got[9] != "note 19" {
		t.Errorf("%q", got)
	}
	if l := ask[items](t, c, "list_items", `{"include":["payload"],"limit":1}`); l.Items[0].Text != "text of note 0" {
		t.Errorf("%+v", l)
	}
	refused(t, c, "list_items", `{"after":"nobody"}`, "after: ", "nobody")
	refused(t, c, "list_items", `{"after":"note 00","where":"label = 'dog'"}`, "after: ", "does not match")
}

// A call with a wrong argument fails with an error that names the argument and says what is possible.
func TestNonsense(t *testing.T) {
	c := connect(t, newDatabase(t), Options{Write: true})
	for _, x := range []struct {
		tool, arguments string
		parts           []string
	}{
		{"search", `{"words":"a","k":1000000000}`, []string{"collection is missing", `"notes"`, `"other"`}},
		{"search", `{"collection":"nots","words":"a"}`, []string{`"nots"`, `"notes", "other"`}},
		{"search", `{"collection":"notes","words":"a","k":1000000000}`, []string{"k: 1000000000", "1 to 100"}},
		{"search", `{"collection":"notes","words":"a","k":0}`, []string{"k: 0"}},
		{"search", `{"collection":"notes","words":"a","k":-3}`, []string{"k: -3"}},
		{"search", `{"collection":"notes","words":"a","k":2.5}`, []string{"k: a whole number", "2.5"}},
		{"search", `{"collection":"notes","words":"a","k":"ten"}`, []string{"k: a whole number", "string"}},
		{"search", `{"collection":"notes","words":["a"]}`, []string{"words: text is expected, not array"}},
		{"search", `{"collection":"notes","words":""}`, []string{"words: text"}},
		{"search", `{"collection":"notes","words":"refuse"}`, []string{"words: ", "no such word"}},
		{"search", `{"collection":"notes","words":"a","from":"image"}`, []string{"does not run", "--trust"}},
		{"search", `{"collection":"other","words":"a"}`, []string{"takes no words", "fddhdb encoder"}},
		{"search", `{"collection":"notes","words":"a","from":"sound"}`, []string{"from: ", `"text", "image"`}},
		{"search", `{"collection":"notes","words":"a","to":"sound"}`, []string{"to: ", `"text", "image"`}},
		{"search", `{"collection":"notes"}`, []string{"one of words, key, code and vector"}},
		{"search", `{"collection":"notes","words":"a","key":"note 01"}`, []string{"one of words", "are given"}},
		{"search", `{"collection":"notes","key":"nobody"}`, []string{`"nobody"`, "list_items"}},
		{"search", `{"collection":"notes","key":""}`, []string{"key: "}},
		{"search", `{"collection":"notes","vector":[1,2,3,4,5]}`, []string{"from is missing"}},
		{"search", `{"collection":"notes","from":"text","vector":[1,2]}`, []string{"5", "2"}},
		{"search", `{"collection":"notes","from":"text","vector":["NaN"]}`, []string{"vector: ", "NaN"}},
		{"search", `{"collection":"notes","from":"text","vector":"AADAfwAAwH8AAMB/AADAfwAAwH8="}`, nil}, // NaNs
		{"search", `{"collection":"notes","from":"text","vector":[1e999,0,0,0,0]}`, []string{"vector: "}},
		{"search", `{"collection":"notes","from":"text","vector":[]}`, nil},
		{"search", `{"collection":"notes","code":"xyz"}`, []string{"code: ", "hexadecimal"}},
		{"search", `{"collection":"notes","code":"00"}`, []string{"code"}},
		{"search", `{"collection":"notes","key":"note 01","radius":3}`, []string{"leave out code and radius"}},
		{"search", `{"collection":"notes","words":"a","radius":-1}`, []string{"radius"}},
		{"search", `{"collection":"notes","words":"a","recall":7}`, []string{"recall: 7"}},
		{"search", `{"collection":"notes","words":"a","min_similarity":"x"}`, []string{"min_similarity: a number"}},
		{"search", `{"collection":"notes","words":"a","include":["all"]}`, []string{"include: ", "payload"}},
		{"search", `{"collection":"notes","words":"a","after":"nonsense"}`, []string{"cursor"}},
		{"search", `{"collection":"notes","words":"a","where":"colour = 'red'"}`,
			[]string{"where: column 1", "colour", "year"}},
		{"search", `{"collection":"notes","words":"a","where":"year ="}`, []string{"where: column 7"}},
		{"search", `{"collection":"notes","words":"a","where":"year = ?"}`, []string{"where: "}},
		{"search", `{"collection":"notes","word":"a"}`, []string{`no argument "word"`, "words"}},
		{"search", `{"collection":7}`, []string{"collection: text is expected, not number"}},
		{"search", `[]`, []string{"no JSON object"}},
		{"list_items", `{"collection":"notes","limit":101}`, []string{"limit: 101", "1 to 100"}},
		{"list_items", `{"collection":"notes","args":{"a":1}}`, []string{"args: an array is expected"}},
		{"list_items", `{"collection":"notes","max_bytes":1}`, []string{"max_bytes: 1"}},
		{"list_items", `{"collection":"notes","max_bytes":10000000}`, []string{"max_bytes: 10000000", "1048576"}},
		{"list_collections", `{"collection":"notes"}`, []string{"no argument", "max_bytes"}},
		{"get_item", `{"collection":"notes"}`, []string{"key is missing"}},
		{"get_item", `{"collection":"notes","key":""}`, []string{"no item"}},
		{"get_item", `{"collection":"notes","key":"nobody"}`, []string{`"nobody"`}},
		{"get_item", `{"collection":"notes","key":"x","include":"vectors"}`, []string{"include: an array"}},
		{"get_item", `{"collection":"notes","key":"x","include":["payload"]}`, []string{"include: ", "vectors"}},
		{"count_items", `{"collection":"notes","where":7}`, []string{"where: text is expected"}},
		{"facets", `{"collection":"notes"}`, []string{"by is missing"}},
		{"facets", `{"collection":"notes","by":"colour"}`, []string{"colour", "year"}},
		{"facets", `{"collection":"notes","by":""}`, nil},
		{"put_items", `{"collection":"notes"}`, []string{"items is missing"}},
		{"put_items", `{"collection":"notes","items":[]}`, []string{"items: 0 items"}},
		{"put_items", `{"collection":"notes","items":[{}]}`, []string{"items[0]"}},
		{"put_items", `{"collection":"notes","items":[{"keys":"x"}]}`, []string{"items: ", "keys"}},
		{"put_items", `{"collection":"notes","items":[{"key":7}]}`, []string{"items: ", "key: text is expected"}},
		{"put_items", `{"collection":"notes","items":{"key":"x"}}`, []string{"items: an array is expected"}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","fields":{"colour":"red"}}]}`,
			[]string{"items[0]", "colour"}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","words":{"sound":"moo"}}]}`,
			[]string{"items[0].words", `"text", "image"`}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","words":{"image":"moo"}}]}`, []string{"--trust"}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","vectors":{"text":[1]}}]}`, []string{"items[0]", "5"}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","vectors":{"text":null}}]}`, []string{"null"}},
		{"put_items", `{"collection":"notes","items":[{"key":"x","words":{"text":"a"},"vectors":{"text":[1,2,3,4,5]}}]}`,
			[]string{"one of both"}},
		{"delete_items", `{"collection":"notes","keys":[]}`, []string{"keys: 0 keys"}},
		{"delete_items", `{"collection":"notes","keys":"note 01"}`, []string{"keys: an array"}},
		{"delete_items", `{"collection":"notes","keys":[""]}`, []string{"keys[0]"}},
		{"delete_items", `{"collection":"notes","keys":[null]}`, []string{"keys[0]"}},
	} {
		refused(t, c, x.tool, x.arguments, x.parts...)
	}
	if n := ask[struct{ Count int }](t, c, "count_items", `{"collection":"notes"}`); n.Count != 20 {
		t.Errorf("%d items afterwards", n.Count)
	}
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "drop"}); err == nil ||
		!strings.Contains(err.Error(), `no tool "drop" here: there is list_collections, search`) {
		t.Errorf("a tool that there is not: %v", err)
	}
}

// Without Options.Write the server has no tool that changes the database. Annotations tell them apart.
func TestReadOnly(t *testing.T) {
	d := newDatabase(t)
	for _, write := range []bool{false, true} {
		c := connect(t, d, Options{Write: write})
		list, err := c.ListTools(t.Context(), nil)
		check(t, err)
		var writing []string
		for _, tool := range list.Tools {
			if !tool.Annotations.ReadOnlyHint {
				writing = append(writing, tool.Name)
			}
			b, err := json.Marshal(tool)
			check(t, err)
			if strings.Contains(string(b), `"null"`) || tool.Description == "" {
				t.Errorf("%s", b)
			}
		}
		if want := []string{"delete_items", "put_items"}; write && !slices.Equal(writing, want) ||
			!write && len(writing) > 0 {
			t.Errorf("write %v: %q", write, writing)
		}
	}
	c := connect(t, d, Options{})
	if _, err := c.CallTool(t.Context(), &mcp.CallToolParams{Name: "delete_items",
		Arguments: json.RawMessage(`{"keys":["note 01"]}`)}); err == nil {
		t.Error("an item was deleted")
	}
}

// With one collection, tools take no other.
func TestOneCollection(t *testing.T) {
	c := connect(t, newDatabase(t), Options{Collection: "notes"})
	refused(t, c, "count_items", `{"collection":"other"}`, "no argument")
	if n := ask[struct{ Count int }](t, c, "count_items", `{}`); n.Count != 20 {
		t.Errorf("%d items", n.Count)
	}
	list := ask[struct{ Collections []collectionForm }](t, c, "list_collections", `null`)
	if len(list.Collections) != 1 || list.Collections[0].Name != "notes" {
		t.Errorf("%+v", list)
	}
}

// An answer has at most max_bytes bytes, by default 8 KiB, however large items are. It says what it omits.
func TestAnswersAreBounded(t *testing.T) {
	d, err := db.Open(t.TempDir(), nil)
	check(t, err)
	defer d.Close()
	var fields []db.Field
	for i := range 200 {
		fields = append(fields, db.Field{Name: fmt.Sprintf("field-%d-%s", i, strings.Repeat("e", 200)),
			Type: db.String})
	}
	huge, err := d.CreateCollection(t.Context(), "huge", db.Schema{Fields: fields,
		Modalities: []db.Modality{{Name: "text", Dim: 2000}}})
	check(t, err)
	for i := range 30 {
		_, err := d.CreateCollection(t.Context(), fmt.Sprintf("c%02d-%s", i, strings.Repeat("x", 200)),
			db.Schema{Modalities: []db.Modality{{Name: strings.Repeat("m", 200), Dim: 2}}})
		check(t, err)
		it := &db.Item{Key: fmt.Sprintf("%02d%s", i, strings.Repeat("\x02", 1000)), Fields: map[string]any{},
			Vectors: map[string][]float32{"text": make([]float32, 2000)},
			Payload: bytes.Repeat([]byte("<\"&"), 1<<16)}
		it.Vectors["text"][i] = 1.2345678
		for j, f := range fields {
			it.Fields[f.Name] = strings.Repeat("\"\n", 10*j)
			it.Labels = append(it.Labels, fmt.Sprintf("label %d %s", j, strings.Repeat("\\", 900)))
		}
		_, err = huge.Put(t.Context(), it)
		check(t, err)
	}
	var picture bytes.Buffer
	check(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 30, 30))))
	_, err = huge.Put(t.Context(), &db.Item{Key: "picture", Payload: picture.Bytes()})
	check(t, err)
	_, err = huge.Put(t.Context(), &db.Item{Key: "large picture", Payload: append(picture.Bytes(),
		make([]byte, 20_000)...)})
	check(t, err)
	_, err = huge.Put(t.Context(), &db.Item{Key: "bytes", Payload: make([]byte, 1<<20)})
	check(t, err)
	_, err = huge.Put(t.Context(), &db.Item{Key: "poem", Payload: []byte(strings.Repeat("ä", 3000))})
	check(t, err)

	c := connect(t, api.Folder(d, nil), Options{Write: true})
	key, err := json.Marshal(fmt.Sprintf("00%s", strings.Repeat("\x02", 1000)))
	check(t, err)
	for _, most := range []int{leastBytes, defaultBytes, 100_000, mostBytes} {
		for tool, arguments := range map[string]string{
			"list_collections": `{`,
			"search":           fmt.Sprintf(`{"collection":"huge","key":%s,"k":25,"include":["payload"],`, key),
			"list_items":       `{"collection":"huge","include":["payload"],"limit":25,`,
			"get_item":         fmt.Sprintf(`{"collection":"huge","include":["vectors"],"key":%s,`, key),
			"facets":           `{"collection":"huge","by":"label","limit":1000,`,
		} {
			r := raw(t, c, tool, fmt.Sprintf(`%s"max_bytes":%d}`, arguments, most), most)
			if r.IsError {
				t.Errorf("%s within %d: %s", tool, most, text(r))
			}
			if most <= defaultBytes && !strings.Contains(text(r), "left_out") &&
				!strings.Contains(text(r), "max_bytes") {
				t.Errorf("%s within %d says nothing of what is missing: %.300s", tool, most, text(r))
			}
		}
	}
	refused(t, c, "search", `{"collection":"huge","key":"bytes","from":"`+strings.Repeat("<", 200)+`"}`, "no modality")
	refused(t, c, "search", `{"collection":"`+strings.Repeat(`\u0001`, 3000)+`"}`, "no collection")

	// All items come by next, though each answer has few.
	var got []string
	for after, pages := "", 0; ; pages++ {
		l := ask[items](t, c, "list_items",
			fmt.Sprintf(`{"collection":"huge","where":"NOT has(text)","limit":2,"include":["payload"],"after":%q}`, after))
		for _, it := range l.Items {
			got = append(got, it.Key)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if want := []string{"picture", "large picture", "bytes", "poem"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// A picture is looked at where it fits, a long text says how long it is.
	r := raw(t, c, "get_item", `{"collection":"huge","key":"picture"}`, defaultBytes)
	if p, is := r.Content[1].(*mcp.ImageContent); !is || !bytes.Equal(p.Data, picture.Bytes()) {
		t.Errorf("%+v", r.Content)
	}
	r = raw(t, c, "get_item", `{"collection":"huge","key":"large picture"}`, defaultBytes)
	if p, is := r.Content[1].(*mcp.TextContent); !is || !strings.Contains(p.Text, "max_bytes") ||
		!strings.Contains(text(r), `"payload_type":"image/png"`) {
		t.Errorf("%s", text(r))
	}
	if r = raw(t, c, "get_item", `{"collection":"huge","key":"large picture","max_bytes":100000}`,
		100_000); len(r.Content) != 2 {
		t.Errorf("%s", text(r))
	}
	if r = raw(t, c, "get_item", `{"collection":"huge","key":"poem"}`, defaultBytes); !strings.Contains(text(r),
		" of 6000 bytes]") || len(text(r)) < 3000 {
		t.Errorf("%s", text(r))
	}
	if r = raw(t, c, "get_item", `{"collection":"huge","key":"poem","max_bytes":20000}`,
		20_000); !strings.Contains(text(r), strings.Repeat("ä", 3000)) {
		t.Errorf("%s", text(r))
	}
}

// Whatever the arguments are, they are taken, or refused by an error.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{"words":"a","k":3}`, `{"vector":[1,2],"from":"e"}`, `{"vector":{"i":[1],"v":[2]}}`,
		`{"items":[{"key":"x","fields":{"a":1},"words":{"e":"x"},"vectors":{"e":"AAAA"}}]}`, `[]`, `{"k":1e99}`,
		`null`, ``, `{"args":[1,[2,"x"]],"code":"00ff"}`, `{"keys":[null]}`, `{"K":1,"k":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, in := range []any{&searchIn{}, &putIn{}, &deleteIn{}, &listItemsIn{}, &facetsIn{}} {
			if err := parse(b, in); err != nil && len(failure(err.Error()).Content) != 1 {
				t.Errorf("%q: %v", b, err)
			}
		}
	})
}
