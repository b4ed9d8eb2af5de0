package parquet

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/fddhdb/fddhdb/files/table"
)

var benchShape = &table.Shape{
	Vectors: []table.Vector{{Name: "image", Dim: 128}, {Name: "text", Dim: 128}},
	Fields:  []table.Field{{Name: "year", Type: "int"}}}

// BenchmarkItems reads items with two vectors of 128 dimensions, a label and a field.
func BenchmarkItems(b *testing.B) {
	const rows = 20_000
	random := rand.New(rand.NewPCG(1, 2))
	var out bytes.Buffer
	w, err := NewItemWriter(&out, benchShape)
	if err != nil {
		b.Fatal(err)
	}
	image, text := make([]float32, 128), make([]float32, 128)
	for i := range rows {
		for j := range image {
			image[j], text[j] = float32(random.NormFloat64()), float32(random.NormFloat64())
		}
		if err := w.Write(&table.Item{Key: fmt.Sprint("item ", i), Labels: []string{"a"},
			Vectors: map[string][]float32{"image": image, "text": text}, Fields: map[string]any{"year": int64(i)}}); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()))
	for b.Loop() {
		f, err := memory(out.Bytes())
		if err != nil {
			b.Fatal(err)
		}
		r, err := tableOf(f)
		var it table.Item
		for err == nil {
			err = r.Next(&it)
		}
		if err != io.EOF {
			b.Fatal(err)
		}
	}
	b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkItemWriter writes items of the same shape.
func BenchmarkItemWriter(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	image, text := make([]float32, 128), make([]float32, 128)
	for j := range image {
		image[j], text[j] = float32(random.NormFloat64()), float32(random.NormFloat64())
	}
	w, err := NewItemWriter(io.Discard, benchShape)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	it := table.Item{Key: "item 123456", Labels: []string{"a"},
		Vectors: map[string][]float32{"image": image, "text": text}, Fields: map[string]any{"year": int64(1999)}}
	for b.Loop() {
		if err := w.Write(&it); err != nil {
			b.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
