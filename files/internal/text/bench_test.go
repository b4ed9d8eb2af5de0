package text

import (
	"io"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/fddhdb/fddhdb/files/table"
)

// BenchmarkJSONL reads items with two vectors of 128 dimensions, a label and a field. Numbers have the digits
// of float32, and those of float64 as Python writes them.
func BenchmarkJSONL(b *testing.B) {
	for name, bits := range map[string]int{"float32": 32, "float64": 64} {
		b.Run(name, func(b *testing.B) {
			const rows = 5000
			random := rand.New(rand.NewPCG(1, 2))
			var text []byte
			for i := range rows {
				text = append(strconv.AppendInt(append(text, `{"key": "item `...), int64(i), 10), `", "vectors": {"image": [`...)
				for v := range 2 {
					if v == 1 {
						text = append(text, `], "text": [`...)
					}
					for j := range 128 {
						if j > 0 {
							text = append(text, ", "...)
						}
						text = strconv.AppendFloat(text, float64(float32(random.NormFloat64())), 'g', -1, bits)
					}
				}
				text = append(text, "]}, \"labels\": [\"a\"], \"fields\": {\"year\": 1999}}\n"...)
			}
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				r, err := OpenItems(memory(string(text)))
				if err != nil {
					b.Fatal(err)
				}
				var it table.Item
				for err == nil {
					err = r.Next(&it)
				}
				if err != io.EOF {
					b.Fatal(err)
				}
			}
			b.ReportMetric(rows*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
