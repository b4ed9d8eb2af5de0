// Package freemem says how much memory a process can still take. Work that needs more is
// refused before it begins, instead of being killed by the kernel in the middle.
//
// It imports the standard library, and golang.org/x/sys for Windows. It keeps no state:
// goroutines may call it at any time. The figure is an estimate of the moment, and
// reserves nothing. TestAvailable proves that it follows GOMEMLIMIT,
// TestWhatTheMachineAndItsGroupsLeave that it reads the limits of Linux.
package freemem
