// Package effort decides how much tests try: what takes seconds a package, also what takes longer, on a
// sample, or everything.
//
//	go test ./...                                 # what takes seconds
//	FDDHDB_LONG=sample go test ./...              # a sample of the rest, too: the gate, make test
//	FDDHDB_LONG=all go test -timeout 0 ./...      # everything: make long
//	go test ./db -args -long                      # everything of one package
//
// The package imports the standard library. The flag is set before tests run, and is only read after that.
package effort

import (
	"flag"
	"os"
	"testing"
)

// long is the flag -long. A variable of the environment sets it in every package: those that do not know the
// flag refuse it.
var long = flag.Bool("long", os.Getenv("FDDHDB_LONG") == "all",
	"try everything, not a sample: all failures, crashes and damage, items, histories and queries that tests have")

// Long reports whether everything is tried.
func Long() bool { return *long }

// Slow skips a test that takes long, unless such tests are asked for.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() || !*long && os.Getenv("FDDHDB_LONG") == "" {
		t.Skip("takes long: FDDHDB_LONG=sample runs it")
	}
}

// Of returns how many items, rounds or queries a test takes: all in a long run, otherwise some.
func Of(all, some int) int {
	if *long {
		return all
	}
	return some
}

// Sampled reports whether the k-th of what is tried in turn (failures, crashes, damage) is tried now: in a
// long run all are, otherwise one of n.
func Sampled(k, n int) bool { return *long || k%n == 0 }

// WithoutRace skips a test under the race detector if that makes it ten times as slow
// and the test runs no concurrent code that other tests do not run. The test runs beside
// others, so it leaves GOMAXPROCS alone.
func WithoutRace(t *testing.T) {
	t.Helper()
	if Race {
		t.Skip("numbers, ten times as slow: other tests do the same under the race detector")
	}
	t.Parallel()
}

// LongWithRace skips such a test in short runs only: full runs with the race detector
// have it. The test runs beside others.
func LongWithRace(t *testing.T) {
	t.Helper()
	LongWithRaceAlone(t)
	t.Parallel()
}

// LongWithRaceAlone is LongWithRace for a test that nothing may run beside.
func LongWithRaceAlone(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long with the race detector")
	}
}
