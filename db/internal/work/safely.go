package work

import (
	"fmt"
	"runtime/debug"
)

// Safely calls f and returns a panic as an error, with the stack. Background work must not
// take down the process that embeds the database. It does not catch runtime.Goexit.
func Safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fddhdb: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
