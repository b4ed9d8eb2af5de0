package db

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/jsonform"
	"github.com/fddhdb/fddhdb/db/report"
)

// The types that the database returns have a JSON form, for programs. The command prints the same forms; it
// adds the query to an answer (cmd/fddhdb/forms), and has one object for both orders of an evaluation
// (cmd/fddhdb/command).

// hitForm is the JSON of a Hit.
type hitForm struct {
	Key      string         `json:"key"`
	Row      uint32         `json:"row"`
	Distance *int           `json:"distance"`
	Score    jsonform.Score `json:"score"`

	Similarity *float32 `json:"similarity"`
	Cursor     string   `json:"cursor,omitempty"`
	Item       *Item    `json:"item,omitempty"`
}

// MarshalJSON implements json.Marshaler: {"key", "row", "distance", "score", "similarity", "cursor", "item"}.
// The distance of an answer by vectors is null. So is the score of a query by code, and a similarity where
// nothing was compared; cursor and item are there if the query asks for them.
func (h Hit) MarshalJSON() ([]byte, error) {
	f := hitForm{Key: h.Key, Row: h.Row, Score: jsonform.Score(h.Score), Cursor: h.Cursor, Item: h.Item}
	if h.Distance >= 0 {
		f.Distance = &h.Distance
	}
	if h.Similarity == h.Similarity {
		f.Similarity = &h.Similarity
	}
	return jsonform.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hit) UnmarshalJSON(b []byte) error {
	f := hitForm{Score: jsonform.Score(math.NaN())}
	err := json.Unmarshal(b, &f)
	*h = Hit{Key: f.Key, Row: f.Row, Distance: -1, Score: float64(f.Score), Similarity: float32(math.NaN()),
		Cursor: f.Cursor, Item: f.Item}
	if f.Distance != nil {
		h.Distance = *f.Distance
	}
	if f.Similarity != nil {
		h.Similarity = *f.Similarity
	}
	return err
}

// resultForm is the JSON of a Result.
type resultForm struct {
	Hits      []Hit   `json:"hits"`
	Next      *string `json:"next"`
	Total     int     `json:"total,omitempty"`
	Distances []int   `json:"distances,omitempty"`
	Space     Space   `json:"space"`
	Revision  uint32  `json:"revision"`

	Rerank  string          `json:"rerank,omitempty"`
	Explain *report.Explain `json:"explain,omitempty"`
	Facets  []Facets        `json:"facets,omitempty"`

	Approximate bool `json:"approximate,omitempty"`
}

// MarshalJSON implements json.Marshaler: {"hits", "next", "total", "distances", "space", "revision",
// "rerank", "explain", "facets", "approximate"}. Hits are never null, and next is null at the end. Left out
// are a total of 0, no distances, a rerank of RerankAuto, no explain, empty facets, and approximate if false.
func (r Result) MarshalJSON() ([]byte, error) {
	f := resultForm{Hits: r.Hits, Total: r.Total, Distances: r.Distances, Space: r.Space,
		Revision: r.Revision, Facets: r.Facets, Approximate: r.Approximate, Explain: r.Explain}
	if r.Rerank != RerankAuto {
		f.Rerank = r.Rerank.String()
	}
	if f.Hits == nil {
		f.Hits = []Hit{}
	}
	if r.Next != "" {
		f.Next = &r.Next
	}
	return jsonform.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Result) UnmarshalJSON(b []byte) error {
	var f resultForm
	err := json.Unmarshal(b, &f)
	*r = Result{Hits: f.Hits, Total: f.Total, Distances: f.Distances, Space: f.Space, Revision: f.Revision,
		Facets: f.Facets, Approximate: f.Approximate, Explain: f.Explain}
	if err == nil && f.Rerank != "" {
		r.Rerank, err = ParseRerank(f.Rerank)
	}
	if f.Next != nil {
		r.Next = *f.Next
	}
	return err
}

// runForm is the JSON of a Run.
type runForm struct {
	Distance int            `json:"distance"`
	Score    jsonform.Score `json:"score"`
	Rows     []uint32       `json:"rows,omitempty"`
}

// MarshalJSON implements json.Marshaler: {"distance", "score", "rows"}, where the score of a
// query by code is null.
func (r Run) MarshalJSON() ([]byte, error) {
	return jsonform.Marshal(runForm{r.Distance, jsonform.Score(r.Score), r.Rows})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Run) UnmarshalJSON(b []byte) error {
	f := runForm{Score: jsonform.Score(math.NaN())}
	err := json.Unmarshal(b, &f)
	*r = Run{f.Distance, float64(f.Score), f.Rows}
	return err
}

// codedForm is the JSON of a Coded.
type codedForm struct {
	Row  uint32        `json:"row"`
	Key  string        `json:"key"`
	Code jsonform.Code `json:"code"`
}

// MarshalJSON implements json.Marshaler: {"row", "key", "code"}, the code in hexadecimal
// digits.
func (c Coded) MarshalJSON() ([]byte, error) {
	return jsonform.Marshal(codedForm{c.Row, c.Key, c.Code})
}

// UnmarshalJSON implements json.Unmarshaler. The code is a new one.
func (c *Coded) UnmarshalJSON(b []byte) error {
	var f codedForm
	err := json.Unmarshal(b, &f)
	*c = Coded{f.Row, f.Key, f.Code}
	return err
}

// itemForm is the JSON of an Item. A vector is an array, or {"i", "v"} where it is sparse.
type itemForm[V any] struct {
	Key        string         `json:"key"`
	Vectors    map[string]V   `json:"vectors,omitempty"`
	Labels     []string       `json:"labels"`
	Fields     map[string]any `json:"fields,omitempty"`
	Payload    []byte         `json:"payload,omitempty"`
	Code       jsonform.Code  `json:"code,omitempty"`
	CodeFrom   string         `json:"code_from,omitempty"`
	Modalities []string       `json:"modalities,omitempty"`
}

// MarshalJSON implements json.Marshaler, in the form of a file of items (docs/SHELL.md): {"key", "vectors",
// "labels", "fields", "payload"}, and "code", "code_from" and "modalities" where there are any. A sparse
// vector is {"i", "v"} among the others, labels are never null, a float field has a point or an exponent, the
// payload is in base64, and codes are in hexadecimal digits.
func (it Item) MarshalJSON() ([]byte, error) {
	f := itemForm[any]{it.Key, nil, it.Labels, jsonform.Fields(it.Fields), it.Payload, it.Code, it.CodeFrom,
		it.Modalities}
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
	return jsonform.Marshal(f)
}

// UnmarshalJSON implements json.Unmarshaler. A number of a field becomes an int64 if it has neither a point
// nor an exponent, else a float64. A null vector or field is dropped, and so are unknown members. Put checks
// the contents.
func (it *Item) UnmarshalJSON(b []byte) error {
	var f itemForm[json.RawMessage]
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&f); err != nil {
		return err
	}
	*it = Item{Key: f.Key, Labels: f.Labels, Payload: f.Payload, Code: f.Code, CodeFrom: f.CodeFrom,
		Modalities: f.Modalities}
	for name, b := range f.Vectors {
		if err := it.addVector(name, b); err != nil {
			return fault.OfItem(f.Key, fmt.Errorf("vector %q: %w", name, err))
		}
	}
	var err error
	if it.Fields, err = jsonform.Values(f.Fields); err != nil {
		return fault.OfItem(f.Key, err)
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
		enter(&it.Sparse, name, x)
	default:
		var x []float32
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		enter(&it.Vectors, name, x)
	}
	return nil
}
