package db_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/google/go-cmp/cmp"
)

var ctx = context.Background()

// failer and fataler are what tests, benchmarks and checks of random histories have in common.
type failer interface {
	Helper()
	Errorf(string, ...any)
}

type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// failIf fails the test where something is wrong. stopIf ends it.
func failIf(t failer, wrong bool, format string, args ...any) {
	if wrong {
		t.Helper()
		t.Errorf(format, args...)
	}
}

func stopIf(t fataler, wrong bool, format string, args ...any) {
	if wrong {
		t.Helper()
		t.Fatalf(format, args...)
	}
}

// must ends the test with an error, and where it came. fine is must for any goroutine: the test fails, and goes on.
func must(t fataler, err error, where ...any) {
	if err != nil {
		t.Helper()
		t.Fatalf("%v %v", where, err)
	}
}

func fine(t failer, err error, where ...any) {
	if err != nil {
		t.Helper()
		t.Errorf("%v %v", where, err)
	}
}

// gives checks what a call returns: gives(t, 2)(c.Delete(ctx, "a", "b")).
func gives[T comparable](t failer, want T, where ...any) func(T, error) {
	return func(got T, err error) {
		if got != want || err != nil {
			t.Helper()
			t.Errorf("%v %v, want %v, %v", where, got, want, err)
		}
	}
}

// need returns what a call returns beside its error, which ends the test: need(c.Stats())(t).
func need[T any](x T, err error) func(t fataler, where ...any) T {
	return func(t fataler, where ...any) T {
		if err != nil {
			t.Helper()
			must(t, err, where...)
		}
		return x
	}
}

// need2 is need of a call with two results.
func need2[A, B any](a A, b B, err error) func(t fataler, where ...any) (A, B) {
	return func(t fataler, where ...any) (A, B) {
		if err != nil {
			t.Helper()
			must(t, err, where...)
		}
		return a, b
	}
}

// errOf and third return the error of a call that returns something else, too.
func errOf[T any](_ T, err error) error { return err }

func third[A, B any](_ A, _ B, err error) error { return err }

// errorIs checks that an error is of a kind, or that there is none, and what it says.
func errorIs(t failer, err, want error, says ...string) {
	t.Helper()
	errorsAre(t, want, map[string]error{"": err}, says...)
}

// errorsAre is errorIs of several calls.
func errorsAre(t failer, want error, errs map[string]error, says ...string) {
	t.Helper()
	for what, err := range errs {
		ok := errors.Is(err, want) && strings.Count(fmt.Sprint(err), "fddhdb: ") <= 1
		for _, s := range says {
			ok = ok && strings.Contains(fmt.Sprint(err), s)
		}
		if !ok {
			t.Errorf("%s: %.1000v, want %v that says %q", what, err, want, says)
		}
	}
}

// holds checks how many items match a filter, which is all of them where none is given.
func holds(t failer, c *db.Collection, want int, where ...any) {
	t.Helper()
	where = append(where, "")[:max(1, len(where))]
	if n, err := c.Count(ctx, where[0].(string), where[1:]...); n != want || err != nil {
		t.Errorf("%d items match %v, want %d, %v", n, where, want, err)
	}
}

// equal compares what is wanted with what is there.
func equal(t failer, want, got any, opts ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, opts...); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
