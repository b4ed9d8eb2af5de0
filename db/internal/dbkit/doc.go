// Package dbkit is what tests of databases share: opening, items, trainings, the sets of
// plans, file systems that fail, and the flags that say how much is tried.
//
// Tests of package db and of the packages beside this one import it, and nothing else does.
// It imports db, internal/synth and Pebble's file systems, and so a test that uses it stands
// outside of package db. What a program may use to test itself is in package dbtest, which
// this one does not repeat.
//
// It has no state but its flags, which are read while tests run. FailOnce and CrashFS may be
// used by many goroutines.
package dbkit
