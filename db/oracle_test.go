package db_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	_ "github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/model"
)

// The oracle is a list of items in memory. It knows nothing of rows, blocks or
// codes; what the database says is compared with it after every few random
// operations.
type oracle struct {
	items map[string]*db.Item
	order []string // by first put
}

func (o *oracle) put(it *db.Item) {
	if o.items[it.Key] == nil {
		o.order = append(o.order, it.Key)
	}
	o.items[it.Key] = it
}

func (o *oracle) delete(key string) bool {
	if o.items[key] == nil {
		return false
	}
	delete(o.items, key)
	o.order = slices.DeleteFunc(o.order, func(k string) bool { return k == key })
	return true
}

func (o *oracle) merge(it *db.Item) {
	old := o.items[it.Key]
	if old == nil {
		o.put(it)
		return
	}
	m := *old
	m.Vectors, m.Fields = maps.Clone(old.Vectors), maps.Clone(old.Fields)
	for k, v := range it.Vectors {
		if m.Vectors == nil {
			m.Vectors = map[string][]float32{}
		}
		m.Vectors[k] = v
	}
	for k, v := range it.Fields {
		if m.Fields == nil {
			m.Fields = map[string]any{}
		}
		m.Fields[k] = v
	}
	if it.Labels != nil {
		m.Labels = it.Labels
	}
	if it.Payload != nil {
		m.Payload = it.Payload
	}
	if it.Code != nil {
		m.Code = it.Code
	}
	o.put(&m)
}

func drawItem(t *rapid.T, codesOnly, partial bool) *db.Item {
	it := &db.Item{Key: fmt.Sprintf("k%d", rapid.IntRange(0, 12).Draw(t, "key"))}
	if codesOnly {
		if !partial || rapid.Bool().Draw(t, "hasCode") {
			// Few different codes, so that they are shared.
			it.Code = []byte{rapid.SampledFrom([]byte{0, 1, 3, 255}).Draw(t, "code"), 7}
		}
	} else {
		for _, m := range dbkit.PairsSchema.Modalities {
			if rapid.IntRange(0, 3).Draw(t, "has "+m.Name) == 0 {
				continue
			}
			x := make([]float32, m.Dim)
			for j := range x {
				x[j] = float32(rapid.IntRange(-4, 4).Draw(t, m.Name)) / 2
			}
			if it.Vectors == nil {
				it.Vectors = map[string][]float32{}
			}
			it.Vectors[m.Name] = x
		}
	}
	for _, l := range []string{"a", "b", "c"} {
		if rapid.IntRange(0, 2).Draw(t, "label "+l) == 0 {
			it.Labels = append(it.Labels, l)
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "fields") == 0 {
		it.Fields = map[string]any{"year": rapid.Int64().Draw(t, "year"), "new": true}
	}
	if rapid.IntRange(0, 3).Draw(t, "payload") == 0 {
		it.Payload = []byte(rapid.StringN(1, 5, -1).Draw(t, "payload bytes"))
	}
	return it
}

func TestRandomOperationsAgainstTheOracle(t *testing.T) {
	dbkit.LongTest(t)
	for _, codesOnly := range []bool{false, true} {
		t.Run(fmt.Sprintf("codesOnly=%v", codesOnly), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { checkRandomOperations(t, codesOnly) })
		})
	}
}

// sparseOrDense returns an item with its text in either form.
func sparseOrDense(t *rapid.T, it *db.Item) *db.Item {
	x, ok := it.Vectors["text"]
	if !ok || rapid.Bool().Draw(t, "dense") {
		return it
	}
	out, s := *it, db.Sparse{}
	out.Vectors = maps.Clone(it.Vectors)
	delete(out.Vectors, "text")
	for j, v := range x {
		if v != 0 || rapid.Bool().Draw(t, "zero") {
			s.Index, s.Value = append(s.Index, uint32(j)), append(s.Value, v)
		}
	}
	out.Sparse = map[string]db.Sparse{"text": s}
	return &out
}

// dense returns an item of the database with all vectors dense, as the oracle has it.
func dense(it *db.Item) *db.Item {
	if x, ok := it.Sparse["text"]; ok {
		out := *it
		out.Vectors, out.Sparse = maps.Clone(it.Vectors), nil
		if out.Vectors == nil {
			out.Vectors = map[string][]float32{}
		}
		out.Vectors["text"] = record.Expand(model.Vector(x), dbkit.PairsSchema.Modalities[1].Dim)
		return &out
	}
	return it
}

func checkRandomOperations(t *rapid.T, codesOnly bool) {
	opts := &db.Options{FS: vfs.NewMem()}
	d, err := db.Open("db", opts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { d.Close() }()
	schema := dbkit.PairsSchema
	if codesOnly {
		schema.Modalities, schema.Bits = nil, 16
	} else {
		schema.Modalities = slices.Clone(schema.Modalities)
		schema.Modalities[1].Sparse = rapid.Bool().Draw(t, "sparse")
	}
	c, err := d.CreateCollection(ctx, "main", schema)
	if err != nil {
		t.Fatal(err)
	}
	o := &oracle{items: map[string]*db.Item{}}
	trained := codesOnly
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
		case op <= 2:
			it := drawItem(t, codesOnly, false)
			if _, err := c.Put(ctx, sparseOrDense(t, it)); err != nil {
				t.Fatal(err)
			}
			o.put(it)
		case op == 3:
			it := drawItem(t, codesOnly, true)
			_, err := c.Merge(ctx, sparseOrDense(t, it))
			if codesOnly && it.Code == nil && o.items[it.Key] == nil {
				if err == nil {
					t.Fatal("a new item without code was merged")
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			o.merge(it)
		case op == 4:
			key := fmt.Sprintf("k%d", rapid.IntRange(0, 12).Draw(t, "key"))
			n, err := c.Delete(ctx, key)
			if err != nil || (n == 1) != o.delete(key) {
				t.Fatalf("delete %s: %d, %v", key, n, err)
			}
		case op <= 6: // a batch may touch a key several times
			b := d.NewBatch()
			for range rapid.IntRange(0, 8).Draw(t, "batch") {
				it := drawItem(t, codesOnly, false)
				switch rapid.IntRange(0, 3).Draw(t, "change") {
				case 0:
					b.Delete(c, it.Key)
					o.delete(it.Key)
				case 1:
					b.Merge(c, sparseOrDense(t, it))
					o.merge(it)
				default:
					b.Put(c, sparseOrDense(t, it))
					o.put(it)
				}
			}
			if err := b.Commit(ctx); err != nil {
				t.Fatal(err)
			}
		case op == 7 && !codesOnly:
			opt := db.TrainOptions{Options: model.Options{Bits: 16, Seed: uint64(rapid.IntRange(0, 3).Draw(t, "seed"))}}
			opt.Views, opt.Fusion = drawViews(t)
			if _, err := c.Train(ctx, opt); err == nil {
				trained = true
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
		checkAgainst(t, c, o, trained)
	}
	checkSpaces(t, d)
}

// checkAgainst compares everything that can be read with the oracle.
func checkAgainst(t *rapid.T, c *db.Collection, o *oracle, trained bool) {
	ignoreCode := cmpopts.IgnoreFields(db.Item{}, "CodeFrom", "Code", "Codes")
	var items []*db.Item
	for it, err := range c.Items(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, dense(it))
	}
	if n, err := c.Count(); err != nil || n != len(o.order) || len(items) != n {
		t.Fatalf("%d items counted, %d yielded, %d expected: %v", n, len(items), len(o.order), err)
	}
	for i, it := range items {
		want := o.items[o.order[i]]
		if diff := gocmp.Diff(want, it, ignoreCode, cmpopts.EquateEmpty(), cmpopts.SortSlices(cmp.Less[string])); diff != "" {
			t.Fatal(diff)
		}
		if want.Code != nil && !slices.Equal(want.Code, it.Code) {
			t.Fatalf("item %s has code %x, put was %x", it.Key, it.Code, want.Code)
		}
		got, err := c.Get(ctx, it.Key)
		if err != nil {
			t.Fatal(err)
		}
		if got = dense(got); !reflect.DeepEqual(it, got) {
			t.Fatal(gocmp.Diff(it, got))
		}
	}
	checkCodes(t, c, items)
	if trained {
		checkSearches(t, c, items)
	}
}

// checkSearches compares answers with a linear scan over the items.
func checkSearches(t *rapid.T, c *db.Collection, items []*db.Item) {
	stats, err := c.Stats()
	if err != nil {
		t.Fatal(err)
	}
	q := db.Query{K: rapid.IntRange(1, 15).Draw(t, "k"), Code: make([]byte, stats.Bits/8)}
	q.Code[0] = rapid.Byte().Draw(t, "query")
	if len(stats.Modalities) > 0 && rapid.Bool().Draw(t, "to") {
		q.To = "image"
	}
	if q.To = drawTarget(t, c, stats, q); len(stats.Views) > 0 && q.To == "" {
		return // the model knows another target only
	}
	var z []float64
	if len(stats.Modalities) > 0 && rapid.Bool().Draw(t, "byVector") {
		q.From, q.Code = "text", nil
		q.Vector = []float32{1, 0, float32(rapid.IntRange(-2, 2).Draw(t, "x")), 1, 0}
		if _, z, err = c.EncodeQuery(ctx, db.Query{From: "text", To: q.To, Vector: q.Vector}); err != nil {
			// No labelled item had text, or all had the same: then searches say so, too.
			if _, serr := c.Search(ctx, q); serr == nil || serr.Error() != err.Error() {
				t.Fatalf("encode says %v, search %v", err, serr)
			}
			return
		}
	}
	code := q.Code
	if z != nil {
		code, _, _ = c.EncodeQuery(ctx, db.Query{From: "text", To: q.To, Vector: q.Vector})
	}
	codeOf := func(it *db.Item) []byte { return codeFor(it, q.To, stats) }
	distance := func(it *db.Item) int {
		n := 0
		for i := range code {
			n += bits.OnesCount8(code[i] ^ codeOf(it)[i])
		}
		return n
	}
	eligible := map[string]*db.Item{}
	codes := map[string]bool{}
	for _, it := range items {
		if it.Code != nil && it.CodeFrom == "" {
			t.Fatalf("item %s has a code from nowhere", it.Key)
		}
		if codeOf(it) != nil {
			codes[string(codeOf(it))] = true
			if q.To == "" || it.Vectors[q.To] != nil {
				eligible[it.Key] = it
			}
		}
	}
	distinct := stats.DistinctCodes
	for _, v := range stats.Views {
		if v.Target == q.To {
			distinct = v.DistinctCodes
		}
	}
	if len(codes) != distinct {
		t.Fatalf("%d distinct codes counted, %d reported", len(codes), distinct)
	}

	radius := rapid.IntRange(0, 16).Draw(t, "radius")
	for _, r := range []int{-1, radius} {
		var res *db.Result
		within := 0
		for _, it := range eligible {
			if r < 0 || distance(it) <= r {
				within++
			}
		}
		if r < 0 {
			res, err = c.Search(ctx, q)
		} else if res, err = dbkit.FirstWithin(c, q, r); err == nil && res.Total != within {
			t.Fatalf("radius %d: total %d, want %d", r, res.Total, within)
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Hits) != min(q.K, within) {
			t.Fatalf("%d hits for k = %d of %d", len(res.Hits), q.K, within)
		}
		seen := map[string]bool{}
		done := map[string]bool{} // codes whose run has ended
		for i, h := range res.Hits {
			it := eligible[h.Key]
			if it == nil || seen[h.Key] || distance(it) != h.Distance {
				t.Fatalf("hit %+v: item %+v, seen: %v", h, it, seen[h.Key])
			}
			seen[h.Key] = true
			if z == nil {
				if !math.IsNaN(h.Score) {
					t.Fatalf("a query by code has score %g", h.Score)
				}
			} else if want := dot(z, codeOf(it)); math.Abs(want-h.Score) > 1e-9 {
				t.Fatalf("score %g, want %g", h.Score, want)
			}
			if i == 0 {
				continue
			}
			last := res.Hits[i-1]
			sameCode := slices.Equal(codeOf(eligible[last.Key]), codeOf(it))
			switch {
			case h.Distance < last.Distance, h.Distance == last.Distance && h.Score > last.Score:
				t.Fatalf("hit %d is better than hit %d", i, i-1)
			case sameCode && z == nil && h.Row < last.Row:
				t.Fatal("rows of one code are out of order")
			}
			if !sameCode {
				done[string(codeOf(eligible[last.Key]))] = true
			}
			if done[string(codeOf(it))] {
				t.Fatalf("code %x comes twice", codeOf(it))
			}
		}
		for key, it := range eligible {
			if n := len(res.Hits); n > 0 && !seen[key] && distance(it) < res.Hits[n-1].Distance {
				t.Fatalf("item %s at %d is missing", key, distance(it))
			}
		}
	}
}

func dot(z []float64, code []byte) float64 {
	sum := 0.0
	for j, x := range z {
		if code[j/8]>>(j%8)&1 == 1 {
			sum += x
		} else {
			sum -= x
		}
	}
	return sum
}
