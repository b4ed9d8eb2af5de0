package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/fddhdb/fddhdb/db"
)

func TestExitCodeAndMessage(t *testing.T) {
	invalid := fmt.Errorf("%w: k = 0", db.ErrInvalid)
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{errors.New("disk full"), 1, "disk full"},
		{Usagef("--bits 3: no"), 2, "--bits 3: no"},
		{invalid, 2, "k = 0"},
		{&Failure{invalid}, 1, "k = 0"},
		{Wrap(Usagef("no"), "try %d", 1), 2, "no: try 1"},
		{&db.DimensionError{Modality: "image", Got: 1, Want: 2}, 2,
			`modality "image" has 2 dimensions, the vector has 1`},
		{fmt.Errorf("%w: a.db", db.ErrNotDatabase), 2, "not a database: a.db"},
		{fmt.Errorf("%w: a.db", db.ErrLocked), 1, "database is in use: a.db"},
		{&db.FormatError{Where: "a.db", Found: 9, Supported: 1}, 1,
			"unsupported format: a.db has format 9, this version of fddhdb reads format 1 alone: use the version that has written it"},
		{&Failure{&db.CorruptionError{What: "row 1", Err: errors.New("short")}}, 3,
			"corruption found: row 1: short: the stored data is damaged: restore a backup, or let fddhdb repair save what can be saved"},
		{errors.Join(db.ErrClosed, errors.New("fddhdb: two")), 1, "database is closed; two"},
		{Wrap(context.Canceled, "5 items are stored already"), 1, "interrupted: 5 items are stored already"},
	} {
		if got := Code(c.err); got != c.code {
			t.Errorf("%v: exit code %d, want %d", c.err, got, c.code)
		}
		if got := Message(c.err); got != c.text {
			t.Errorf("message %q, want %q", got, c.text)
		}
	}
	if Code(nil) != 0 {
		t.Error("no error fails")
	}
}
