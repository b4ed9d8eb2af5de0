// Package dbkit is what tests of databases share: opening, items, trainings, the sets of
// plans, file systems that fail, and the flags that say how much is tried.
//
// Tests of package db and of the packages beside this one import it, and nothing else does.
// It imports db, internal/synth and Pebble's file systems, and so a test that uses it stands
// outside of package db. An Oracle looks at every item of a collection, and so knows what a search finds.
//
// It has no state but its flags, which are read while tests run. FailOnce and CrashFS may be
// used by many goroutines.
package dbkit
