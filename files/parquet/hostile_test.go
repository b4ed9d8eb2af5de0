package parquet

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	pq "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/fddhdb/fddhdb/files/table"
)

// builder makes files page by page.
type builder struct {
	b     []byte
	chunk format.ColumnMetaData
	rows  int64
}

func compactBytes(v any) []byte {
	b, err := thrift.Marshal(new(thrift.CompactProtocol), v)
	if err != nil {
		panic(err)
	}
	return b
}

// page adds a data page of version 1 with n levels. lie changes its header.
func (b *builder) page(n int32, data []byte, lie func(*format.PageHeader)) {
	if len(b.b) == 0 {
		b.b = append(b.b, magic...)
	}
	h := format.PageHeader{Type: format.DataPage, UncompressedPageSize: int32(len(data)),
		CompressedPageSize: int32(len(data)),
		DataPageHeader: thrift.New(format.DataPageHeader{NumValues: n, Encoding: format.Plain,
			DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE})}
	if lie != nil {
		lie(&h)
	}
	b.b = append(append(b.b, compactBytes(&h)...), data...)
	b.chunk.NumValues += int64(n)
}

// file ends the file: one row group with a column of required lists of float32. lie changes its metadata.
func (b *builder) file(lie func(*format.FileMetaData)) []byte {
	element := func(name string, repetition format.FieldRepetitionType, children int32) format.SchemaElement {
		return format.SchemaElement{Name: name, RepetitionType: thrift.New(repetition),
			NumChildren: thrift.New(children)}
	}
	leaf := format.SchemaElement{Name: "element", RepetitionType: thrift.New(format.Required),
		Type: thrift.New(format.Float)}
	b.chunk.Type, b.chunk.PathInSchema = format.Float, []string{"x", "list", "element"}
	b.chunk.DataPageOffset, b.chunk.TotalCompressedSize = 4, int64(len(b.b)-4)
	meta := format.FileMetaData{Version: 1, NumRows: b.rows,
		Schema: []format.SchemaElement{element("root", format.Required, 1),
			element("x", format.Required, 1), element("list", format.Repeated, 1), leaf},
		RowGroups: []format.RowGroup{{NumRows: b.rows, Columns: []format.ColumnChunk{{MetaData: b.chunk}}}}}
	if lie != nil {
		lie(&meta)
	}
	return closed(b.b, compactBytes(&meta))
}

// closed adds a footer.
func closed(b, footer []byte) []byte {
	b = append(bytes.Clone(b), footer...)
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(footer))), magic...)
}

// listPage returns the contents of a page with these repetition levels and no missing values.
func listPage(reps []uint8, first float32) []byte {
	run := func(values []uint8) []byte {
		var b []byte
		for _, v := range values {
			b = append(b, 1<<1, v) // a run of one
		}
		return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...)
	}
	out := run(reps)
	out = append(out, run(bytes.Repeat([]byte{1}, len(reps)))...)
	for i := range reps {
		out = append(out, pq.FloatValue(first+float32(i)).Bytes()...)
	}
	return out
}

// Rows may go on in the next page, and in the page after it.
func TestRowsAcrossPages(t *testing.T) {
	b := builder{rows: 4}
	b.page(3, listPage([]uint8{0, 1, 1}, 0), nil)
	b.page(4, listPage([]uint8{0, 1, 1, 0}, 3), nil)
	b.page(1, listPage([]uint8{1}, 7), nil)
	b.page(0, listPage(nil, 8), nil)
	b.page(2, listPage([]uint8{1, 0}, 8), nil)
	b.page(2, listPage([]uint8{1, 1}, 10), nil)
	f := must(memory(b.file(nil)))(t)
	r := must(f.vectors("x"))(t)
	x := make([]float32, 3)
	for i := range 4 {
		if err := r.Next(x); err != nil || x[0] != float32(3*i) || x[1] != x[0]+1 || x[2] != x[0]+2 {
			t.Errorf("row %d: %v, %v", i, x, err)
		}
	}
	if err := r.Next(x); err != io.EOF {
		t.Error(err)
	}
}

// read reads all of a file of vectors, and returns the first error.
func read(b []byte, most int) error {
	f, err := memory(b)
	if err != nil {
		return err
	}
	f.memory.free = most
	r, err := f.vectors("")
	if err != nil {
		return err
	}
	x := make([]float32, r.Cols)
	for {
		if err := r.Next(x); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Files with false claims cost an error, and hardly any memory.
func TestFilesThatLie(t *testing.T) {
	one := func() *builder {
		b := &builder{rows: 2}
		b.page(4, listPage([]uint8{0, 1, 0, 1}, 0), nil)
		return b
	}
	check(t, read(one().file(nil), 1<<20))
	header := func(lie func(*format.PageHeader)) []byte {
		b := &builder{rows: 2}
		b.page(4, listPage([]uint8{0, 1, 0, 1}, 0), lie)
		return b.file(nil)
	}
	meta := func(lie func(*format.FileMetaData)) []byte { return one().file(lie) }
	chunk := func(lie func(*format.ColumnMetaData)) []byte {
		return meta(func(m *format.FileMetaData) { lie(&m.RowGroups[0].Columns[0].MetaData) })
	}
	// A list of 2^31 row groups, in a footer of some bytes.
	many := []byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7, 0}
	// Row groups of a byte each, all of them empty.
	hollow := append([]byte{0x15, 2, 0x19, 0x1c, 0x48, 1, 'r', 0x15, 0, 0, 0x16, 0, 0x19, 0xfc, 0x80, 0x80,
		0x40}, make([]byte, 1<<20+1)...)
	// Pages that claim to be small.
	packed := func(codec format.CompressionCodec, data []byte) []byte {
		b := &builder{rows: 2}
		b.page(4, data, func(h *format.PageHeader) { h.UncompressedPageSize = 100 })
		return b.file(func(m *format.FileMetaData) { m.RowGroups[0].Columns[0].MetaData.Codec = codec })
	}
	var zeros bytes.Buffer
	z := must(zstd.NewWriter(&zeros, zstd.WithWindowSize(1<<20)))(t)
	if _, err := z.Write(make([]byte, 64<<20)); err != nil {
		t.Fatal(err)
	}
	check(t, z.Close())
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":     {nil, "is too short"},
		"foreign":   {[]byte("this is a text file, and no other"), "is not a .parquet file"},
		"truncated": {one().file(nil)[:60], "is truncated"},
		"encrypted": {append([]byte("PARE"), one().file(nil)[4:]...), "is encrypted"},
		"footer": {append(binary.LittleEndian.AppendUint32([]byte(magic), 1<<30), magic...),
			"claims metadata of"},
		"many":   {closed([]byte(magic), many), "metadata is damaged"},
		"hollow": {closed([]byte(magic), hollow), "structures in"},
		"deep":   {closed([]byte(magic), bytes.Repeat([]byte{0x1c}, 1<<20)), "metadata is damaged"},
		"rows":   {meta(func(m *format.FileMetaData) { m.NumRows = 3 }), "says that it has 3 rows"},
		"negative": {meta(func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = -1, -1 }),
			"has -1 rows"},
		"too many": {meta(func(m *format.FileMetaData) {
			m.NumRows, m.RowGroups[0].NumRows = 1<<40,
				1<<40
		}), "has more than"},
		"more rows": {meta(func(m *format.FileMetaData) { m.NumRows, m.RowGroups[0].NumRows = 9, 9 }),
			"another number of rows"},
		"schema": {meta(func(m *format.FileMetaData) { m.Schema[0].NumChildren.V = 1 << 30 }),
			"no tree"},
		"children": {meta(func(m *format.FileMetaData) { m.Schema[2].NumChildren.V = 7 }), "no tree"},
		"columns": {meta(func(m *format.FileMetaData) { m.RowGroups[0].Columns = nil }),
			"has 0 columns, the schema has 1"},
		"elsewhere": {meta(func(m *format.FileMetaData) {
			m.RowGroups[0].Columns[0].FilePath = "/etc/passwd"
		}), "in other files"},
		"offset": {chunk(func(m *format.ColumnMetaData) { m.DataPageOffset = 1 << 40 }),
			"its data is said to be at"},
		"negative size": {chunk(func(m *format.ColumnMetaData) { m.TotalCompressedSize = -5 }),
			"its data is said to be at"},
		"wrapped": {chunk(func(m *format.ColumnMetaData) { m.TotalCompressedSize = 1<<63 - 1 }),
			"its data is said to be at"},
		"type": {chunk(func(m *format.ColumnMetaData) { m.Type = format.Int64 }),
			"the schema says FLOAT"},
		"codec":    {chunk(func(m *format.ColumnMetaData) { m.Codec = 99 }), "not known"},
		"lzo":      {chunk(func(m *format.ColumnMetaData) { m.Codec = format.LZO }), "LZO"},
		"snappy":   {chunk(func(m *format.ColumnMetaData) { m.Codec = format.Snappy }), "wrong"},
		"zstd":     {chunk(func(m *format.ColumnMetaData) { m.Codec = format.Zstd }), "damaged"},
		"inflates": {packed(format.Zstd, zeros.Bytes()), "what it says of its length is wrong"},
		"huge": {packed(format.Snappy, binary.AppendUvarint(nil, 1<<32-1)),
			"what it says of its length is wrong"},
		"endless": {packed(format.Lz4Raw, []byte{0xf0, 1, 2, 3}),
			"what it says of its length is wrong"},
		"values": {chunk(func(m *format.ColumnMetaData) { m.NumValues = 3 }),
			"it has 4 values, 3 are left"},
		"page": {header(func(h *format.PageHeader) { h.CompressedPageSize = 1 << 30 }),
			"it is said to have"},
		"below": {header(func(h *format.PageHeader) { h.CompressedPageSize = -1 }),
			"it is said to have"},
		"inflated": {header(func(h *format.PageHeader) { h.UncompressedPageSize = 1<<31 - 1 }),
			"at most 268435456 are supported"},
		"other size": {header(func(h *format.PageHeader) { h.UncompressedPageSize = 7 }),
			"what it says of its length is wrong"},
		"levels": {header(func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = 3 }), ""},
		"no values": {header(func(h *format.PageHeader) { h.DataPageHeader.V.NumValues = -1 }),
			"it has -1 values"},
		"encoding": {header(func(
			h *format.PageHeader) {
			h.DataPageHeader.V.Encoding = format.RLEDictionary
		}),
			"needs a dictionary"},
		"bit-packed": {header(func(
			h *format.PageHeader) {
			h.DataPageHeader.V.RepetitionLevelEncoding = format.BitPacked
		}),
			"BIT_PACKED"},
		"checksum":  {header(func(h *format.PageHeader) { h.CRC = 1 }), "its checksum is another"},
		"no header": {header(func(h *format.PageHeader) { h.DataPageHeader.Valid = false }), "damaged"},
	} {
		bounded(t, 4<<20, func() {
			if err := read(c.b, 1<<20); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		})
	}
	// Levels that go on for billions beyond those of the page are not needed.
	page := listPage([]uint8{0, 1, 0, 1}, 0)
	more := append(page[4:12:12], bytes.Repeat(append(binary.AppendUvarint(nil, 1<<32), 1), 3)...)
	more = append(binary.LittleEndian.AppendUint32(nil, uint32(len(more))), more...)
	b := &builder{rows: 2}
	b.page(4, append(more, page[12:]...), nil)
	bounded(t, 4<<20, func() {
		if err := read(b.file(nil), 1<<20); err != nil {
			t.Error(err)
		}
	})
	// A page of a hundred million values in some bytes.
	b = &builder{rows: 1 << 25}
	runs := binary.AppendUvarint(nil, 1<<26) // of 2^25 zeros
	runs = append(binary.LittleEndian.AppendUint32(nil, uint32(len(runs)+1)), append(runs, 0)...)
	b.page(1<<25, append(bytes.Clone(runs), runs...), nil)
	bounded(t, 4<<20, func() {
		if err := read(b.file(nil), 1<<20); err == nil ||
			!strings.Contains(err.Error(), "of memory at a time") {
			t.Error(err)
		}
	})
}

// A bad row costs only that row.
func TestRowsThatAreBad(t *testing.T) {
	type row struct {
		Key   *string   `parquet:"key,optional"`
		Image []float64 `parquet:"image,list"`
		N     uint64    `parquet:"n"`
	}
	key := func(s string) *string { return &s }
	b := write(t, []row{
		{Key: key("a"), Image: []float64{1, 2}},
		{Image: []float64{1, 2}},
		{Key: key("c"), Image: []float64{1, 1e300}},
		{Key: key("d"), Image: []float64{1, 2}, N: 1 << 63},
		{Key: key(""), Image: []float64{1, 2}},
		{Key: key("\xff"), Image: []float64{1, 2}},
		{Key: key("g"), Image: []float64{3, 4}},
	})
	f := must(memory(b))(t)
	r := must(tableOf(f))(t)
	for i, want := range []string{"", `row 1: column "key": is empty`,
		`row 2: key "c": column "image": number 1: 1e+300 is too large for float32`,
		`row 3: key "d": column "n": 9223372036854775808 is too large for an int`, `row 4: column "key": is empty`,
		`row 5: column "key": is not UTF-8`, ""} {
		var it table.Item
		err := r.Next(&it)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("row %d: %v, want %q", i, err, want)
		}
	}
}

func write[T any](t testing.TB, rows []T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pq.NewGenericWriter[T](&out)
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	check(t, w.Close())
	return out.Bytes()
}
