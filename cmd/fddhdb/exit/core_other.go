//go:build !unix

package exit

// withoutCore lets the system write no core of this process, where there are any.
func withoutCore() {}
