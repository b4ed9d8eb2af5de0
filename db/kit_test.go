package db_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
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

// must ends the test with an error, and where it came. fine, for any goroutine, only fails it.
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

// leftByPebble are goroutines that it leaves where it fails to open a store: the one that
// hands out compactions, and, where opening was given up, those that wait for ever.
var leftByPebble = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"),
	goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.Open"),
	goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*cleanupManager).mainLoop"),
	goleak.IgnoreAnyFunction(
		"github.com/cockroachdb/pebble/v2/internal/genericcache.(*shard[...]).releaseLoop"),
}

// leftWhereGivenUp is the goroutine of the log of a store that Pebble has not finished to open
// (store.ErrGivenUp).
var leftWhereGivenUp = goleak.IgnoreAnyFunction(
	"github.com/cockroachdb/pebble/v2/record.(*LogWriter).flushLoop")

// bulkItems is from how many new items on a batch is stored as tables: fewer than else, so
// that histories with several such batches are short.
const bulkItems = 1024

// No test may leave another goroutine behind: a closed database has none.
func TestMain(m *testing.M) {
	db.SetBulkItems(bulkItems)
	state.PostDue = 64      // tests have few codes
	cells.ExactCost = 0     // indexes of vectors are used however few there are
	debug.SetGCPercent(400) // they allocate much and keep little
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	checks.Set("15") // unless the command line says how many
	flag.Parse()
	if effort.Long() && checks.String() == "15" {
		checks.Set(usual)
	}
	if !effort.Long() { // to measure an index is most of the time that it takes to make it
		db.MeasureWith(128)
	}
	left := leftByPebble
	if effort.Long() { // some of which make an opening be given up; TestEveryFailedOperation looks which
		left = append(slices.Clone(left), leftWhereGivenUp)
	}
	goleak.VerifyTestMain(m, left...)
}

// cancelled is a context that has ended.
var cancelled = func() context.Context {
	c, cancel := context.WithCancel(ctx)
	cancel()
	return c
}()

// openNew opens a database and creates a collection main of some items.
func openNew(t testing.TB, dir string, opts *db.Options, s db.Schema, items ...*db.Item) (*db.DB,
	*db.Collection) {
	t.Helper()
	d := dbkit.MustOpen(t, dir, opts)
	c := need(d.CreateCollection(ctx, "main", s))(t)
	if len(items) > 0 {
		putAll(t, c, items)
	}
	return d, c
}

// openPairs opens a database of pairs, and puts the first of n into it: all where that is negative.
func openPairs(t testing.TB, put, n int, cfg synth.Config) (*db.DB, *db.Collection, []*db.Item) {
	t.Helper()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(n, cfg)
	if put < 0 {
		put = n
	}
	putAll(t, c, items[:put])
	return d, c, items
}

// reopen closes a database and opens it again. It returns the collection main, if there is one.
func reopen(t testing.TB, d *db.DB, dir string, opts *db.Options) (*db.DB, *db.Collection) {
	t.Helper()
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, opts)
	c, err := d.Collection("main")
	stopIf(t, err != nil && !errors.Is(err, db.ErrNotFound), "%v", err)
	return d, c
}

// train puts items into a collection and trains it.
func train(t testing.TB, c *db.Collection, items []*db.Item, opt db.TrainOptions) *report.Training {
	t.Helper()
	putAll(t, c, items)
	return dbkit.MustTrain(t, c, opt)
}

// unlabel takes the labels of items away.
func unlabel(items []*db.Item) {
	for _, it := range items {
		it.Labels = nil
	}
}

// failing is a file system whose operations fail where fails says so.
func failing(fsys vfs.FS, err error, fails func(op errorfs.Op) bool) vfs.FS {
	return errorfs.Wrap(fsys, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if fails(op) {
			return err
		}
		return nil
	}))
}

// sampled yields the numbers of what is tried in turn: all in a long run, else each n-th.
func sampled(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := 0; ; k++ {
			if effort.Sampled(k, n) && !yield(k) {
				return
			}
		}
	}
}

// made returns n items.
func made(n int, item func(i int) *db.Item) (items []*db.Item) {
	for i := range n {
		items = append(items, item(i))
	}
	return items
}

// putEach puts items into a collection, each in a commit of its own.
func putEach(t testing.TB, c *db.Collection, items []*db.Item) {
	t.Helper()
	for _, it := range items {
		need(c.Put(ctx, it))(t)
	}
}
