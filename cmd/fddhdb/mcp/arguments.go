package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fddhdb/fddhdb/internal/rest"
)

// The arguments of a tool are a struct. Its fields are pointers, slices and maps where an argument may be
// left out; the others are required. Assistants write null for what they leave out.

// about are the arguments of every tool about a collection.
type about struct {
	Collection string `json:"collection,omitempty" jsonschema:"name of the collection; may be left out if there is one, or one named main"`
	sized
}

// sized are the arguments of every tool.
type sized struct {
	MaxBytes *int `json:"max_bytes,omitempty" jsonschema:"most bytes of the answer: 8192 if left out, up to 1048576"`
}

// Limits of arguments.
const (
	defaultBytes = 8 << 10
	leastBytes   = 2 << 10
	mostBytes    = 1 << 20
	defaultRows  = 10
	mostRows     = 100
	mostKeys     = 1000     // of one call of delete_items
	mostText     = 16 << 10 // bytes of a text that becomes a vector
)

// bytes returns the bound of an answer.
func (a *sized) bytes() (int, error) {
	return bounded("max_bytes", a.MaxBytes, defaultBytes, leastBytes, mostBytes)
}

// bounded returns a number between two others, or the default.
func bounded(name string, n *int, otherwise, least, most int) (int, error) {
	switch {
	case n == nil:
		return otherwise, nil
	case *n < least || *n > most:
		return 0, fmt.Errorf("%s: %d: %d to %d is possible", name, *n, least, most)
	}
	return *n, nil
}

// included checks the parts of items that an answer is to have. Only one is possible for each tool.
func included(include []string, possible string) (bool, error) {
	for _, part := range include {
		if part != possible {
			return false, fmt.Errorf("include: %.40q: %s is possible; the other parts come always", part, possible)
		}
	}
	return len(include) > 0, nil
}

// schemas has the JSON Schema of each type that encodes itself: reflection would describe its Go fields.
var schemas = map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[rest.Vector](): {Type: "array", Items: &jsonschema.Schema{Type: "number"}},
	reflect.TypeFor[rest.Fields](): {Type: "object"},
	reflect.TypeFor[rest.Args](): {Type: "array", Items: &jsonschema.Schema{
		Description: "text, a number, true or false, or an array of them for IN (?)"}},
	reflect.TypeFor[rest.Hex](): {Type: "string"},
}

// schemaOf returns the JSON Schema of arguments, without those that the tool does not take.
func schemaOf[In any](without ...string) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: schemas})
	if err != nil {
		return nil, err
	}
	for _, name := range without {
		delete(s.Properties, name)
		s.PropertyOrder = slices.DeleteFunc(s.PropertyOrder, func(x string) bool { return x == name })
	}
	plain(s)
	return s, nil
}

// plain gives each part of a schema one type: some clients know no others. null is possible all the same.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if types := slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" }); len(types) == 1 {
		s.Type, s.Types = types[0], nil
	}
	plain(s.Items)
	for _, p := range s.Properties {
		plain(p)
	}
}

// parse decodes the arguments of a tool into in, a pointer to a struct. Its errors name the argument.
func parse(raw json.RawMessage, in any, without ...string) error {
	targets := map[string]reflect.Value{}
	var required []string
	collect(reflect.ValueOf(in).Elem(), targets, &required)
	for _, name := range without {
		delete(targets, name)
	}
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return errors.New("the arguments are no JSON object")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		target, known := targets[name]
		if !known {
			return fmt.Errorf("there is no argument %.40q: %s", name, possible(targets))
		}
		if string(given[name]) == "null" {
			delete(given, name)
			continue
		}
		d := json.NewDecoder(bytes.NewReader(given[name]))
		d.DisallowUnknownFields()
		if err := d.Decode(target.Addr().Interface()); err != nil {
			return fmt.Errorf("%s: %s", name, mistake(err))
		}
	}
	for _, name := range required {
		if _, is := given[name]; !is {
			return fmt.Errorf("%s is missing: %s", name, possible(targets))
		}
	}
	return nil
}

// collect adds the arguments of a struct by name, and those that are required.
func collect(v reflect.Value, targets map[string]reflect.Value, required *[]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			collect(v.Field(i), targets, required)
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		targets[name] = v.Field(i)
		if options == "" {
			*required = append(*required, name)
		}
	}
}

func possible(targets map[string]reflect.Value) string {
	return "the arguments are " + strings.Join(slices.Sorted(maps.Keys(targets)), ", ")
}

// mistake turns an error of package json about an argument into words for an assistant.
func mistake(err error) string {
	kind, is := errors.AsType[*json.UnmarshalTypeError](err)
	if !is {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			return "a value is expected"
		}
		return strings.TrimPrefix(err.Error(), "json: ")
	}
	expected := kind.Type.String()
	switch kind.Type.Kind() {
	case reflect.String:
		expected = "text"
	case reflect.Int, reflect.Int64:
		expected = "a whole number"
	case reflect.Float32, reflect.Float64:
		expected = "a number"
	case reflect.Bool:
		expected = "true or false"
	case reflect.Slice:
		expected = "an array"
	case reflect.Map, reflect.Struct:
		expected = "an object"
	}
	if kind.Field != "" {
		return fmt.Sprintf("%s: %s is expected, not %s", kind.Field, expected, kind.Value)
	}
	return fmt.Sprintf("%s is expected, not %s", expected, kind.Value)
}
