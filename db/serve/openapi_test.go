package serve

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"
)

// Each type of a request or an answer whose JSON is not that of its fields has a schema of its own.
func TestTypesWithTheirOwnJSON(t *testing.T) {
	s, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	known := maps.Clone(custom)
	known[reflect.TypeFor[time.Time]()] = nil
	seen := map[reflect.Type]bool{}
	var look func(of reflect.Type, path string)
	look = func(of reflect.Type, path string) {
		if _, has := known[of]; has || seen[of] {
			return
		}
		seen[of] = true
		is := func(i reflect.Type) bool { return of.Implements(i) || reflect.PointerTo(of).Implements(i) }
		if is(reflect.TypeFor[json.Marshaler]()) && of.Kind() != reflect.Pointer {
			t.Errorf("%s: %v has a MarshalJSON, and custom does not name it", path, of)
		}
		if is(reflect.TypeFor[encoding.TextMarshaler]()) {
			if !is(reflect.TypeFor[encoding.TextUnmarshaler]()) {
				t.Errorf("%s: %v is written as text, and huma looks at UnmarshalText", path, of)
			}
			return
		}
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(of.Elem(), path)
		case reflect.Struct:
			for f := range of.Fields() {
				if f.Tag.Get("json") != "-" && (f.IsExported() || f.Anonymous) {
					look(f.Type, path+"."+f.Name)
				}
			}
		case reflect.Interface:
			t.Errorf("%s: the document says nothing of an %v", path, of)
		}
	}
	for _, r := range s.routes.routes {
		for _, of := range []reflect.Type{r.in, r.out, r.line, r.answers} {
			if of != nil {
				look(of, r.method+" "+r.path+": "+of.Name())
			}
		}
	}
}

// Two operations do not share an identifier.
func TestOperationsHaveTheirOwnIDs(t *testing.T) {
	s, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, r := range s.routes.routes {
		id := operationID(r)
		if seen[id] != "" {
			t.Errorf("%s and %s %s are both %s", seen[id], r.method, r.path, id)
		}
		seen[id] = r.method + " " + r.path
	}
}
