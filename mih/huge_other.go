//go:build !linux

package mih

func inHugePages[T any](s []T) []T { return s[:cap(s)] }
