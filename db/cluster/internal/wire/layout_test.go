package wire

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"testing"
)

// layout describes a type by all that a message of it has.
func layout(t reflect.Type, seen map[reflect.Type]bool) string {
	text := t.Kind().String()
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		if t.Kind() == reflect.Map {
			text += layout(t.Key(), seen)
		}
		return text + " " + layout(t.Elem(), seen)
	case reflect.Struct:
		if seen[t] {
			return text + " " + t.Name()
		}
		seen[t] = true
		for f := range t.Fields() {
			text += fmt.Sprintf("\n%s %s %s", f.Name, f.Tag, layout(f.Type, seen))
		}
	}
	return text
}

// What a message has belongs to its version. Where this fails, raise version, and put the new sum here.
func TestLayout(t *testing.T) {
	text := fmt.Sprint(version, kinds)
	for _, x := range []any{Op{}, Outcome{}, Request{}, Answer{}, Order{}} {
		text += "\n" + layout(reflect.TypeOf(x), map[reflect.Type]bool{})
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text)))[:16]; sum != "3e90782452d6026c" {
		t.Errorf("sum %s of\n%s", sum, text)
	}
}
