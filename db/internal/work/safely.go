package work

import (
	"fmt"
	"runtime/debug"
)

// Safely returns a panic of f as an error: what goes on in the background must
// not take the process down that the database is embedded in.
func Safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fddhdb: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
