// Package skew makes clocks jump, one process at a time, as an operator or a time server makes them: all code
// of the process, that of Go and of modules too, is told another time of day. Clocks that measure how much
// time has passed go on, as they do in the kernel.
//
// It needs the build tag skew and a package time of its own, which the program overlay writes. Nothing of it
// is in programs that are built without.
package skew
