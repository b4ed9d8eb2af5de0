package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
	"github.com/fddhdb/fddhdb/files/table"
)

// memory is a file that is not on disk.
func memory(text string) matrix.Source {
	return matrix.Source{Name: "x", ReaderAt: strings.NewReader(text), Size: int64(len(text))}
}

func reader(t testing.TB, text string) *items {
	t.Helper()
	r := must(count(memory(text), Whole))(t)
	return &items{known: r}
}

func TestItems(t *testing.T) {
	const text = "\ufeff" + `{"key":"cat.jpg","vectors":{"image":[0.25,1e0],"text":{"i":[17,3,5],"v":[2,1.5,0]}},"labels":["cat","b\u00e9"],"fields":{"year":1999,"w":5.0,"t":"","ok":false,"none":null},"payload":"AAEC","code":"01fF"}` + "\r\n" +
		`{}` + "\n" +
		` {"payload":null,"labels":null,"vectors":{"image":null},"key":"b","fields":{},"code_from":"labels","codes":{"image":{"code":"00"}},"modalities":null} ` + "\n" +
		`{"vectors":{"text":{"v":[],"i":[]}}}` + "\n\n \n"
	r := reader(t, text)
	if r.Rows() != 4 {
		t.Errorf("%d rows", r.Rows())
	}
	for i, want := range []table.Item{
		{Key: "cat.jpg", Vectors: map[string][]float32{"image": {.25, 1}},
			Sparse: map[string]table.Sparse{"text": {Index: []uint32{3, 17}, Value: []float32{1.5, 2}}},
			Labels: []string{"cat", "bé"},
			Fields: map[string]any{"year": json.Number("1999"), "w": json.Number("5.0"), "t": "",
				"ok": false},
			Payload: []byte{0, 1, 2}, Code: []byte{1, 255}},
		{},
		{Key: "b"},
		{Sparse: map[string]table.Sparse{"text": {Index: []uint32{}, Value: []float32{}}}},
	} {
		var it table.Item
		check(t, r.Next(&it))
		if d := cmp.Diff(it, want, cmp.Comparer(func(a, b table.Item) bool {
			return a.Key == b.Key && slices.Equal(a.Labels, b.Labels) && bytes.Equal(a.Payload, b.Payload) &&
				bytes.Equal(a.Code, b.Code) &&
				len(a.Vectors) == len(b.Vectors) && slices.Equal(a.Vectors["image"], b.Vectors["image"]) &&
				len(a.Fields) == len(b.Fields) &&
				(len(a.Fields) == 0 || reflect.DeepEqual(a.Fields, b.Fields)) &&
				len(a.Sparse) == len(b.Sparse) && slices.Equal(a.Sparse["text"].Index,
				b.Sparse["text"].Index) &&
				slices.Equal(a.Sparse["text"].Value, b.Sparse["text"].Value)
		})); d != "" {
			t.Errorf("row %d: %s", i, d)
		}
	}
	if err := r.Next(&table.Item{}); err != io.EOF {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Next(&table.Item{}); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

// A file whose lines have vectors of ever new names takes no more memory than one line.
func TestNamesAreNotKept(t *testing.T) {
	var b strings.Builder
	for i := range 5 * maxKept {
		fmt.Fprintf(&b, `{"vectors":{"a%d":[1],"b%d":{"i":[1],"v":[2]}}}`+"\n", i, i)
	}
	r := reader(t, b.String())
	var it table.Item
	for i := range 5 * maxKept {
		if err := r.Next(&it); err != nil || it.Vectors[fmt.Sprint("a", i)][0] != 1 ||
			it.Sparse[fmt.Sprint("b", i)].Index[0] != 1 {
			t.Fatal(it, err)
		}
		if n := len(r.item.dense) + len(r.item.sparse); n > maxKept+2 {
			t.Fatalf("%d vectors are kept", n)
		}
	}
}

func TestLinesThatAreBad(t *testing.T) {
	for line, want := range map[string]string{
		"":                              "is blank: every line must hold an item",
		"[1]":                           "is an array, where an item is expected",
		`{"key":"a"`:                    "byte 10: ',' or '}' is expected where the text ends",
		`{"key":"a"} x`:                 `byte 12: the end is expected, not "x"`,
		`{"key":1}`:                     "key: byte 7: a string is expected",
		`{"key":""}`:                    "key: is empty",
		`{"key":"a","key":"b"}`:         `has "key" twice`,
		`{"image":[1]}`:                 `has a member "image", which items have not`,
		`{"vectors":{"a":[1,NaN]}}`:     `vectors: "a": number 1: NaN is not a finite number`,
		`{"vectors":{"a":[1e39]}}`:      `vectors: "a": number 0: "1e39" is too large for float32`,
		`{"vectors":{"a":[1,[]]}}`:      `vectors: "a": number 1: is an array`,
		`{"vectors":{"a":1}}`:           `vectors: "a": is a number, where a vector is expected`,
		`{"vectors":[[1]]}`:             "vectors: byte 11: an object is expected",
		`{"vectors":{"a":[1],"a":[1]}}`: `vectors: "a": is there twice`,
		`{"vectors":{"a":{"i":[1]}}}`:   `vectors: "a": a sparse vector has "i"`,
		`{"vectors":{"a":{"i":[1,1],"v":[1,2]}}}`:    `vectors: "a": column 1 is there twice`,
		`{"vectors":{"a":{"i":[1],"v":[1,2]}}}`:      `vectors: "a": has 1 columns and 2 numbers`,
		`{"vectors":{"a":{"i":[1.5],"v":[1]}}}`:      `vectors: "a": "1.5" is not a whole number`,
		`{"vectors":{"a":{"i":[1],"v":[1],"x":[]}}}`: `vectors: "a": has "x" in a sparse vector`,
		`{"labels":"cat"}`:                           "labels: byte 10: an array is expected",
		`{"labels":[1]}`:                             "labels: byte 11: a string is expected",
		`{"fields":{"a":[1]}}`:                       `fields: "a": is a list, where a string, a number or a bool is expected`,
		`{"fields":{"a":1,"a":2}}`:                   `fields: "a": is there twice`,
		`{"payload":"?"}`:                            "payload: is not base64",
		`{"code":"0"}`:                               "code: is not hexadecimal",
		`{"key":"a","modalities":["image"]}`:         "comes from an index-only copy",
		"{\"key\":\"\xff\"}":                         "is not UTF-8",
	} {
		r := reader(t, "{}\n"+line+"\n{\"key\":\"last\"}\n")
		var it table.Item
		check(t, r.Next(&it))
		err := r.Next(&it)
		var e *matrix.Error
		if !errors.As(err, &e) || e.Line != 2 || e.Row != 1 || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), "x: line 2: ") {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
		if err := r.Next(&it); err != nil || it.Key != "last" {
			t.Errorf("%s: %v, %v after it", line, it, err)
		}
	}
}

func TestShape(t *testing.T) {
	r := reader(t, `{"vectors":{"image":[1,2],"bag":{"i":[4],"v":[1]},"mixed":{"i":[0],"v":[1]}},"fields":{"n":1,"x":2,"b":true,"at":"2024-05-01T00:00:00Z","day":"2024-05-01T00:00:00Z"},"code":"00"}
{"vectors":{"mixed":[1,2,3],"bag":{"i":[9],"v":[1]}},"fields":{"x":1.5,"s":"2024-05-01","n":null,"at":"0000-01-01T00:00:00.5Z","day":"2024-05-01"},"code":"01"}
{"vectors":{"image":"this says nothing"}}
`)
	got := must(r.Shape())(t)
	want := &table.Shape{
		Vectors: []table.Vector{{Name: "image", Dim: 2, Sparse: false}, {Name: "bag", Dim: 10, Sparse: true},
			{Name: "mixed", Dim: 3, Sparse: false}},
		Fields: []table.Field{{Name: "n", Type: "int"}, {Name: "x", Type: "float"},
			{Name: "b", Type: "bool"}, {Name: "at", Type: "time"}, {Name: "day", Type: "string"},
			{Name: "s", Type: "string"}},
	}
	if d := cmp.Diff(got, want); d != "" {
		t.Error(d)
	}
	var it table.Item
	if err := r.Next(&it); err != nil || len(it.Vectors["image"]) != 2 {
		t.Errorf("%v, %v is the first item after Shape", it, err)
	}
	// Later items that do not go with the first ones say nothing.
	r = reader(t, `{"vectors":{"a":[1]},"fields":{"f":1},"code":"00"}
{"vectors":{"a":[1,2],"none":[]},"fields":{"f":"b"},"code":"0000"}
{"vectors":{"a":{"i":[3],"v":[1]}},"fields":{"f":true},"code":"01"}`)
	if d := cmp.Diff(must(r.Shape())(t), &table.Shape{Vectors: []table.Vector{{Name: "a", Dim: 1}},
		Fields: []table.Field{{Name: "f", Type: "int"}}, Code: 1}); d != "" {
		t.Error(d)
	}
}

func FuzzItems(f *testing.F) {
	f.Add([]byte(`{"key":"a","vectors":{"image":[0.25,1e0],"text":{"i":[17,3,5],"v":[2,1.5,0]}},"labels":["cat"],"fields":{"year":1999,"ok":false},"payload":"AAEC","code":"01fF"}` + "\n{}\n"))
	f.Add([]byte("{\"fields\":{\"a\":1}}\n{\"fields\":{\"a\":\"b\"}}\n\n"))
	f.Add([]byte("{\"vectors\":{\"a\":[1,NaN]}}\n{\"vectors\":{\"a\":{\"i\":[1,1],\"v\":[1,2]}}}\r\n"))
	f.Add([]byte("[{\"key\":\"a\"},\n{\"key\":1}]"))
	f.Add([]byte("\ufeff{\"code_from\":{\"x\":[[[1]]]},\"modalities\":[]}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		array := isArray(memory(string(b)))
		lines, err := count(memory(string(b)), Whole)
		if array && err != nil {
			return // it is cut off
		}
		check(t, err)
		r := &items{known: lines}
		shape, err := r.Shape()
		var e *matrix.Error
		if err != nil && (!errors.As(err, &e) || e.File != "x") {
			t.Errorf("%v is no error about the file", err)
		}
		var it table.Item
		for i := 0; ; i++ {
			err := r.Next(&it)
			if err == io.EOF {
				if i != r.Rows() {
					t.Errorf("%d rows of %d", i, r.Rows())
				}
				break
			}
			if err != nil {
				if !errors.As(err, &e) || e.File != "x" || e.Row != i || !array && e.Line != i+1 {
					t.Fatalf("row %d: %v", i, err)
				}
				continue
			}
			for name, x := range it.Vectors {
				for _, v := range x {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Errorf("%v is among %v", v, x)
					}
				}
				if shape != nil && !slices.ContainsFunc(shape.Vectors,
					func(v table.Vector) bool { return v.Name == name && !v.Sparse }) && len(x) > 0 {
					t.Errorf("%q is not in %v", name, shape)
				}
			}
			for name, x := range it.Sparse {
				if len(x.Index) != len(x.Value) || !slices.IsSorted(x.Index) ||
					len(slices.Compact(slices.Clone(x.Index))) != len(x.Index) {
					t.Errorf("%q is %v", name, x)
				}
			}
		}
		runtime.ReadMemStats(&after)
		// Buffers of two passes, and the errors of lines.
		if n := after.TotalAlloc - before.TotalAlloc; n > uint64(3<<20+2000*len(b)) {
			t.Errorf("%d bytes allocated for %d", n, len(b))
		}
	})
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
