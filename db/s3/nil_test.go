package s3

import (
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db/backup"
)

// A program that goes on after an error has a nil store, and a declared store is empty:
// both give an error.
func TestStoreThatIsNone(t *testing.T) {
	for what, s := range map[string]*Store{"nil": nil, "zero": {}} {
		get := func() error { _, err := s.Get(t.Context(), "x"); return err }
		for method, err := range map[string]error{
			"Put":    s.Put(t.Context(), "x", strings.NewReader(""), 0),
			"Get":    get(),
			"List":   s.List(t.Context(), "", func(backup.Object) error { return nil }),
			"Delete": s.Delete(t.Context(), "x"),
		} {
			if !errors.Is(err, backup.ErrInvalid) {
				t.Errorf("%s store, %s: %v", what, method, err)
			}
		}
		_ = s.String()
	}
	if _, err := ParseURL(""); err == nil {
		t.Error("no URL is one")
	}
}
