package dbtest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A fake is the T of a test that is expected to fail.
type fake struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *fake) Helper()                      {}
func (f *fake) Context() context.Context     { return f.TB.Context() }
func (f *fake) Cleanup(do func())            { f.cleanups = append(f.cleanups, do) }
func (f *fake) Error(args ...any)            { f.said = append(f.said, fmt.Sprintln(args...)) }
func (f *fake) Errorf(s string, a ...any)    { f.said = append(f.said, fmt.Sprintf(s, a...)) }
func (f *fake) Fatalf(s string, a ...any)    { f.Errorf(s, a...); runtime.Goexit() }
func (f *fake) Log(args ...any)              {}
func (f *fake) Logf(format string, a ...any) {}

// failing runs a test with its cleanup, and returns its failures.
func failing(t *testing.T, test func(t testing.TB)) []string {
	t.Helper()
	f := &fake{TB: t}
	for _, run := range []func(){func() { test(f) }, func() {
		for _, do := range slices.Backward(f.cleanups) {
			do()
		}
	}} {
		done := make(chan struct{})
		go func() { // Fatalf ends the goroutine
			defer close(done)
			run()
		}()
		<-done
	}
	return f.said
}

// expect checks that a test fails once, with these words.
func expect(t *testing.T, said []string, words ...string) {
	t.Helper()
	if len(said) == 0 {
		t.Fatalf("nothing was noticed, %q expected", words)
	}
	for _, w := range words {
		if !strings.Contains(strings.Join(said, "\n"), w) {
			t.Errorf("%q is not said:\n%s", w, strings.Join(said, "\n"))
		}
	}
}

// loaded creates a collection with items.
func loaded(t testing.TB, d *db.DB, n int) *db.Collection {
	t.Helper()
	set := Codes{Bits: 32, Centres: 5}
	c, err := d.CreateCollection(t.Context(), "main", set.Schema())
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := Load(t.Context(), d, c, set.Items(0, n)); err != nil {
		t.Fatalf("%v", err)
	}
	return c
}
