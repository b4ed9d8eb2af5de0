package dbtest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	t.Errorf("dbtest: the database is closed, and goroutines that it has started still run:\n\n%s", strings.Join(left, "\n\n"))
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
