package command

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// itemJSON is an item as --json prints it and items files hold it.
type itemJSON struct {
	Key      string              `json:"key"`
	Vectors  map[string]any      `json:"vectors,omitempty"` // []float32, or db.Sparse
	Labels   []string            `json:"labels"`            // never null
	Fields   map[string]any      `json:"fields,omitempty"`
	Payload  []byte              `json:"payload,omitempty"` // base64
	Code     string              `json:"code,omitempty"`    // hexadecimal
	CodeFrom string              `json:"code_from,omitempty"`
	Codes    map[string]codeJSON `json:"codes,omitempty"` // by target, in place of the two

	Modalities []string `json:"modalities,omitempty"` // in place of vectors, where the collection is index-only
}

// codeJSON is the code of an item for one target.
type codeJSON struct {
	Code string `json:"code"` // hexadecimal
	From string `json:"from"`
}

func newItemJSON(it *db.Item) itemJSON {
	out := itemJSON{
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
			out.Fields[name] = floatJSON(x)
		}
	}
	for to, c := range it.Codes {
		if out.Codes == nil {
			out.Codes = map[string]codeJSON{}
		}
		out.Codes[to] = codeJSON{hex.EncodeToString(c.Code), c.From}
	}
	if out.Labels == nil {
		out.Labels = []string{}
	}
	return out
}

// floatJSON is a float that is one in JSON, too: 5.0 and not 5, which whoever reads it
// would take for an int.
type floatJSON float64

func (x floatJSON) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(x))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// printItem writes an item for a person to look at.
func (e *env) printItem(it *db.Item) {
	e.printf("%s\n", plain(it.Key))
	line := func(name, format string, args ...any) {
		e.printf("  %-9s %s\n", name, fmt.Sprintf(format, args...))
	}
	if len(it.Labels) > 0 {
		line("labels", "%s", plain(strings.Join(it.Labels, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Fields)) {
		line("field", "%s = %s", name, plain(fmt.Sprint(it.Fields[name])))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Vectors)) {
		line("vector", "%s, %s", name, vectorStart(it.Vectors[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(it.Sparse)) {
		line("vector", "%s, %s", name, sparseStart(it.Sparse[name]))
	}
	for _, name := range it.Modalities {
		line("vector", "%s, not in this copy", name)
	}
	if len(it.Code) > 0 {
		line("code", "%s, %s", hex.EncodeToString(it.Code), codeOrigin(it.CodeFrom))
	}
	for _, to := range slices.Sorted(maps.Keys(it.Codes)) {
		line("code", "for %s: %s, %s", to, hex.EncodeToString(it.Codes[to].Code), codeOrigin(it.Codes[to].From))
	}
	if len(it.Payload) > 0 {
		line("payload", "%s", size(int64(len(it.Payload))))
	}
}

// codeOrigin says where a code comes from.
func codeOrigin(from string) string {
	switch from {
	case "given":
		return "given"
	case "fused":
		return "from its vectors"
	}
	return "from its " + from
}
