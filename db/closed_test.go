package db_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// A snapshot or runs that were closed do not say that the database was, which is open.
func TestClosedSnapshotsSayWhatIsClosed(t *testing.T) {
	d, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, []*db.Item{{Key: "k", Code: []byte{1, 2}}})
	s := need(d.Snapshot())(t)
	runs := need(c.SearchRadius(ctx, db.Query{Key: "k"}, 4))(t)
	must(t, errors.Join(s.Close(), runs.Close()))
	for _, err := range []error{
		dbkit.Second(s.Collection("main")), s.Close(), dbkit.Second(runs.First(ctx, 1)), runs.Close(),
	} {
		if !errors.Is(err, db.ErrClosed) || strings.Contains(err.Error(), "database") {
			t.Errorf("%v", err)
		}
	}
}

// What is not known is answered with what is.
func TestErrorsListWhatIsPossible(t *testing.T) {
	_, c := dbkit.OpenCoded(t, 16)
	putAll(t, c, []*db.Item{{Key: "k", Code: []byte{1, 2}}})
	for says, err := range map[string]error{
		"blockscan":  dbkit.Second(c.Search(ctx, db.Query{Key: "k", Plan: 77})),
		"asymmetric": dbkit.Second(c.Search(ctx, db.Query{Key: "k", Rerank: 77})),
		"is empty":   dbkit.Second(db.Open("", nil)),
	} {
		if !errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, not %q", err, says)
		}
	}
}
