package db_test

import (
	"flag"
	"runtime/debug"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/cells"
	"github.com/fddhdb/fddhdb/internal/effort"
)

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
