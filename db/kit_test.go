package db_test

import (
	"context"
	"iter"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
)

var ctx = context.Background()

// fataler is what tests, benchmarks and checks of random histories have in common.
type fataler interface {
	Helper()
	Fatal(...any)
}

// must ends the test with an error.
func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// need returns what a call returns beside its error, which ends the test: need(c.Stats())(t).
func need[T any](x T, err error) func(t fataler) T {
	return func(t fataler) T {
		t.Helper()
		must(t, err)
		return x
	}
}

// need2 is need of a call with two results.
func need2[A, B any](a A, b B, err error) func(t fataler) (A, B) {
	return func(t fataler) (A, B) {
		t.Helper()
		must(t, err)
		return a, b
	}
}

// every yields what a sequence yields. An error of it ends the test.
func every[T any](t fataler, all iter.Seq2[T, error]) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Helper()
		for x, err := range all {
			must(t, err)
			if !yield(x) {
				return
			}
		}
	}
}

// putAll puts items into a collection, in one commit.
func putAll(t testing.TB, c *db.Collection, items []*db.Item) {
	t.Helper()
	dbkit.PutAll(t, db.Of(c), c, items)
}

// taught returns the collection as those see it who let it learn.
func taught(c *db.Collection) learn.Collection { return db.Learning(db.Of(c)).Of(db.Inside(c)) }
