package dbtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/report"
)

// Open opens a database for the time of a test, in the folder dir, such as t.TempDir();
// it creates a missing folder. If dir is "" the database is in memory: in Options.FS if
// that is set, else in a file system of its own. Options are those of db.Open; nil
// means the defaults. If the database cannot be opened Open ends the test.
//
// When the test ends, after the cleanup functions that were registered later, the
// database is closed, unless the test has closed it, and verified as by VerifyFolder.
// The test fails if that finds anything, if the database had failed (db.ErrFailed), if
// Close does not return because a call is still running, and if goroutines of the
// database are left. A folder that the test has closed and removed is not verified.
func Open(t testing.TB, dir string, options *db.Options) *db.DB {
	t.Helper()
	var opts db.Options
	if options != nil {
		opts = *options
	}
	if dir == "" {
		dir = "test.fddhdb"
		if opts.FS == nil {
			opts.FS = vfs.NewMem()
		}
	}
	if listen := opts.EventListener; listen != nil {
		opts.EventListener = func(ctx context.Context, e *event.Event) {
			unwatch() // goroutines that it starts, of connections for example, belong to the test
			listen(ctx, e)
		}
	}
	var d *db.DB
	var err error
	brood := watch(func() { d, err = db.Open(dir, &opts) })
	if err != nil {
		t.Fatalf("dbtest: the database cannot be opened: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if finish(t, d) {
			brood.check(t)
			verifyClosed(t, dir, &opts)
		}
	})
	return d
}

// patience is the time that Close may wait for running calls. A test that takes longer
// hangs for a reason that this package can name.
var patience = time.Minute

// finish closes a database. It returns false if that was not possible.
func finish(t testing.TB, d *db.DB) bool {
	t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- d.Close() }()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-closed:
		switch {
		case errors.Is(err, db.ErrClosed): // the test has closed it
		case errors.Is(err, db.ErrFailed):
			t.Errorf("dbtest: a write to disk failed during the test, and from then on the database has refused all writes: %v", err)
		case err != nil:
			t.Errorf("dbtest: the database cannot be closed: %v", err)
		}
		return true
	case <-timer.C:
		t.Errorf("dbtest: the test ends while calls of the database go on, and Close waits for them since %v. "+
			"A range over Items, Codes or Runs has to end, one of iter.Pull has to be stopped, goroutines that use the database have to end before the test does, and an EventListener has to return:\n\n%s",
			patience, strings.Join(inDatabase(), "\n\n"))
		return false
	}
}

// verifyClosed verifies a database that has been closed.
func verifyClosed(t testing.TB, dir string, opts *db.Options) {
	t.Helper()
	if _, err := cmp.Or(opts.FS, vfs.Default).Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	verifyFolder(t, dir, opts)
}

// Verify verifies a database as it is now, deeply (db.VerifyOptions), and fails the
// test for every finding. It reads everything twice and computes all codes again.
func Verify(t testing.TB, d *db.DB) {
	t.Helper()
	failFor(t, func(ctx context.Context, found func(report.Finding) error) error {
		_, err := d.Verify(ctx, db.VerifyOptions{Deep: true}, found)
		return err
	})
}

// VerifyFolder is Verify for a database that is not open, such as one that the program
// under test has opened and closed itself. It uses only FS of options; nil means the
// defaults.
func VerifyFolder(t testing.TB, dir string, options *db.Options) {
	t.Helper()
	verifyFolder(t, dir, options)
}

func verifyFolder(t testing.TB, dir string, options *db.Options) {
	t.Helper()
	var opts db.Options // without the listener, which has been told of the end
	if options != nil {
		opts.FS = options.FS
	}
	failFor(t, func(ctx context.Context, found func(report.Finding) error) error {
		_, err := db.VerifyFolder(ctx, dir, &opts, db.VerifyOptions{Deep: true}, found)
		if errors.Is(err, db.ErrLocked) {
			err = errors.Join(err, errors.New(
				"it has been opened again, and is to be closed before the test ends"))
		}
		return err
	})
}

// failFor fails a test for the findings of a verification.
func failFor(t testing.TB, verify func(ctx context.Context, found func(report.Finding) error) error) {
	t.Helper()
	const most = 10
	n := 0
	// The context of a test has ended when its cleanup begins.
	err := verify(context.WithoutCancel(t.Context()), func(f report.Finding) error {
		if n++; n <= most {
			t.Errorf("dbtest: the database is damaged: %v", f)
		}
		return nil
	})
	if n > most {
		t.Errorf("dbtest: the database is damaged: %d findings more", n-most)
	}
	if err != nil {
		t.Errorf("dbtest: the database cannot be verified: %v", err)
	}
}

// A brood is the goroutines that a database has started, and all that they have
// started: a goroutine inherits the profiler labels of its starter. So databases of
// parallel tests are told apart, and their goroutines from those of the test.
type brood struct{ id string }

const label = "fddhdb/dbtest"

var broods atomic.Uint64

// watch runs open such that all goroutines that it starts belong to a brood. It runs
// open in a goroutine of its own, because the caller's goroutine keeps its labels.
func watch(open func()) brood {
	b := brood{strconv.FormatUint(broods.Add(1), 10)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels(label, b.id)))
		open()
	}()
	<-done
	return b
}

// unwatch removes the labels of the current goroutine: what it starts from now on
// belongs to no brood.
func unwatch() { pprof.SetGoroutineLabels(context.Background()) }

// afterwards is the time that goroutines have to end after Close. The last ones may
// have signalled that they are done and not be gone yet.
var afterwards = time.Minute

// check fails a test if goroutines of the brood are left.
func (b brood) check(t testing.TB) {
	t.Helper()
	left := b.running()
	for until := time.Now().Add(afterwards); len(left) > 0 && time.Now().Before(until); left = b.running() {
		time.Sleep(time.Millisecond)
	}
	if len(left) == 0 {
		return
	}
	t.Errorf("dbtest: the database is closed, and goroutines that it has started still run:\n\n%s",
		strings.Join(left, "\n\n"))
}

// running returns the stacks of the goroutines of the brood.
func (b brood) running() []string {
	var all bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&all, 1); err != nil {
		return []string{err.Error()}
	}
	return containing(all.String(), fmt.Sprintf("%q:%q", label, b.id))
}

// inDatabase returns the stacks of goroutines inside a call of a database.
func inDatabase() []string {
	buf := make([]byte, 1<<20)
	all := string(buf[:runtime.Stack(buf, true)])
	var found []string
	for _, of := range []string{"Collection", "Runs", "Batch", "Import"} {
		found = append(found, containing(all, "github.com/fddhdb/fddhdb/db.(*"+of+")")...)
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}

// containing returns the paragraphs of a text that contain a string.
func containing(text, what string) []string {
	var found []string
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if strings.Contains(paragraph, what) {
			found = append(found, strings.TrimSpace(paragraph))
		}
	}
	return found
}
