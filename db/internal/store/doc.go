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
// Between Pebble and the disk stand these file systems, from Pebble down: opening, while and
// after the store is opened; failFS, or ReadFS where the store is only read; kindFS, which all
// of package db uses; and what Options.FS names. Each says in its comment what it keeps away.
//
// Nothing is written that Engine.Admit has not admitted, save what a flush or a compaction
// writes of its own, for which the reserve is.
//
// Goroutines: Keeper.Run is started and ended by the database; a scheduler and what Pebble
// starts end with the store. Everything that says so is safe for concurrent use.
//
// Locks: Pebble calls its logger, its event listener, the file system and the scheduler while
// it holds its own locks. So what these take (tableTrouble.mu, scheduler.mu, opening.mu and
// those of files, signal.Sender.mu) is taken for moments, and nothing under it waits for
// anything but the disk, or asks the store for a lock. Reserve.mu and Keeper.Mu are taken
// outside of the store: under them the disk is asked, and Reserve asks the store for the size
// of its log.
//
// It imports record for the identity of a store, event and signal to tell of troubles, fault
// for their words, and no room that knows collections. db/faults_test.go fails each change to
// the file system in turn, db/keep_up_test.go and db/disk_full_test.go fill disks,
// db/recovery_test.go damages logs.
package store
