package db

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strconv"

	"github.com/fddhdb/fddhdb/db/fault"
)

// What the database returns has a JSON form. The names in it are those that the command
// prints, with one more here and there.

// plainJSON is json.Marshal without the escapes of HTML, for methods: the encoder that calls
// them makes those, or not, as it is told.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// hexCode is a code in hexadecimal digits.
type hexCode []byte

func (c hexCode) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c), nil }

func (c *hexCode) UnmarshalText(b []byte) (err error) {
	*c, err = hex.AppendDecode(nil, b)
	return err
}

// jsonScore returns a score as JSON has it: null in place of NaN, which JSON has not.
func jsonScore(x float64) *float64 {
	if math.IsNaN(x) {
		return nil
	}
	return &x
}

// scoreOf undoes jsonScore.
func scoreOf(x *float64) float64 {
	if x == nil {
		return math.NaN()
	}
	return *x
}

// hitForm is the JSON of a Hit.
type hitForm struct {
	Key      string   `json:"id"`
	Row      uint32   `json:"row"`
	Distance int      `json:"distance"`
	Score    *float64 `json:"score"`
}

// MarshalJSON implements json.Marshaler: {"id", "row", "distance", "score"}, where the score
// of a query by code is null.
func (h Hit) MarshalJSON() ([]byte, error) {
	return plainJSON(hitForm{h.Key, h.Row, h.Distance, jsonScore(h.Score)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hit) UnmarshalJSON(b []byte) error {
	var f hitForm
	err := json.Unmarshal(b, &f)
	*h = Hit{f.Key, f.Row, f.Distance, scoreOf(f.Score)}
	return err
}

// resultForm is the JSON of a Result.
type resultForm struct {
	Hits     []Hit   `json:"hits"`
	Next     *string `json:"next"`
	Total    int     `json:"total,omitempty"`
	Space    Space   `json:"space"`
	Revision uint32  `json:"revision"`
}

// MarshalJSON implements json.Marshaler: {"hits", "next", "total", "space", "revision"}. Hits
// are never null, next is at the end, and there is no total of 0.
func (r Result) MarshalJSON() ([]byte, error) {
	f := resultForm{r.Hits, nil, r.Total, r.Space, r.Revision}
	if f.Hits == nil {
		f.Hits = []Hit{}
	}
	if r.Next != "" {
		f.Next = &r.Next
	}
	return plainJSON(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Result) UnmarshalJSON(b []byte) error {
	var f resultForm
	err := json.Unmarshal(b, &f)
	*r = Result{Hits: f.Hits, Total: f.Total, Space: f.Space, Revision: f.Revision}
	if f.Next != nil {
		r.Next = *f.Next
	}
	return err
}

// MarshalJSON implements json.Marshaler: {"distance", "score", "rows"}, where the score of a
// query by code is null.
func (r Run) MarshalJSON() ([]byte, error) {
	return plainJSON(struct {
		Distance int      `json:"distance"`
		Score    *float64 `json:"score"`
		Rows     []uint32 `json:"rows,omitempty"`
	}{r.Distance, jsonScore(r.Score), r.Rows})
}

// MarshalJSON implements json.Marshaler: {"row", "id", "code"}, the code in hexadecimal
// digits.
func (c Coded) MarshalJSON() ([]byte, error) {
	return plainJSON(struct {
		Row  uint32  `json:"row"`
		Key  string  `json:"id"`
		Code hexCode `json:"code"`
	}{c.Row, c.Key, c.Code})
}

// targetCodeForm is the JSON of a TargetCode.
type targetCodeForm struct {
	Code hexCode `json:"code"`
	From string  `json:"from"`
}

// MarshalJSON implements json.Marshaler: {"code", "from"}, the code in hexadecimal digits.
func (c TargetCode) MarshalJSON() ([]byte, error) {
	return plainJSON(targetCodeForm{c.Code, c.From})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *TargetCode) UnmarshalJSON(b []byte) error {
	var f targetCodeForm
	err := json.Unmarshal(b, &f)
	*c = TargetCode{f.Code, f.From}
	return err
}

// itemForm is the JSON of an Item. A vector is an array, or {"i", "v"} where it is sparse.
type itemForm[V any] struct {
	Key        string                `json:"key"`
	Vectors    map[string]V          `json:"vectors,omitempty"`
	Labels     []string              `json:"labels"`
	Fields     map[string]any        `json:"fields,omitempty"`
	Payload    []byte                `json:"payload,omitempty"`
	Code       hexCode               `json:"code,omitempty"`
	CodeFrom   string                `json:"code_from,omitempty"`
	Codes      map[string]TargetCode `json:"codes,omitempty"`
	Modalities []string              `json:"modalities,omitempty"`
}

// MarshalJSON implements json.Marshaler, in the form of a file of items (docs/SHELL.md): {"key",
// "vectors", "labels", "fields", "payload"}, and "code", "code_from", "codes" and
// "modalities" where there are any. A sparse vector is {"i", "v"} among the others, labels
// are never null, a float field has a point or an exponent, the payload is in base64, and
// codes are in hexadecimal digits.
func (it Item) MarshalJSON() ([]byte, error) {
	f := itemForm[any]{it.Key, nil, it.Labels, it.Fields, it.Payload, it.Code, it.CodeFrom, it.Codes, it.Modalities}
	if n := len(it.Vectors) + len(it.Sparse); n > 0 {
		f.Vectors = make(map[string]any, n)
	}
	for name, x := range it.Vectors {
		f.Vectors[name] = x
	}
	for name, x := range it.Sparse {
		if x.Index == nil { // [], not null
			x = Sparse{[]uint32{}, []float32{}}
		}
		f.Vectors[name] = x
	}
	if f.Labels == nil {
		f.Labels = []string{}
	}
	cloned := false
	for name, v := range it.Fields {
		if x, ok := v.(float64); ok {
			if !cloned {
				f.Fields, cloned = maps.Clone(it.Fields), true
			}
			f.Fields[name] = floatForm(x)
		}
	}
	return plainJSON(f)
}

// floatForm is a float in JSON, too: 5.0 and not 5, which a reader would take for an int.
type floatForm float64

func (x floatForm) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(x))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// UnmarshalJSON implements json.Unmarshaler. Of a field that is a number it makes an int64
// where it has neither a point nor an exponent, else a float64. A vector or a field that is
// null is not there. What an item may hold is
// checked when it is put.
func (it *Item) UnmarshalJSON(b []byte) error {
	var f itemForm[json.RawMessage]
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return err
	}
	*it = Item{Key: f.Key, Labels: f.Labels, Payload: f.Payload, Code: f.Code, CodeFrom: f.CodeFrom, Codes: f.Codes, Modalities: f.Modalities}
	for name, b := range f.Vectors {
		if err := it.addVector(name, b); err != nil {
			return fault.OfItem(f.Key, fmt.Errorf("vector %q: %w", name, err))
		}
	}
	for name, v := range f.Fields {
		if v == nil {
			continue
		}
		x, err := fieldOf(v)
		if err != nil {
			return fault.OfItem(f.Key, fmt.Errorf("field %q: %w", name, err))
		}
		if it.Fields == nil {
			it.Fields = map[string]any{}
		}
		it.Fields[name] = x
	}
	return nil
}

// addVector adds a vector as JSON has it, unless it is null.
func (it *Item) addVector(name string, b []byte) error {
	switch {
	case bytes.Equal(b, []byte("null")):
	case bytes.HasPrefix(b, []byte("{")):
		var x Sparse
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		if it.Sparse == nil {
			it.Sparse = map[string]Sparse{}
		}
		it.Sparse[name] = x
	default:
		var x []float32
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		if it.Vectors == nil {
			it.Vectors = map[string][]float32{}
		}
		it.Vectors[name] = x
	}
	return nil
}

// fieldOf returns a value of a field from what JSON has for it.
func fieldOf(v any) (any, error) {
	switch v := v.(type) {
	case string, bool:
		return v, nil
	case json.Number:
		if n, err := strconv.ParseInt(v.String(), 10, 64); err == nil {
			return n, nil
		}
		return v.Float64()
	}
	return nil, fault.Invalid("%T is no value", v)
}
