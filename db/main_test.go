package db

import (
	"runtime/debug"
	"testing"

	"go.uber.org/goleak"
)

// leftByPebble are goroutines that it leaves where it fails to open a store: the one that
// hands out compactions, and, where opening was given up, those that wait for ever.
var leftByPebble = []goleak.Option{
	goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"),
	goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.Open"),
	goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2.(*cleanupManager).mainLoop"),
	goleak.IgnoreAnyFunction("github.com/cockroachdb/pebble/v2/internal/genericcache.(*shard[...]).releaseLoop"),
}

// No test may leave another goroutine behind: a closed database has none.
// Bulk loads begin at fewer items than else, so that histories with several are short.
func TestMain(m *testing.M) {
	bulkItems = 1024
	debug.SetGCPercent(400) // they allocate much and keep little
	goleak.VerifyTestMain(m, leftByPebble...)
}
