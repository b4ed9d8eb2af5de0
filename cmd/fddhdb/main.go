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

// limitMemory makes the Go runtime collect garbage before the machine runs out of memory. GOMEMLIMIT sets
// another limit. Without a limit a heap grows to twice its live bytes and more: an import of a hundred
// million codes, which need 5 GB, took 22 GB.
func limitMemory() {
	if available, known := freemem.Available(); known && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(available / 10 * 8)
	}
}
