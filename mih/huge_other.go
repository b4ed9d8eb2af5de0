//go:build !linux

package mih

// inHugePages does nothing here: only Linux takes the hint.
func inHugePages[T any](s []T) []T { return s[:cap(s)] }
