// Package skew makes the clock of one process jump, as an operator or a time server does: all code of the
// process, including Go's own and that in modules, sees another time of day. Monotonic clocks go on, as in
// the kernel.
//
// It needs the build tag skew and a special package time, which the program overlay writes. Programs built
// without the tag contain nothing of it.
package skew
