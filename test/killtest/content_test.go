package killtest

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
)

// Items are pairs: one in the collection of features and one in the collection of
// codes, under the same key. One batch writes or deletes both. An item whose key begins
// with "single" is in the collection of features alone, and is written alone.
//
// A version determines what an item holds, together with its key: Put is the number of
// the operation that put it, Merged that of the operation that wrote its payload last.
type version struct{ Put, Merged int }

const (
	features, codes, loads = "features", "codes", "loads" // names of the collections
	single                 = "single"
	bits                   = 16 // length of all codes
	loadItems              = 8400
)

var schemas = map[string]db.Schema{
	features: {
		Modalities: []db.Modality{{Name: "image", Dim: 8}, {Name: "text", Dim: 5}},
		Fields:     []db.Field{{Name: "put", Type: db.Int, Indexed: true}},
	},
	codes:   {Bits: bits},
	loads:   {Bits: bits, Fields: []db.Field{{Name: "load", Type: db.Int, Indexed: true}}},
	imports: {Bits: bits, Fields: []db.Field{{Name: "import", Type: db.Int, Indexed: true}}},
}

func random(key string, put int) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(key))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(put)))
}

// featureItem returns the item of the collection of features.
func featureItem(key string, v version) *db.Item {
	r := random(key, v.Put)
	class := r.IntN(4)
	it := &db.Item{Key: key, Fields: map[string]any{"put": int64(v.Put)}, Payload: payload(v),
		Vectors: map[string][]float32{}}
	if r.IntN(5) > 0 {
		it.Labels = []string{fmt.Sprintf("class%d", class)}
	}
	for _, m := range schemas[features].Modalities {
		if r.IntN(6) == 0 {
			continue
		}
		x := make([]float32, m.Dim)
		for j := range x {
			x[j] = float32(r.NormFloat64())
			if j%4 == class {
				x[j] += 3
			}
		}
		it.Vectors[m.Name] = x
	}
	return it
}

// codeItem returns the item of the collection of codes.
func codeItem(key string, v version) *db.Item {
	r := random(key, v.Put)
	return &db.Item{Key: key, Code: []byte{byte(r.IntN(5)), byte(r.IntN(3))}, CodeFrom: "given",
		Payload: payload(v)}
}

// payload returns a payload that begins with the version's number. The number
// determines its length.
func payload(v version) []byte {
	return fmt.Appendf(nil, "%d %d%s", v.Put, v.Merged, strings.Repeat(".", v.Merged%89*17))
}

// versionOf reads the version that an item says it has.
func versionOf(it *db.Item) (v version, err error) {
	_, err = fmt.Sscanf(string(bytes.TrimRight(it.Payload, ".")), "%d %d", &v.Put, &v.Merged)
	return v, err
}

// differs returns how the item got differs from want, or "". It ignores learned codes.
func differs(want, got *db.Item) string {
	if want.Key == got.Key && maps.EqualFunc(want.Vectors, got.Vectors, slices.Equal[[]float32]) &&
		slices.Equal(want.Labels, got.Labels) &&
		maps.Equal(want.Fields, got.Fields) && bytes.Equal(want.Payload, got.Payload) &&
		(want.Code == nil || bytes.Equal(want.Code, got.Code)) {
		return "" // gocmp would take a hundred times as long
	}
	ignored := []string{"Codes"}
	if want.Code == nil {
		ignored = append(ignored, "Code", "CodeFrom")
	}
	return gocmp.Diff(want, got, cmpopts.IgnoreFields(db.Item{}, ignored...), cmpopts.EquateEmpty())
}

// contents are the versions of all items by key.
type contents map[string]version

// read returns the items of a database. The error tells the first item that is not
// ours, or is half of a pair.
func read(ctx context.Context, d *db.DB, vectors bool) (contents, error) {
	of := map[string]contents{}
	for _, name := range []string{features, codes} {
		var err error
		if of[name], err = readCollection(ctx, d, name, vectors); err != nil {
			return nil, err
		}
	}
	for key, v := range of[features] {
		if other, paired := of[codes][key]; !strings.HasPrefix(key, single) && (!paired || other != v) {
			return nil, fmt.Errorf("%q is %+v in one collection, %+v in the other (%v)", key, v, other,
				paired)
		}
	}
	for key := range of[codes] {
		if _, paired := of[features][key]; !paired {
			return nil, fmt.Errorf("%q is in one collection only", key)
		}
	}
	return of[features], nil
}

// readCollection returns the items of one collection. With vectors their vectors are
// read and compared, too.
func readCollection(ctx context.Context, d *db.DB, name string, vectors bool) (contents, error) {
	c, err := d.Collection(name)
	if err != nil {
		return nil, err
	}
	found := contents{}
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return nil, err
		}
		v, err := versionOf(it)
		if err != nil {
			return nil, fmt.Errorf("%s of %q: payload %.40q: %w", name, it.Key, it.Payload, err)
		}
		want := featureItem(it.Key, v)
		if name == codes {
			want = codeItem(it.Key, v)
		}
		if !vectors {
			want.Vectors = nil
		}
		if diff := differs(want, it); diff != "" {
			return nil, fmt.Errorf("%s of %q: %s", name, it.Key, diff)
		}
		found[it.Key] = v
	}
	return found, nil
}

// leaves says whether an operation on a load leaves it there.
var leaves = map[string]bool{"load": true, "unload": false}

// loaded returns the loads that a database holds. Each must be whole.
func loaded(ctx context.Context, d *db.DB) (map[int]bool, error) {
	c, err := d.Collection(loads)
	if err != nil {
		return nil, err
	}
	counts, found := map[int]int{}, map[int]bool{}
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return nil, err
		}
		load64, _ := it.Fields["load"].(int64)
		load := int(load64)
		found[load] = true
		if diff := differs(loadItem(load, counts[load]), it); diff != "" {
			return nil, fmt.Errorf("item %d of load %d: %s", counts[load], load, diff)
		}
		counts[load]++
	}
	for load, n := range counts {
		if n != loadItems {
			return nil, fmt.Errorf("%d items of %d of load %d", n, loadItems, load)
		}
	}
	return found, nil
}

func loadItem(load, i int) *db.Item {
	return &db.Item{
		Key: fmt.Sprintf("%d/%d", load, i), Code: []byte{byte(i), byte(i >> 8)}, CodeFrom: "given",
		Labels: []string{fmt.Sprint("first", load+i%2)}, Fields: map[string]any{"load": int64(load)},
	}
}
