package jsonform

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

// Marshal is json.Marshal without the escapes of HTML, for methods: the encoder that calls them
// makes those, or not, as it is told.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// A Code is a code in hexadecimal digits.
type Code []byte

// MarshalText implements encoding.TextMarshaler.
func (c Code) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, c), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Code) UnmarshalText(b []byte) (err error) {
	*c, err = hex.AppendDecode(nil, b)
	return err
}

// A Score is a number, or null in place of NaN, which JSON has not.
type Score float64

// MarshalJSON implements json.Marshaler.
func (x Score) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(x)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *Score) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*x = Score(math.NaN())
		return nil
	}
	return json.Unmarshal(b, (*float64)(x))
}

// A float is 5.0 and not 5, which a reader would take for an int.
type float float64

func (x float) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(float64(x))
	if err == nil && !bytes.ContainsAny(b, ".e") {
		b = append(b, ".0"...)
	}
	return b, err
}

// Fields returns the values of fields for json.Marshal, where a float has a point or an exponent
// and an int has none. It may be the same map.
func Fields(values map[string]any) map[string]any {
	out, cloned := values, false
	for name, v := range values {
		if x, ok := v.(float64); ok {
			if !cloned {
				out, cloned = maps.Clone(values), true
			}
			out[name] = float(x)
		}
	}
	return out
}

// Values undoes Fields: decoded comes from a decoder with UseNumber. What is null is not there.
func Values(decoded map[string]any) (values map[string]any, err error) {
	for name, v := range decoded {
		if v == nil {
			continue
		}
		x, err := valueOf(v)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", name, err)
		}
		if values == nil {
			values = map[string]any{}
		}
		values[name] = x
	}
	return values, nil
}

// valueOf returns a value of a field from what JSON has for it.
func valueOf(v any) (any, error) {
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
