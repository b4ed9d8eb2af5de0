package db

import (
	"fmt"
	"runtime/debug"
)

// recovered returns a panic of f as an error: what goes on in the background must
// not take the process down that the database is embedded in.
func recovered(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("fddhdb: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return f()
}
