// Package store tames Pebble, the store of a database, and keeps the folder around it.
//
//   - Engine is an open store with what keeps it from harm: Reserve, which refuses writes
//     before the disk is full, and Log, which keeps the first failure.
//   - failFS is the file system of a store that is written to. After the first vital failure
//     nothing is acknowledged any more (failfs_test.go, db/faults_test.go).
//   - opening gives up a store that Pebble would open for ever; scheduler and tableTrouble let
//     compactions and flushes that fail rest; KeepUp makes writers wait outside of Pebble.
//   - Tables are sorted tables that the store takes over: all of them, or none.
//   - Inspect, Lock, Create and the other functions of a folder know what is in it, and
//     Commits and Keeper the file that says which commits are durable.
//
// Nothing is written that Engine.Admit has not admitted, save what a flush or a compaction
// writes of its own, for which the reserve is.
//
// Goroutines: Keeper.Run is started and ended by the database; a scheduler and what Pebble
// starts end with the store. Everything that says so is safe for concurrent use.
package store
