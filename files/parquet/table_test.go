package parquet

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/files/table"
)

// tableOf reads the columns of a file, and uses them as the item writer has made them.
func tableOf(f *file) (*table.Table, error) {
	r := f.items()
	columns, err := r.Columns()
	if err != nil {
		return nil, err
	}
	return r, r.Map(usesOf(columns))
}

func usesOf(columns []table.Column) []table.Use {
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		role := table.LeftAside
		switch {
		case c.Name == "key" && c.Kind == table.Scalars:
			role = table.AsKey
		case c.Name == "labels" && c.Kind == table.Strings:
			role = table.AsLabels
		case c.Name == "payload" && c.Kind == table.Bytes:
			role = table.AsPayload
		case c.Name == "code" && c.Kind == table.Bytes:
			role = table.AsCode
		case c.Kind == table.Numbers || c.Kind == table.SparseVectors:
			role = table.AsVector
		case c.Kind == table.Scalars:
			role = table.AsField
		}
		uses[i] = table.Use{Role: role, Name: c.Name}
	}
	return uses
}

// mapAnyhow uses each column in a way that suits it.
func mapAnyhow(r *table.Table, turn int) error {
	columns, err := r.Columns()
	if err != nil {
		return err
	}
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		for j := range 9 {
			u := table.Use{Role: table.Role((turn + i + j) % 9), Name: c.Name, Type: c.Type}
			if c.Suits(u) == nil {
				uses[i] = u
				break
			}
		}
	}
	return r.Map(uses)
}

// What the columns hold is told, and a column may become something else than it is named for.
func TestColumns(t *testing.T) {
	f := must(memory(written(t, someItems())))(t)
	free := f.memory.free
	r := f.items()
	columns := must(r.Columns())(t)
	if f.memory.free != free {
		t.Errorf("%d bytes are missing", free-f.memory.free)
	}
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		switch c.Name {
		case "key":
			if c.Kind != table.Scalars || c.Type != "string" || c.Example == "" {
				t.Errorf("%+v", c)
			}
			uses[i] = table.Use{Role: table.AsField, Name: "name"}
		case "labels":
			if c.Kind != table.Strings {
				t.Errorf("%+v", c)
			}
		case "image":
			if c.Kind != table.Numbers || c.Dim != 3 || c.Ragged != "" {
				t.Errorf("%+v", c)
			}
			uses[i] = table.Use{Role: table.AsVector, Name: "photo"}
		}
	}
	check(t, r.Map(uses))
	var it table.Item
	check(t, r.Next(&it))
	want := someItems()[0]
	if it.Key != "" || len(it.Labels) != 0 || len(it.Fields) != 1 || it.Fields["name"] != want.Key ||
		len(it.Vectors) != 1 || len(it.Vectors["photo"]) != 3 {
		t.Errorf("%+v of %+v", it, want)
	}
}

// Nearly all lists say how long vectors are, even if not the first. A vector may have a column for each
// number.
func TestMistakenRows(t *testing.T) {
	type row struct {
		D0 float64   `parquet:"d0"`
		D1 *float32  `parquet:"d1,optional"`
		D2 int32     `parquet:"d2"`
		X  []float64 `parquet:"x,list"`
	}
	x := func(v float32) *float32 { return &v }
	f := must(memory(write(t, []row{{1, x(2), 3, []float64{9}}, {4, nil, 6, []float64{1, 2}},
		{7, x(8), 9, []float64{3, 4}}, {math.NaN(), x(8), 9, []float64{5, 6}}})))(t)
	r := f.items()
	columns := must(r.Columns())(t)
	var uses []table.Use
	for at, c := range columns {
		if uses = append(uses, table.Use{Role: table.AsElement, Name: "d", At: at}); c.Name == "x" {
			uses[at] = table.Use{Role: table.AsVector, Name: "x"}
			if c.Dim != 2 || c.Ragged != "" {
				t.Errorf("%+v", c)
			}
		}
	}
	check(t, r.Map(uses))
	shape := must(r.Shape())(t)
	if d := cmp.Diff(shape.Vectors, []table.Vector{{Name: "d", Dim: 3}, {Name: "x", Dim: 2}}); d != "" {
		t.Error(d)
	}
	var it table.Item
	check(t, r.Next(&it)) // who takes the item refuses x, of another length
	if !slices.Equal(it.Vectors["d"], []float32{1, 2, 3}) || len(it.Vectors["x"]) != 1 {
		t.Errorf("%+v", it)
	}
	for _, want := range []string{
		`x.parquet: row 1: column "d1": is empty, where a number of the vector "d" is expected`, "",
		`x.parquet: row 3: column "d0": NaN is not a finite number`} {
		err := r.Next(&it)
		if want == "" && err != nil || want != "" && (err == nil || !strings.HasPrefix(err.Error(), want)) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Columns of any name become labels, and keys of integers text.
func TestColumnsOfOtherNames(t *testing.T) {
	type row struct {
		ID    int64     `parquet:"id"`
		Class *int32    `parquet:"class,optional"`
		Red   int64     `parquet:"is_red"`
		Warm  bool      `parquet:"is_warm"`
		X     []float64 `parquet:"x,list"`
	}
	class := func(n int32) *int32 { return &n }
	f := must(memory(write(t, []row{{-5, class(3), 1, false, []float64{1, 2}},
		{6, class(-1), 0, true, []float64{}}, {7, nil, 1, true, []float64{3}}})))(t)
	r := f.items()
	columns := must(r.Columns())(t)
	var uses []table.Use
	for _, c := range columns {
		uses = append(uses, map[string]table.Use{"id": {Role: table.AsKey}, "class": {Role: table.AsLabels},
			"is_red":  {Role: table.AsLabel, Name: "red"},
			"is_warm": {Role: table.AsLabel, Name: "warm"}, "x": {Role: table.AsVector, Name: "x"}}[c.Name])
		switch c.Name {
		case "id":
			if !c.Unique || c.Flags {
				t.Errorf("%+v", c)
			}
		case "is_red", "is_warm":
			if c.Unique || !c.Flags {
				t.Errorf("%+v", c)
			}
		case "x":
			if c.Ragged != "2 in row 0, 1 in row 2" {
				t.Errorf("%+v", c)
			}
		}
	}
	check(t, r.Map(uses))
	for _, want := range []table.Item{
		{Key: "-5", Labels: []string{"3", "red"}, Vectors: map[string][]float32{"x": {1, 2}}},
		{Key: "6", Labels: []string{"warm"}},
		{Key: "7", Labels: []string{"red", "warm"}, Vectors: map[string][]float32{"x": {3}}},
	} {
		var it table.Item
		check(t, r.Next(&it))
		if d := cmp.Diff(normal(it), normal(want)); d != "" {
			t.Error(d)
		}
	}
}

// labelled uses a column of a file as use says, and reads the labels of all rows. Where Map refuses the use,
// it returns that error and no labels.
func labelled(t *testing.T, b []byte, column string,
	use table.Use) (columns []table.Column, labels []string, err error) {
	t.Helper()
	f := must(memory(b))(t)
	r := f.items()
	if columns, err = r.Columns(); err != nil {
		t.Fatal(err)
	}
	uses := make([]table.Use, len(columns))
	for i, c := range columns {
		if c.Name == column {
			uses[i] = use
		}
	}
	if err := r.Map(uses); err != nil {
		return columns, nil, err
	}
	for range r.Rows() {
		var it table.Item
		if err := r.Next(&it); err != nil {
			t.Fatal(column, err)
		}
		labels = append(labels, fmt.Sprint(it.Labels))
	}
	return columns, labels, nil
}

// Strings, whole numbers and lists of them become labels. pandas writes class numbers as floats if some are
// missing. Lists of 0 and 1 of one length are rows of a matrix. A separator cuts a string into several
// labels, not the strings of a list.
func TestLabels(t *testing.T) {
	type row struct {
		Class   *float64  `parquet:"class,optional"`
		Small   float32   `parquet:"small"`
		Price   float64   `parquet:"price"`
		Tags    string    `parquet:"tags"`
		List    []string  `parquet:"list,list"`
		Classes []int64   `parquet:"classes,list"`
		Hot     []int32   `parquet:"hot,list"`
		X       []float32 `parquet:"x,list"`
	}
	one, nan := 1., math.NaN()
	b := write(t, []row{
		{&one, 2, 1, "red; new,a", []string{"x;y", "z"}, []int64{3, 17}, []int32{0, 1, 1}, []float32{0, 1}},
		{nil, -1, 2.5, "b", nil, []int64{-1}, []int32{0, 0, 0}, []float32{1, 1}},
		{&nan, 1 << 24, 3, "", nil, nil, []int32{1, 0, 0}, []float32{1, 1}}})
	for _, c := range []struct {
		column, separator string
		want              []string
	}{
		{"class", "", []string{"[1]", "[]", "[]"}}, {"small", "", []string{"[2]", "[]", "[16777216]"}},
		{"price", "", nil},
		{"tags", "", []string{"[red; new,a]", "[b]", "[]"}},
		{"tags", ";", []string{"[red new,a]", "[b]", "[]"}},
		{"tags", ",", []string{"[red; new a]", "[b]", "[]"}},
		{"list", ";", []string{"[x;y z]", "[]", "[]"}}, {"classes", "", []string{"[3 17]", "[]", "[]"}},
		{"hot", "", []string{"[1 2]", "[]", "[0]"}}, {"x", "", nil},
	} {
		columns, got, err := labelled(t, b, c.column, table.Use{Role: table.AsLabels, Separator: c.separator})
		if (err != nil) != (c.want == nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.column, got, err, c.want)
		}
		for _, column := range columns {
			if column.Hot() != (column.Name == "hot") ||
				column.Name == "tags" && column.Joined != "red; new,a" ||
				column.Name == "list" && column.Joined != "" {
				t.Errorf("%+v", column)
			}
		}
	}
}
