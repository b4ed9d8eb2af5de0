package db_test

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

func TestPutRefusesBadItems(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	codes, err := d.CreateCollection(ctx, "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	long := strings.Repeat("x", 1<<21)
	for name, tc := range map[string]struct {
		c    *db.Collection
		item db.Item
		says []string
	}{
		"key too long":       {c, db.Item{Key: long[:db.MaxKeyBytes+1]}, []string{"key"}},
		"key not UTF-8":      {c, db.Item{Key: "\xff"}, []string{"key", "UTF-8"}},
		"unknown modality":   {c, db.Item{Key: "k", Vectors: map[string][]float32{"smell": {1}}}, []string{`"smell"`, "image, text", "k"}},
		"wrong dimension":    {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2}}}, []string{`"text"`, "5 dimensions", "2", "k"}},
		"NaN":                {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2, nan, 4, 5}}}, []string{`"text"`, "dimension 2", "NaN"}},
		"Inf":                {c, db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2, 3, 4, inf}}}, []string{"dimension 4", "-Inf"}},
		"empty label":        {c, db.Item{Key: "k", Labels: []string{"a", ""}}, []string{"label"}},
		"label not UTF-8":    {c, db.Item{Key: "k", Labels: []string{"\xff"}}, []string{"label"}},
		"unknown field":      {c, db.Item{Key: "k", Fields: map[string]any{"size": 1}}, []string{`"size"`, "year"}},
		"type of field":      {c, db.Item{Key: "k", Fields: map[string]any{"year": "new"}}, []string{`"year"`, "int", "string"}},
		"float of field NaN": {c, db.Item{Key: "k", Fields: map[string]any{"price": math.NaN()}}, []string{`"price"`, "NaN"}},
		"long field":         {c, db.Item{Key: "k", Fields: map[string]any{"title": long}}, []string{`"title"`}},
		"code too short":     {codes, db.Item{Key: "k", Code: []byte{1}}, []string{"8 bits", "codes of 16"}},
		"no code":            {codes, db.Item{Key: "k"}, []string{"0 bits"}},
		"vectors with codes": {codes, db.Item{Key: "k", Code: []byte{1, 2}, Vectors: map[string][]float32{"text": {1}}}, []string{"bring codes"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tc.c.Put(ctx, &tc.item)
			if !errors.Is(err, db.ErrInvalid) {
				t.Fatalf("got %v", err)
			}
			for _, s := range tc.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
			if strings.Count(err.Error(), "fddhdb:") != 1 {
				t.Errorf("prefix of %q", err)
			}
			if n, err := tc.c.Count(); n != 0 || err != nil {
				t.Errorf("%d items, %v", n, err)
			}
		})
	}
	var de *db.DimensionError
	_, err = c.Put(ctx, &db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2}}})
	if !errors.As(err, &de) || *de != (db.DimensionError{Modality: "text", Got: 2, Want: 5}) {
		t.Errorf("%#v", err)
	}
	var ie *db.ItemError
	if !errors.As(err, &ie) || ie.Key != "k" {
		t.Errorf("%#v", err)
	}
}

// A bad item spoils its own batch and no other.
func TestBatchIsAllOrNothing(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	b := d.NewBatch()
	if err := b.Put(c, &db.Item{Key: "good"}); err != nil {
		t.Fatal(err)
	}
	if err := b.Put(c, &db.Item{Key: "bad", Labels: []string{""}}); !errors.Is(err, db.ErrInvalid) {
		t.Fatal(err)
	}
	if err := b.Put(c, &db.Item{Key: "good too"}); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("after a bad item: %v", err)
	}
	if err := b.Commit(ctx); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("commit: %v", err)
	}
	if n, _ := c.Count(); n != 0 {
		t.Errorf("%d items", n)
	}
	b = d.NewBatch()
	b.Put(c, &db.Item{Key: "good"})
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Commit(ctx); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("second commit: %v", err)
	}
	if n, _ := c.Count(); n != 1 {
		t.Errorf("%d items", n)
	}
}

func TestNothingPanics(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	var none db.Batch
	for what, err := range map[string]error{
		"Put nil":                 dbkit.Second(c.Put(ctx, nil)),
		"Merge nil":               dbkit.Second(c.Merge(ctx, nil)),
		"Batch.Put to nil":        d.NewBatch().Put(nil, &db.Item{Key: "k"}),
		"Batch.Delete from nil":   d.NewBatch().Delete(nil, "k"),
		"zero Batch.Put":          none.Put(c, &db.Item{Key: "k"}),
		"zero Batch.Commit":       none.Commit(ctx),
		"Delete of the empty key": dbkit.Second(c.Delete(ctx, "")),
	} {
		if !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := d.NewBatch().Commit(ctx); err != nil {
		t.Errorf("an empty batch: %v", err)
	}
	if n, err := c.Delete(ctx); n != 0 || err != nil {
		t.Errorf("delete nothing: %d, %v", n, err)
	}
}

func TestSchemaIsACopy(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	s, err := c.Schema()
	if err != nil {
		t.Fatal(err)
	}
	s.Modalities[0].Name, s.Fields[0].Name = "gotcha", "gotcha"
	stats, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	stats.Fields[0].Name = "gotcha"
	_, err = c.Put(ctx, &db.Item{Key: "k", Vectors: map[string][]float32{"image": make([]float32, 8)}, Fields: map[string]any{"year": 1}})
	if err != nil {
		t.Error(err)
	}
}

// A merge with nothing cannot make an item without a code, whatever else is in
// the batch.
func TestCodesOnlyItemsHaveCodes(t *testing.T) {
	d, c := dbkit.OpenCodes(t)
	b := d.NewBatch()
	b.Put(c, &db.Item{Code: []byte{1, 2}})
	b.Merge(c, &db.Item{})
	if err := b.Commit(ctx); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("merge without key and code: %v", err)
	}
	b = d.NewBatch()
	b.Put(c, &db.Item{Key: "k", Code: []byte{1, 2}})
	b.Delete(c, "k")
	b.Merge(c, &db.Item{Key: "k"})
	if err := b.Commit(ctx); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("merge after a delete: %v", err)
	}
	if n, _ := c.Count(); n != 0 {
		t.Errorf("%d items", n)
	}
}

func TestMergeTakesAwayWhatIsEmpty(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	if _, err := c.Put(ctx, &db.Item{Key: "k", Labels: []string{"a"}, Payload: []byte("p")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Merge(ctx, &db.Item{Key: "k"}); err != nil {
		t.Fatal(err)
	}
	if it, _ := c.Get(ctx, "k"); len(it.Labels) != 1 || string(it.Payload) != "p" {
		t.Errorf("after merging nothing: %+v", it)
	}
	if _, err := c.Merge(ctx, &db.Item{Key: "k", Labels: []string{}, Payload: []byte{}}); err != nil {
		t.Fatal(err)
	}
	if it, _ := c.Get(ctx, "k"); len(it.Labels) != 0 || len(it.Payload) != 0 {
		t.Errorf("after merging empty things: %+v", it)
	}
}

func TestAutomaticKeysAvoidThoseInUse(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	b := d.NewBatch()
	b.Put(c, &db.Item{Key: "1"})
	for range 3 {
		b.Put(c, &db.Item{Payload: []byte("p")})
	}
	if keys := b.Keys(); keys != nil {
		t.Errorf("keys before the commit: %q", keys)
	}
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if keys, want := b.Keys(), []string{"1", "0", "2", "3"}; !slices.Equal(keys, want) {
		t.Errorf("keys of the batch %v, want %v", keys, want)
	}
	key, err := c.Put(ctx, &db.Item{Labels: []string{"a"}})
	if key != "4" || err != nil {
		t.Errorf("the key is %q, %v", key, err)
	}
	if key, err := c.Merge(ctx, &db.Item{Key: "1", Labels: []string{"b"}}); key != "1" || err != nil {
		t.Errorf("the key of a merged item is %q, %v", key, err)
	}
	var keys []string
	for _, it := range dbkit.AllItems(t, c) {
		keys = append(keys, it.Key)
	}
	if want := []string{"1", "0", "2", "3", "4"}; !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
}

// An item with neither a key nor anything else is a mistake, however it is put.
func TestItemsWithNothing(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	im, err := c.NewImport(ctx, db.ImportOptions{Source: "nothing"})
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	nothing := &db.Item{Labels: []string{}, Vectors: map[string][]float32{}, Code: []byte{1}} // a code is ignored here
	for how, err := range map[string]error{
		"put":          dbkit.Second(c.Put(ctx, nothing)),
		"merge":        dbkit.Second(c.Merge(ctx, nothing)),
		"batch":        d.NewBatch().Put(c, &db.Item{}),
		"merging many": d.NewBatch().Merge(c, &db.Item{}),
		"import":       im.Put(&db.Item{}),
	} {
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), "nothing in it") {
			t.Errorf("%s: %v", how, err)
		}
	}
	if n, _ := c.Count(); n != 0 {
		t.Errorf("%d items", n)
	}
	if key, err := c.Put(ctx, &db.Item{Sparse: map[string]db.Sparse{"text": {}}}); key != "0" || err != nil {
		t.Errorf("an empty text: %q, %v", key, err)
	}
}

// An item of a key alone keeps the place of what comes later: it is taken once, searches do
// not find it, it is exported, and Merge makes it an item as all others.
func TestPlaceholders(t *testing.T) {
	_, c := filterable(t)
	ctx := t.Context()
	place := &db.Item{Key: "place"}
	if err := c.PutIf(ctx, place, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.PutIf(ctx, place, nil); !errors.Is(err, db.ErrConflict) {
		t.Errorf("it is taken twice: %v", err)
	}
	vectors := must1[*db.Item](t)(c.Get(ctx, "item 3")).Vectors
	found := func() bool {
		t.Helper()
		r := must1[*db.Result](t)(c.Search(ctx, db.Query{From: "text", To: "image", Vector: vectors["text"], K: 1 << 20}))
		return slices.ContainsFunc(r.Hits, func(h db.Hit) bool { return h.Key == "place" })
	}
	var exported []string
	for it, err := range c.ItemsByKey(ctx, "place") {
		var again db.Item
		if err != nil || json.Unmarshal(must1[[]byte](t)(json.Marshal(it)), &again) != nil {
			t.Fatal(err)
		}
		exported = append(exported, must1[string](t)(c.Put(ctx, &again)))
	}
	n := must1[int](t)(c.Count())
	if !slices.Equal(exported, []string{"place"}) || found() {
		t.Errorf("exported: %q, found by a search: %t", exported, found())
	}
	if _, err := c.Merge(ctx, &db.Item{Key: "place", Vectors: vectors}); err != nil {
		t.Fatal(err)
	}
	if after := must1[int](t)(c.Count()); !found() || after != n {
		t.Errorf("after its vectors have come: found %t, %d items, %d before", found(), after, n)
	}
}

// The keys that an import makes are those of Items, in the order in which items were put.
func TestKeysOfAnImport(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	if _, err := c.Put(ctx, &db.Item{Key: "1"}); err != nil {
		t.Fatal(err)
	}
	im := must1[*db.Import](t)(c.NewImport(ctx, db.ImportOptions{Source: "some"}))
	defer im.Close()
	for i, key := range []string{"", "mine", "", ""} {
		if err := im.Put(&db.Item{Key: key, Payload: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := im.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for i, it := range dbkit.AllItems(t, c) {
		keys = append(keys, it.Key)
		if i > 0 && it.Payload[0] != byte(i-1) {
			t.Errorf("item %d of the import is %q", i-1, it.Payload)
		}
	}
	if want := []string{"1", "0", "mine", "2", "3"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}

// The keys of thousands of new items, which are stored in another way, are in the batch,
// too.
func TestKeysOfManyItems(t *testing.T) {
	_, c := dbkit.OpenCodes(t)
	d := db.Of(c)
	n := bulkItems + 10
	for _, given := range []bool{false, true} { // an item with a key makes the difference
		b := d.NewBatch()
		for i := range n {
			it := &db.Item{Code: []byte{byte(i), byte(i >> 8)}}
			if given && i == 5 {
				it.Key = "five"
			}
			if err := b.Put(c, it); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Commit(ctx); err != nil {
			t.Fatal(err)
		}
		keys := b.Keys()
		if len(keys) != n || given != (keys[5] == "five") {
			t.Fatalf("%d keys, of item 5 %q", len(keys), keys[5])
		}
		for i, key := range keys {
			if it, err := c.Get(ctx, key); err != nil || it.Code[0] != byte(i) || it.Code[1] != byte(i>>8) {
				t.Fatalf("item %d has the key %q: %v, %v", i, key, it, err)
			}
		}
	}
}

func TestLabelsKeepTheirOrder(t *testing.T) {
	d, c := dbkit.OpenPairs(t)
	b := d.NewBatch()
	b.RegisterLabels(c, []string{"z", "y"})
	b.Put(c, &db.Item{Key: "k", Labels: []string{"a", "y", "a"}})
	if err := b.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, &db.Item{Key: "l", Labels: []string{"z"}}); err != nil { // until now no item has it
		t.Fatal(err)
	}
	labels, err := c.Labels()
	if want := []string{"z", "y", "a"}; err != nil || !slices.Equal(labels, want) {
		t.Errorf("labels %v, want %v, %v", labels, want, err)
	}
	it, err := c.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"y", "a"}, it.Labels); diff != "" {
		t.Error(diff)
	}
}

func TestItemsBelongToTheirOwners(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	it := &db.Item{Key: "k", Vectors: map[string][]float32{"text": {1, 2, 3, 4, 5}}, Payload: []byte("abc")}
	if _, err := c.Put(ctx, it); err != nil {
		t.Fatal(err)
	}
	it.Vectors["text"][0], it.Payload[0] = 99, 'X'
	got, err := c.Get(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	if got.Vectors["text"][0] != 1 || got.Payload[0] != 'a' {
		t.Errorf("the caller's change shows: %+v", got)
	}
	got.Vectors["text"][1] = 99
	if again, _ := c.Get(ctx, "k"); again.Vectors["text"][1] != 2 {
		t.Error("a reader's change shows")
	}
}

func TestSchemaRefuses(t *testing.T) {
	d, _ := dbkit.OpenPairs(t)
	for name, s := range map[string]db.Schema{
		"nothing":        {},
		"both":           {Bits: 8, Modalities: []db.Modality{{Name: "a", Dim: 1}}},
		"bits":           {Bits: 12},
		"no dimension":   {Modalities: []db.Modality{{Name: "a", Dim: 0}}},
		"a name twice":   {Modalities: []db.Modality{{Name: "a", Dim: 1}, {Name: "a", Dim: 2}}},
		"field as well":  {Modalities: []db.Modality{{Name: "a", Dim: 1}}, Fields: []db.Field{{"a", db.Int, false}}},
		"empty name":     {Modalities: []db.Modality{{Name: "", Dim: 1}}},
		"name with =":    {Modalities: []db.Modality{{Name: "a=b", Dim: 1}}},
		"type of field":  {Modalities: []db.Modality{{Name: "a", Dim: 1}}, Fields: []db.Field{{"f", "date", false}}},
		"starts with 1":  {Modalities: []db.Modality{{Name: "1a", Dim: 1}}},
		"many":           {Modalities: make([]db.Modality, db.MaxModalities+1)},
		"negative bits":  {Bits: -8},
		"too many dims":  {Modalities: []db.Modality{{Name: "a", Dim: db.MaxDim + 1}}},
		"name too long":  {Modalities: []db.Modality{{Name: strings.Repeat("a", db.MaxNameBytes+1), Dim: 1}}},
		"field no name":  {Bits: 8, Fields: []db.Field{{"", db.Int, false}}},
		"not UTF-8 name": {Modalities: []db.Modality{{Name: "\xff", Dim: 1}}},
	} {
		if _, err := d.CreateCollection(ctx, "other", s); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema); !errors.Is(err, db.ErrExists) {
		t.Errorf("a collection twice: %v", err)
	}
	if _, err := d.CreateCollection(ctx, "a b", dbkit.PairsSchema); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a name with a blank: %v", err)
	}
	if _, err := d.Collection("other"); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a refused collection: %v", err)
	}
	names, err := d.Collections()
	if err != nil || !slices.Equal(names, []string{"main"}) {
		t.Errorf("collections %v, %v", names, err)
	}
}

// A number suits a field whatever Go type it has, as JSON and other libraries give it, and a
// whole one suits a field of floats, as it does in an import. No value is changed to suit.
func TestNumbersOfFields(t *testing.T) {
	_, c := dbkit.OpenPairs(t)
	for _, good := range []struct {
		field      string
		give, want any
	}{
		{"year", 7, int64(7)}, {"year", int32(-7), int64(-7)}, {"year", uint8(7), int64(7)}, {"year", uint64(7), int64(7)},
		{"price", 5, 5.0}, {"price", int64(5), 5.0}, {"price", float32(.5), .5}, {"price", uint16(5), 5.0},
	} {
		if _, err := c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{good.field: good.give}}); err != nil {
			t.Errorf("%s = %v: %v", good.field, good.give, err)
			continue
		}
		if it, err := c.Get(ctx, "k"); err != nil || it.Fields[good.field] != good.want {
			t.Errorf("%s = %v: %v, %v", good.field, good.give, it, err)
		}
	}
	for _, bad := range []struct {
		field string
		give  any
		says  string
	}{
		{"year", 5.0, "value is 5 of type float64"}, {"year", float32(5), "of type float32"}, {"year", uint64(1 << 63), "of type uint64"},
		{"title", 5, "value is 5 of type int"}, {"year", "5", "of type string"}, {"year", nil, "has the value nil"},
		{"price", float32(math.Inf(1)), "is no value"},
	} {
		_, err := c.Put(ctx, &db.Item{Key: "k", Fields: map[string]any{bad.field: bad.give}})
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s = %v: %v, not %q", bad.field, bad.give, err, bad.says)
		}
	}
	// A float without a point, as JavaScript writes it, comes back by JSON.
	var it db.Item
	if err := json.Unmarshal([]byte(`{"key":"j","fields":{"price":5}}`), &it); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Put(ctx, &it); err != nil {
		t.Error(err)
	}
}
