package exit

import (
	"os"
	"runtime/debug"
)

// AbortOnCrash lets a crash, as when memory runs out, end the process by SIGABRT, from now on.
// The Go runtime would end it with exit code 2, which is that of a wrong command line. No core
// is written: it would have the size of the memory that ran out, and hold what is stored. A
// program calls it first. GOTRACEBACK in the environment says otherwise.
func AbortOnCrash() {
	if os.Getenv("GOTRACEBACK") == "" {
		debug.SetTraceback("crash")
		withoutCore()
	}
}
