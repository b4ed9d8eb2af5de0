//go:build !unix

package beam

// ended reports whether there is no process with this number. This system cannot tell.
func ended(int) bool { return false }
