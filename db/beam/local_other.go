//go:build !unix

package beam

// ended reports whether there is no process with this number. Here nobody knows.
func ended(int) bool { return false }
