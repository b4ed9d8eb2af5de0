// Package effort decides how much tests try: a sample, which takes seconds a package, or everything.
//
//	go test ./db -args -long                      # everything of one package
//	FDDHDB_LONG=1 go test -timeout 0 ./...        # of every package: make long
//
// The package imports the standard library. The flag is set before tests run, and is only read after that.
package effort

import (
	"flag"
	"os"
)

// long is the flag -long. A variable of the environment sets it in every package: those that do not know the flag
// refuse it.
var long = flag.Bool("long", os.Getenv("FDDHDB_LONG") != "", "try everything, not a sample: all failures, crashes and damage, items, histories and queries that tests have")

// Long reports whether everything is tried.
func Long() bool { return *long }

// Of returns how many items, rounds or queries a test takes: all in a long run, otherwise some.
func Of(all, some int) int {
	if *long {
		return all
	}
	return some
}

// Sampled reports whether the k-th of what is tried in turn (failures, crashes, damage) is tried now: in a long run all
// are, otherwise one of n.
func Sampled(k, n int) bool { return *long || k%n == 0 }
