package db

import (
	"testing"

	"go.uber.org/goleak"
)

// No test may leave a goroutine behind: a closed database has none. But where
// Pebble fails to open a store, it leaves the one that hands out compactions.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/cockroachdb/pebble/v2.(*ConcurrencyLimitScheduler).periodicGranter"))
}
