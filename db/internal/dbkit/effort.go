package dbkit

import (
	"flag"
	"testing"
)

// LongTest skips in short runs, which are those with the race detector, what is slow with
// it and runs few goroutines, or many items; make race runs it.
func LongTest(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
}

// EveryFault is the flag -everyfault.
var EveryFault = flag.Bool("everyfault", false, "let every single file operation fail in turn, not a sample; likewise crashes and damage")

// Sampled reports whether the k-th of what is tried in turn (failures, crashes, damage) is
// tried now: with -everyfault all are, otherwise one of n.
func Sampled(k, n int) bool { return *EveryFault || k%n == 0 }

// Soak is the flag -soak.
var Soak = flag.Duration("soak", 0, "for how long to go on with what else is short, or left out")
