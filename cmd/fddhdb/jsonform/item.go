package jsonform

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"maps"

	"github.com/fddhdb/fddhdb/db"
)

// An Item is an item in the form of --json and of files of items.
type Item struct {
	Key      string          `json:"key"`
	Vectors  map[string]any  `json:"vectors,omitempty"` // []float32, or db.Sparse
	Labels   []string        `json:"labels"`            // never null
	Fields   map[string]any  `json:"fields,omitempty"`
	Payload  []byte          `json:"payload,omitempty"` // base64
	Code     string          `json:"code,omitempty"`    // hexadecimal
	CodeFrom string          `json:"code_from,omitempty"`
	Codes    map[string]Code `json:"codes,omitempty"` // by target; replaces Code and CodeFrom

	Modalities []string `json:"modalities,omitempty"` // replaces Vectors if the collection is index-only
}

// A Code is the code of an item for one target.
type Code struct {
	Code string `json:"code"` // hexadecimal
	From string `json:"from"`
}

// NewItem returns the form of an item. It aliases the item.
func NewItem(it *db.Item) Item {
	out := Item{
		Key: it.Key, Vectors: map[string]any{}, Labels: it.Labels, Fields: it.Fields,
		Payload: it.Payload, Code: hex.EncodeToString(it.Code), CodeFrom: it.CodeFrom,
		Modalities: it.Modalities,
	}
	cloned := false
	for name, x := range it.Vectors {
		out.Vectors[name] = x
	}
	for name, x := range it.Sparse {
		out.Vectors[name] = x
	}
	for name, v := range it.Fields {
		if x, ok := v.(float64); ok {
			if !cloned {
				out.Fields, cloned = maps.Clone(out.Fields), true
			}
			out.Fields[name] = float(x)
		}
	}
	for to, c := range it.Codes {
		if out.Codes == nil {
			out.Codes = map[string]Code{}
		}
		out.Codes[to] = Code{hex.EncodeToString(c.Code), c.From}
	}
	if out.Labels == nil {
		out.Labels = []string{}
	}
	return out
}

// A float is written as 5.0 and not 5, which a reader would take for an int.
type float float64

func (x float) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(x))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}
