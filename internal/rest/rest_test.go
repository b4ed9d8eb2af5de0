package rest

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A vector is read in each of its forms, and what is none is refused.
func TestVector(t *testing.T) {
	inf := float32(math.Inf(1))
	for text, want := range map[string]any{
		`null`:                       Vector{},
		`[]`:                         Vector{Dense: []float32{}},
		`[1, -2.5e1]`:                Vector{Dense: []float32{1, -25}},
		`""`:                         Vector{Dense: []float32{}},
		`"AACAPwAAgH8="`:             Vector{Dense: []float32{1, inf}}, // the database refuses it
		`{"i":[1],"v":[2]}`:          Vector{Sparse: &db.Sparse{Index: []uint32{1}, Value: []float32{2}}},
		`{}`:                         Vector{Sparse: &db.Sparse{}},
		`[1, null]`:                  nil,
		`[[1]]`:                      nil,
		`["1"]`:                      nil,
		`[1e39]`:                     nil,
		`"AAA"`:                      nil,
		`"AAAA"`:                     nil, // three bytes
		`"\u0000"`:                   nil,
		`{"i":[1],"v":[null]}`:       nil,
		`{"i":[-1],"v":[1]}`:         nil,
		`{"i":[1],"w":[1]}`:          nil,
		`{"i":[4294967296],"v":[1]}`: nil,
		`1`:                          nil,
		`true`:                       nil,
	} {
		v := Vector{Dense: []float32{9}, Sparse: &db.Sparse{}}
		err := json.Unmarshal([]byte(text), &v)
		if want == nil {
			if err == nil {
				t.Errorf("%s: %v", text, v)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("%s: %v, %v, not %v", text, v, err, want)
		}
		b, err := json.Marshal(v)
		var back Vector
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		if err != nil || len(back.Dense) != len(v.Dense) || (back.Sparse == nil) != (v.Sparse == nil) {
			t.Errorf("%s: %s, %v", text, b, err)
		}
	}
}

// The numbers of filters and fields keep their kind, and what is no value is refused.
func TestArgsAndFields(t *testing.T) {
	for text, want := range map[string]Args{
		`[1, 1.0, 1e0, "1", true, null]`: {int64(1), 1.0, 1.0, "1", true, nil},
		`[[1, 2.5], 18446744073709551615, 18446744073709551616]`: {[]any{int64(1), 2.5},
			uint64(math.MaxUint64), float64(1 << 63 * 2)},
		`[1e400]`: {math.Inf(1)},
		`[]`:      {},
	} {
		var a Args
		if err := json.Unmarshal([]byte(text), &a); err != nil || !reflect.DeepEqual(a, want) {
			t.Errorf("%s: %#v, %v", text, a, err)
		}
	}
	for _, text := range []string{`{}`, `1`, `"x"`, `[1`} {
		if json.Unmarshal([]byte(text), new(Args)) == nil {
			t.Errorf("%s is taken for values", text)
		}
	}
	var f Fields
	want := Fields{"a": int64(1), "b": 1.5, "c": "x", "d": false}
	err := json.Unmarshal([]byte(`{"a":1,"b":1.5,"c":"x","d":false,"e":null}`), &f)
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("%#v, %v", f, err)
	}
	for _, text := range []string{`[]`, `{"a":[1]}`, `{"a":{}}`} {
		if json.Unmarshal([]byte(text), new(Fields)) == nil {
			t.Errorf("%s is taken for fields", text)
		}
	}
}

// A code in another form, such as base64, is refused by an error that says which form it has.
func TestCodeSaysItsForm(t *testing.T) {
	for _, text := range []string{`{"code": "AQI="}`, `{"code": "012"}`} {
		var it Item
		err := json.Unmarshal([]byte(text), &it)
		if err == nil || !strings.Contains(err.Error(), "a code has two hexadecimal digits for each byte") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
