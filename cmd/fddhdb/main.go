package main

import (
	"os"
	"runtime/debug"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/internal/freemem"
)

func main() {
	exit.AbortOnCrash()
	limitMemory()
	os.Exit(command.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// limitMemory has garbage collected before the machine has no memory left, unless GOMEMLIMIT says when.
// Otherwise a heap grows to twice what is in use: a hundred million codes need 5 GB and take 20 GB.
func limitMemory() {
	if available, known := freemem.Available(); known && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(available / 10 * 8)
	}
}
