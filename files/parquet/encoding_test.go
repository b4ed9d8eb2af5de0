package parquet

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/format"
)

// encodings are those of parquet-go, each for the types that it takes.
var encodings = []struct {
	name string
	node pq.Node
}{
	{"plain float", pq.Encoded(pq.Leaf(pq.FloatType), &pq.Plain)},
	{"plain strings", pq.Encoded(pq.String(), &pq.Plain)},
	{"plain fixed", pq.Encoded(pq.Leaf(pq.FixedLenByteArrayType(3)), &pq.Plain)},
	{"plain bools", pq.Encoded(pq.Leaf(pq.BooleanType), &pq.Plain)},
	{"dict float", pq.Encoded(pq.Leaf(pq.FloatType), &pq.RLEDictionary)},
	{"dict double", pq.Encoded(pq.Leaf(pq.DoubleType), &pq.RLEDictionary)},
	{"dict strings", pq.Encoded(pq.String(), &pq.RLEDictionary)},
	{"delta int32", pq.Encoded(pq.Int(32), &pq.DeltaBinaryPacked)},
	{"delta int64", pq.Encoded(pq.Int(64), &pq.DeltaBinaryPacked)},
	{"delta lengths", pq.Encoded(pq.String(), &pq.DeltaLengthByteArray)},
	{"delta strings", pq.Encoded(pq.String(), &pq.DeltaByteArray)},
	{"split float", pq.Encoded(pq.Leaf(pq.FloatType), &pq.ByteStreamSplit)},
	{"split double", pq.Encoded(pq.Leaf(pq.DoubleType), &pq.ByteStreamSplit)},
	{"rle bools", pq.Encoded(pq.Leaf(pq.BooleanType), &pq.RLE)},
}

// randomLists returns lists of values of a type, one a row; nil is null.
func randomLists(kind pq.Kind, rows int) [][]pq.Value {
	random := rand.New(rand.NewPCG(1, 2))
	value := func() pq.Value {
		// Few or many distinct values, near each other or not.
		x := random.Int64N(7)
		if random.IntN(20) == 0 {
			x = int64(random.Uint64())
		}
		switch kind {
		case pq.Boolean:
			return pq.BooleanValue(x&1 == 0)
		case pq.Int32:
			return pq.Int32Value(int32(x))
		case pq.Int64:
			return pq.Int64Value(x)
		case pq.Float:
			return pq.FloatValue(float32(x))
		case pq.Double:
			return pq.DoubleValue(float64(x))
		case pq.FixedLenByteArray:
			return pq.FixedLenByteArrayValue([]byte{byte(x), byte(x >> 8), 3})
		}
		return pq.ByteArrayValue(fmt.Appendf(nil, "value %d", x)[:random.IntN(8)])
	}
	out := make([][]pq.Value, rows)
	for i := range out {
		if random.IntN(10) == 0 {
			continue
		}
		out[i] = []pq.Value{}
		for range random.IntN(9) {
			out[i] = append(out[i], value())
		}
	}
	return out
}

// encoded makes a file with a column of lists.
func encoded(t testing.TB, node pq.Node, rows, version int, compressed bool) []byte {
	t.Helper()
	g := newRoot()
	g.add("x", pq.Optional(pq.List(node)))
	codec := compress.Codec(&pq.Uncompressed)
	if compressed {
		codec = &pq.Zstd
	}
	var out bytes.Buffer
	w := writerOf(pq.NewGenericWriter[any](&out, pq.NewSchema("test", g), pq.Compression(codec),
		pq.DataPageVersion(version), pq.PageBufferSize(4096)))
	for i, row := range randomLists(node.Type().Kind(), rows) {
		if row == nil {
			w.null(0)
		} else {
			addList(w, row, 1, 1, func(v pq.Value) pq.Value { return v })
		}
		if i == rows/2 {
			w.size = groupBytes + 1 // ends the row group
		}
		if err := errors.Join(w.end(), w.flush()); err != nil { // a batch is larger than a page
			t.Fatal(err)
		}
	}
	check(t, w.close())
	return out.Bytes()
}

// Values that parquet-go encodes are read unchanged.
func TestEncodings(t *testing.T) {
	rows := 3000
	if testing.Short() {
		rows = 300
	}
	for _, e := range encodings {
		for version := 1; version <= 2; version++ {
			for _, compressed := range []bool{false, true} {
				f := must(memory(encoded(t, e.node, rows, version, compressed)))(t)
				s := f.stream(f.columns[0].leaves[0])
				for i, want := range randomLists(e.node.Type().Kind(), rows) {
					got, err := s.next()
					if err != nil {
						t.Fatalf("%s, version %d, row %d: %v", e.name, version, i, err)
					}
					if got.null != (want == nil) || got.len() != len(want) || got.hole >= 0 {
						t.Fatalf("%s, version %d, row %d: %d values, null is %t, want %v", e.name, version, i, got.len(), got.null, want)
					}
					for k, v := range want {
						var b []byte
						if got.width > 0 {
							b = got.raw[k*got.width : (k+1)*got.width]
						} else {
							b = got.any[k]
						}
						if !bytes.Equal(b, v.Bytes()) {
							t.Fatalf("%s, version %d, row %d: value %d is %x, want %x", e.name, version, i, k, b, v.Bytes())
						}
					}
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// Pages of every type and encoding give values or an error, whatever their bytes.
func FuzzPage(f *testing.F) {
	leaves := []*leaf{
		{physical: format.Boolean, kind: boolean, width: 1}, {physical: format.Int32, kind: signed, width: 4},
		{physical: format.Int64, kind: signed, width: 8}, {physical: format.Float, kind: float, width: 4},
		{physical: format.FixedLenByteArray, kind: binaries, width: 3}, {physical: format.ByteArray, kind: text},
	}
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint16(2), byte(0), byte(3))
	f.Add([]byte{2, 3, 0xe4, 4, 1}, uint16(6), byte(8), byte(3))
	f.Add([]byte{3, 0, 0, 0, 3, 0xaa, 0xaa}, uint16(9), byte(3), byte(0))
	f.Add([]byte{0x80, 1, 4, 3, 2, 4, 1, 0, 0, 0, 7}, uint16(3), byte(5), byte(2))
	f.Add([]byte("\x80\x01\x04\x02\x04\x02\x00\x00\x00\x00abc"), uint16(2), byte(6), byte(5))
	f.Add([]byte("\x80\x01\x04\x02\x00\x02\x00\x00\x00\x00\x80\x01\x04\x02\x04\x00\x00\x00\x00\x00abcd"), uint16(2), byte(7), byte(5))
	f.Fuzz(func(t *testing.T, b []byte, n uint16, encoding, kind byte) {
		memory := budget{free: 1 << 20}
		d := decoder{leaf: leaves[int(kind)%len(leaves)], memory: &memory}
		dict, err := d.plain(b[len(b)/2:], int(n%16))
		if err == nil {
			d.dict = &dict
			d.raw, d.any = nil, nil
		}
		v, err := d.decode(b, int(n), format.Encoding(encoding%10))
		if err == nil && v.len() != int(n) {
			t.Errorf("%d values of %d", v.len(), n)
		}
		if memory.free < 0 {
			t.Errorf("%d bytes more than there are", -memory.free)
		}
		most := int(kind)%7 + 1
		dst := make([]byte, n)
		if there, err := levels(dst, b, most); err == nil {
			for _, l := range dst {
				if int(l) == most {
					there--
				}
				if int(l) > most {
					t.Errorf("level %d of %d", l, most)
				}
			}
			if there != 0 {
				t.Errorf("%d levels of %d too many", there, most)
			}
		}
		// A structure that the walker accepts is decoded, in bounded memory.
		var header format.PageHeader
		if n, err := decode(b, &header); err == nil && (n < 1 || n > len(b)) {
			t.Errorf("%d bytes of %d", n, len(b))
		}
		var meta format.FileMetaData
		if _, err := decode(b, &meta); err == nil && len(meta.Schema)+len(meta.RowGroups) > 2000+len(b) {
			t.Error("more structures than bytes")
		}
	})
}
