package parquet

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files/table"
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
		check(t, w.end())
	}
	check(t, w.w.Close())
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
						t.Fatalf("%s, version %d, row %d: %d values, null is %t, want %v", e.name, version, i,
							got.len(), got.null, want)
					}
					for k, v := range want {
						var b []byte
						if got.width > 0 {
							b = got.raw[k*got.width : (k+1)*got.width]
						} else {
							b = got.any[k]
						}
						if !bytes.Equal(b, v.Bytes()) {
							t.Fatalf("%s, version %d, row %d: value %d is %x, want %x", e.name, version, i, k,
								b, v.Bytes())
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
		{physical: format.FixedLenByteArray, kind: binaries, width: 3},
		{physical: format.ByteArray, kind: text},
	}
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint16(2), byte(0), byte(3))
	f.Add([]byte{2, 3, 0xe4, 4, 1}, uint16(6), byte(8), byte(3))
	f.Add([]byte{3, 0, 0, 0, 3, 0xaa, 0xaa}, uint16(9), byte(3), byte(0))
	f.Add([]byte{0x80, 1, 4, 3, 2, 4, 1, 0, 0, 0, 7}, uint16(3), byte(5), byte(2))
	f.Add([]byte("\x80\x01\x04\x02\x04\x02\x00\x00\x00\x00abc"), uint16(2), byte(6), byte(5))
	f.Add([]byte("\x80\x01\x04\x02\x00\x02\x00\x00\x00\x00\x80\x01\x04\x02\x04\x00\x00\x00\x00\x00abcd"),
		uint16(2), byte(7), byte(5))
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
		// A structure is decoded in bounded memory.
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

// int96 returns a time as Spark and Impala used to write it.
func int96(t time.Time) deprecated.Int96 {
	const epoch = 2_440_588
	days := math.Floor(float64(t.Unix()) / 86_400)
	nanos := t.Sub(time.Unix(int64(days)*86_400, 0)).Nanoseconds()
	return deprecated.Int96{uint32(nanos), uint32(nanos >> 32), uint32(days + epoch)}
}

// Dates and timestamps of all units become times.
func TestTimes(t *testing.T) {
	type row struct {
		Day    *int32           `parquet:"day,optional,date"`
		Millis int64            `parquet:"millis,timestamp(millisecond)"`
		Micros int64            `parquet:"micros,timestamp(microsecond)"`
		Nanos  int64            `parquet:"nanos,timestamp(nanosecond)"`
		Old    deprecated.Int96 `parquet:"old"`
		Clock  int64            `parquet:"clock,time(microsecond)"`
	}
	days := func(n int32) *int32 { return &n }
	before := time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	after := time.Date(2024, 5, 1, 12, 30, 0, 250_000_000, time.UTC)
	f, err := memory(write(t, []row{
		{days(-719_528), -1, -1, before.UnixNano(), int96(before), 0},
		{nil, after.UnixMilli(), after.UnixMicro(), after.UnixNano(), int96(after), 0},
		{days(math.MaxInt32), 0, 0, 0, int96(after), 0},
		{nil, math.MaxInt64, 0, 0, int96(after), 0},
		{nil, 0, math.MinInt64, 0, int96(after), 0},
		{nil, 0, 0, math.MaxInt64, deprecated.Int96{0, 0, math.MaxUint32}, 0},
		{nil, 0, 0, 0, deprecated.Int96{math.MaxUint32, math.MaxUint32, 2_440_588}, 0},
	}))
	if err != nil {
		t.Fatal(err)
	}
	r := f.items()
	columns := must(r.Columns())(t)
	uses := usesOf(columns)
	for i, c := range columns {
		if isTime := c.Kind == table.Scalars && c.Type == "time"; isTime != (c.Name != "clock") {
			t.Errorf("%+v", c)
		}
		if c.Name == "millis" && c.Example != "1969-12-31T23:59:59.999Z" {
			t.Errorf("%+v", c)
		}
		uses[i].Type = c.Type
	}
	check(t, r.Map(uses))
	micro := time.Microsecond
	for i, want := range []any{
		map[string]any{"day": time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "millis": time.UnixMilli(-1).UTC(),
			"micros": time.UnixMicro(-1).UTC(), "nanos": before.Truncate(micro),
			"old": before.Truncate(micro)},
		map[string]any{"millis": after, "micros": after, "nanos": after, "old": after},
		`row 2: column "day"`, `row 3: column "millis"`, `row 4: column "micros"`, `row 5: column "old"`,
		map[string]any{"millis": time.Unix(0, 0).UTC(), "micros": time.Unix(0, 0).UTC(),
			"nanos": time.Unix(0, 0).UTC(), "old": before.Truncate(micro)},
	} {
		var it table.Item
		err := r.Next(&it)
		if says, bad := want.(string); bad {
			if err == nil || !strings.Contains(err.Error(), says) ||
				!strings.Contains(err.Error(), "the years 0 to 9999") {
				t.Errorf("row %d: %v", i, err)
			}
		} else if d := cmp.Diff(want, any(it.Fields)); err != nil || d != "" {
			t.Errorf("row %d: %v, %s", i, err, d)
		}
	}
	if err := r.Next(new(table.Item)); err != io.EOF {
		t.Error(err)
	}
}

// Times may be keys and labels, as text.
func TestTimesAsNames(t *testing.T) {
	type row struct {
		Day   int32   `parquet:"day,date"`
		Years []int32 `parquet:"years,list"`
		At    int64   `parquet:"at,timestamp(microsecond)"`
	}
	f := must(memory(write(t, []row{{0, nil, 1}, {0, nil, math.MaxInt64}, {math.MaxInt32, nil, 1}})))(t)
	r := f.items()
	columns := must(r.Columns())(t)
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		uses[i].Role = map[string]table.Role{"day": table.AsLabels, "at": table.AsKey}[c.Name]
	}
	check(t, r.Map(uses))
	var it table.Item
	if err := r.Next(&it); err != nil || it.Key != "1970-01-01T00:00:00.000001Z" || len(it.Labels) != 1 ||
		it.Labels[0] != "1970-01-01" {
		t.Errorf("%+v, %v", it, err)
	}
	for range 2 {
		if err := r.Next(&it); err == nil || !strings.Contains(err.Error(), "the years 0 to 9999") {
			t.Error(err)
		}
	}
}
