package parquet

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// memory is a file in memory.
func memory(b []byte) (*file, error) {
	return newFile(matrix.Source{Name: "x.parquet", ReaderAt: bytes.NewReader(b), Size: int64(len(b))})
}

var shape = &table.Shape{
	Vectors: []table.Vector{{Name: "image", Dim: 3}, {Name: "bag of words", Dim: 10, Sparse: true}},
	Fields: []table.Field{{Name: "year", Type: "int"}, {Name: "a", Type: "string"},
		{Name: "x", Type: "float"}, {Name: "b", Type: "bool"}, {Name: "at", Type: "time"}},
	Code: 2,
}

func someItems() []table.Item {
	return []table.Item{
		{Key: "all", Labels: []string{"a", "", "b, c"}, Payload: []byte{0, 255}, Code: []byte{1, 2},
			Vectors: map[string][]float32{"image": {1, -0.1, 1e-45}},
			Sparse: map[string]table.Sparse{"bag of words": {Index: []uint32{0, 9}, Value: []float32{.5,
				3e38}}},
			Fields: map[string]any{"year": int64(-1 << 63), "a": "", "x": 5.0, "b": false,
				"at": time.Date(2024, 5, 1, 12, 30, 0, 250_000_000, time.UTC)}},
		{Key: "little", Sparse: map[string]table.Sparse{"bag of words": {}}, Payload: []byte{}},
		{Key: "nothing"},
		{Key: "é", Vectors: map[string][]float32{"image": {0, 0, 0}},
			Fields: map[string]any{"b": true, "a": "é\n"}},
	}
}

func written(t testing.TB, items []table.Item) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewItemWriter(&out, shape)
	for i := range items {
		if err == nil {
			err = w.Write(&items[i])
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// normal turns empty values into nil.
func normal(it table.Item) table.Item {
	if len(it.Vectors) == 0 {
		it.Vectors = nil
	}
	if len(it.Sparse) == 0 {
		it.Sparse = nil
	}
	if len(it.Fields) == 0 {
		it.Fields = nil
	}
	if len(it.Labels) == 0 {
		it.Labels = nil
	}
	for name, x := range it.Sparse {
		it.Sparse[name] = table.Sparse{Index: append([]uint32{}, x.Index...),
			Value: append([]float32{}, x.Value...)}
	}
	return it
}

func TestItemsComeBack(t *testing.T) {
	want := someItems()
	f := must(memory(written(t, want)))(t)
	r := must(tableOf(f))(t)
	got := must(r.Shape())(t)
	if d := cmp.Diff(got, shape); d != "" {
		t.Error(d)
	}
	for i := 0; ; i++ {
		var it table.Item
		err := r.Next(&it)
		if err == io.EOF && i == len(want) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(normal(it), normal(want[i])); d != "" {
			t.Error(d)
		}
	}
}

// Reading the shape leaves nothing in the budget.
func TestShapeTakesNoMemoryForLater(t *testing.T) {
	f := must(memory(written(t, someItems())))(t)
	r := must(tableOf(f))(t)
	free := f.memory.free
	if _, err := r.Shape(); err != nil {
		t.Fatal(err)
	}
	if f.memory.free != free {
		t.Errorf("%d bytes are missing", free-f.memory.free)
	}
}

// A written item belongs to the caller again. A refused item leaves nothing behind, across row
// groups.
func TestItemsThatAreRefused(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	var out bytes.Buffer
	w := must(NewItemWriter(&out, shape))(t)
	const n = 6000
	payload, image := make([]byte, 100), make([]float32, 3)
	for i := range n {
		payload[0], image[2] = byte(i), float32(i)
		it := table.Item{Key: "k", Payload: payload, Vectors: map[string][]float32{"image": image},
			Labels: []string{"a", "b"}}
		if i%7 == 3 {
			it.Payload = bytes.Repeat(payload, 20_000)
		}
		if i%100 == 5 {
			bad := it
			bad.Fields = map[string]any{"b": "no bool"}
			if err := w.Write(&bad); err == nil {
				t.Fatal("a string was taken for a bool")
			}
		}
		if i%7 == 3 && i > 500 {
			it.Payload = payload
		}
		check(t, w.Write(&it))
	}
	check(t, w.Close())
	f := must(memory(out.Bytes()))(t)
	if len(f.groups) < 2 {
		t.Errorf("%d row groups", len(f.groups))
	}
	r, err := tableOf(f)
	if err != nil || r.Rows() != n {
		t.Fatalf("%d items, %v", r.Rows(), err)
	}
	for i := range n {
		var it table.Item
		check(t, r.Next(&it))
		if it.Key != "k" || it.Payload[0] != byte(i) || it.Vectors["image"][2] != float32(i) ||
			len(it.Labels) != 2 || len(it.Fields) != 0 {
			t.Fatalf("item %d: %s, %d, %v, %v, %v", i, it.Key, it.Payload[0], it.Vectors, it.Labels,
				it.Fields)
		}
	}
}

// must ends the test if there is an error, and returns the value beside it if there is none.
func must[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return x
	}
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
