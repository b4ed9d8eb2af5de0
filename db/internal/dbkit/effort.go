package dbkit

import (
	"flag"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// LongTest is a test that takes long (effort.Slow), and runs beside others: so it changes nothing that they
// share.
func LongTest(t *testing.T) {
	t.Helper()
	effort.Slow(t)
	t.Parallel()
}

// Soak is the flag -soak.
var Soak = flag.Duration("soak", 0, "for how long to go on with what else is short, or left out")
