package oracle

import (
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

// A filter that neither accepts is refused with the place of its error.
func TestWhereErrors(t *testing.T) {
	for text, says := range map[string]string{
		"colour = 1":      `no field "colour"`,
		"number = 'a'":    "'a' is no number",
		"number ~ 1":      `begins with "~ 1"`,
		"number 1":        `comparison is expected, not "1"`,
		"(number = 1":     `) is expected, not ""`,
		"label = a":       "a is no string",
		"number = 1 also": "not also",
	} {
		_, err := Where(text, nil,
			db.Schema{Fields: []db.Field{{Name: "number", Type: db.Int, Indexed: true}}})
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", text, err, says)
		}
	}
}
