package dbkit

import (
	"flag"
	"testing"
)

// LongTest skips in short runs, which are those with the race detector, what is slow with
// it and runs few goroutines, or many items; make race runs it. The test runs beside others,
// so it changes nothing that they share.
func LongTest(t *testing.T) {
	t.Helper()
	LongTestAlone(t)
	t.Parallel()
}

// LongTestAlone is LongTest for a test that nothing may run beside.
func LongTestAlone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}

// Soak is the flag -soak.
var Soak = flag.Duration("soak", 0, "for how long to go on with what else is short, or left out")
