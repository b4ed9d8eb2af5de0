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

// A brood is the goroutines that a database has started, and those that these have: a
// goroutine inherits the labels of the one that starts it. So databases of tests that run
// in parallel are told apart, and goroutines of the test from theirs.
type brood struct{ id string }

const label = "fddhdb/dbtest"

var broods atomic.Uint64

// watch runs open so that all goroutines that it starts are of a brood. It does that in a
// goroutine of its own, as the one of the caller keeps its labels.
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

// unwatch makes what the goroutine starts from now on nobody's.
func unwatch() { pprof.SetGoroutineLabels(context.Background()) }

// afterwards is how long goroutines may take to end behind Close. The last ones may have said
// that they are done and not be gone yet.
var afterwards = time.Minute

// check fails a test where goroutines are left.
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

// inDatabase returns the stacks of goroutines that are in a call of a database.
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
