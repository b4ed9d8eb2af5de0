package db_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/report"
)

// Whatever the database returns can be encoded as JSON, that of queries by code, which have
// no scores, too; its names are those of JSON, not of Go; and a type that has a form of its own
// reads it, too, as encoding/json would take it for another one without an error.
func TestResultsAreJSON(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	d, c := filterable(t)
	var results []any
	words := need(c.Get(ctx, "k3"))(t).Vectors["text"]
	code, _ := need2(c.EncodeQuery(ctx, db.Query{From: "text", Vector: words}))(t)
	for _, q := range []db.Query{{From: "text", To: "image", Vector: words, K: 3}, {Code: code},
		{Code: code, K: 1 << 20}, {Key: "k1"},
		{Code: code, Where: "label = 'nobody'"}, {From: "text", Vector: words, Rerank: db.RerankAsymmetric}} {
		results = append(results, need(c.Search(ctx, q))(t))
		explain, found := need2(dbkit.Explain(ctx, c, q, 4))(t)
		results = append(results, explain, found)
		runs := need(c.SearchRadius(ctx, q, 8))(t)
		for run, err := range runs.All(ctx) {
			results = append(results, run, err)
		}
		for hit, err := range runs.Hits(ctx) {
			results = append(results, hit, err)
		}
		must(t, runs.Close())
	}
	for coded, err := range c.Codes(ctx, "") {
		results = append(results, coded, err)
		break
	}
	e := db.Evaluation{Queries: map[string][][]float32{"text": {words}}, Labels: [][]string{{"it's"}}}
	results = append(results, need(c.Evaluate(ctx, e))(t))
	e.Labels = [][]string{{"nobody has it"}} // a query to which nothing is relevant
	results = append(results, need(c.Evaluate(ctx, e))(t))
	opt := db.TrainOptions{Activate: true}
	opt.Bits, opt.Anchors = 16, 20
	results = append(results, need(c.Train(ctx, opt))(t), need(c.Reindex(ctx, db.ReindexOptions{}))(t))
	need(c.Put(ctx, &db.Item{Key: "new", Labels: []string{"it's"},
		Vectors: map[string][]float32{"text": words}}))(t)
	results = append(results, need(c.Update(ctx, db.UpdateOptions{}))(t), need(c.Spaces(ctx))(t))
	store := need(backup.Folder(t.TempDir()))(t)
	results = append(results, need(d.Backup(ctx, store, db.BackupOptions{}))(t),
		need(backup.List(ctx, store))(t), need(backup.Verify(ctx, store, backup.VerifyOptions{}, nil))(t),
		need(backup.Prune(ctx, store, backup.PruneOptions{Keep: 1}))(t))
	results = append(results, need(d.Stats())(t), need(c.Stats(ctx))(t), need(c.Schema())(t),
		need(d.Verify(ctx, db.VerifyOptions{}, nil))(t), d.Recovery(), report.Loss{}, report.Finding{},
		report.Repairing{})
	for it, err := range c.Items(ctx, "") {
		results = append(results, it, err)
	}
	for _, r := range results {
		fine(t, errOf(json.Marshal(r)), r)
		if r != nil {
			checkNames(t, reflect.TypeOf(r), map[reflect.Type]bool{})
		}
	}
}

// checkNames reports fields that would be encoded under their names in Go, and types that are
// encoded and not decoded.
func checkNames(t *testing.T, typ reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	if typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if typ.Implements(reflect.TypeFor[json.Marshaler]()) {
		failIf(t, !reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()),
			"%v is written as JSON in a form of its own, and not read", typ)
		return
	}
	if seen[typ] {
		return
	}
	seen[typ] = true
	switch typ.Kind() {
	case reflect.Slice, reflect.Map, reflect.Array:
		checkNames(t, typ.Elem(), seen)
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			failIf(t, f.IsExported() && !f.Anonymous && (name == "" || name != strings.ToLower(name)),
				"field %s of %v has the JSON name %q", f.Name, typ, name)
			if f.IsExported() && name != "-" {
				checkNames(t, f.Type, seen)
			}
		}
	}
}

// The JSON of answers and items has these names, and can be read again.
func TestJSONForms(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		value any
		want  string
	}{
		{db.Hit{Key: "a", Row: 7, Distance: 2, Score: 1.5, Similarity: .7},
			`{"key":"a","row":7,"distance":2,"score":1.5,"similarity":0.7}`},
		{db.Hit{Key: "<b>", Score: math.NaN(), Similarity: nan},
			`{"key":"<b>","row":0,"distance":0,"score":null,"similarity":null}`},
		{db.Hit{Key: "v", Distance: -1, Score: math.NaN(), Similarity: .5},
			`{"key":"v","row":0,"distance":null,"score":null,"similarity":0.5}`},
		{db.Hit{Key: "a", Item: &db.Item{Key: "a", Labels: []string{"x"}}},
			`{"key":"a","row":0,"distance":0,"score":0,"similarity":0,"item":{"key":"a","labels":["x"]}}`},
		{db.Result{Space: 1, Revision: 2}, `{"hits":[],"next":null,"space":1,"revision":2}`},
		{db.Result{Facets: []db.Facets{{By: "x", Counts: []db.FacetCount{{"a", 2}, {int64(3), 1}, {2.0, 1},
			{true, 1}}, Distinct: 5, Missing: 1, Items: 6}}},
			`{"hits":[],"next":null,"space":0,"revision":0,"facets":[{"by":"x","counts":[{"value":"a","items":2},{"value":3,"items":1},{"value":2.0,"items":1},{"value":true,"items":1}],"distinct":5,"missing":1,"items":6}]}`},
		{db.Result{Hits: []db.Hit{{Key: "a", Score: math.NaN(), Similarity: nan}}, Next: "AQ", Total: 3,
			Space: 1, Revision: 1, Rerank: db.RerankAsymmetric},
			`{"hits":[{"key":"a","row":0,"distance":0,"score":null,"similarity":null}],"next":"AQ","total":3,"space":1,"revision":1,"rerank":"asymmetric"}`},
		{db.Item{Key: "a"}, `{"key":"a","labels":[]}`},
		{db.Item{
			Key: "a", Vectors: map[string][]float32{"image": {0.25, 1}},
			Sparse: map[string]db.Sparse{"text": {Index: []uint32{3}, Value: []float32{2}}, "tags": {}},
			Labels: []string{"x"}, Fields: map[string]any{"b": true, "f": 5.0, "n": int64(5), "s": "&"},
			Payload: []byte{0, 1}, Code: []byte{0xab}, CodeFrom: "labels",
		},
			`{"key":"a","vectors":{"image":[0.25,1],"tags":{"i":[],"v":[]},"text":{"i":[3],"v":[2]}},"labels":["x"],"fields":{"b":true,"f":5.0,"n":5,"s":"&"},"payload":"AAE=","code":"ab","code_from":"labels"}`},
		{db.Item{Key: "a", Labels: []string{}, Modalities: []string{"text"}},
			`{"key":"a","labels":[],"modalities":["text"]}`},
		{db.Run{Distance: 3, Score: math.NaN(), Rows: []uint32{1, 2}},
			`{"distance":3,"score":null,"rows":[1,2]}`},
		{db.Run{Distance: 3, Score: -2.5}, `{"distance":3,"score":-2.5}`},
		{db.Coded{Row: 1, Key: "a", Code: []byte{0xf0, 0x0f, 0, 1}}, `{"row":1,"key":"a","code":"f00f0001"}`},
	} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(c.value); err != nil {
			t.Errorf("%+v: %v", c.value, err)
			continue
		}
		got := strings.TrimSpace(b.String())
		failIf(t, got != c.want, "%+v is\n%s, want\n%s", c.value, got, c.want)
		again := reflect.New(reflect.TypeOf(c.value))
		if err := json.Unmarshal(b.Bytes(), again.Interface()); err != nil {
			t.Errorf("%s: %v", &b, err)
		} else if d := cmp.Diff(c.value, again.Elem().Interface(), cmpopts.EquateNaNs(),
			cmpopts.EquateEmpty()); d != "" {
			t.Errorf("%s: %s", &b, d)
		}
	}
}

// What is stored can be exported and put into another collection by its JSON.
func TestItemsAreMovedByJSON(t *testing.T) {
	d := dbkit.Open(t)
	schema := dbkit.PairsSchema
	schema.Modalities = append(slices.Clone(schema.Modalities),
		db.Modality{Name: "bag", Dim: 9, Sparse: true})
	from := need(d.CreateCollection(t.Context(), "from", schema))(t)
	to := need(d.CreateCollection(t.Context(), "to", schema))(t)
	for i, it := range dbkit.ViewItems(50, 1) {
		it.Sparse = map[string]db.Sparse{"bag": {Index: []uint32{uint32(i % 9)}, Value: []float32{1.5}}}
		it.Fields = map[string]any{"year": int64(i), "title": "a title", "price": float64(i) / 3}
		need(from.Put(t.Context(), it))(t)
	}
	for it, err := range from.Items(t.Context(), "") {
		b := need(json.Marshal(it))(t)
		var read db.Item
		stopIf(t, err != nil || json.Unmarshal(b, &read) != nil, "%s: %v", b, err)
		must(t, errOf(to.Put(t.Context(), &read)), b)
		stored := need(to.Get(t.Context(), it.Key))(t)
		d := cmp.Diff(it, stored, cmpopts.EquateEmpty())
		failIf(t, d != "", "%s: %s", b, d)
	}
	for _, bad := range []string{`{"key":1}`, `{"key":"a","vectors":{"image":"no"}}`, `{"fields":{"n":[1]}}`,
		`{"code":"xyz"}`, `[]`} {
		err := json.Unmarshal([]byte(bad), new(db.Item))
		failIf(t, err == nil, "%s is read", bad)
	}
}
