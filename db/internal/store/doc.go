// Package store tames Pebble, the store of a database, and manages the folder around it.
//
//   - Engine is an open store with its protection: Reserve, which refuses writes before the disk is full, and
//     Log, which keeps the first failure.
//   - failFS is the file system of a store that is open to write. After the first vital failure nothing is
//     acknowledged (failfs_test.go, db/faults_test.go).
//   - opening gives up a store that Pebble would try to open forever. scheduler and tableTrouble pause
//     failing compactions and flushes. KeepUp makes writers wait outside Pebble.
//   - Tables are sorted tables that the store ingests, all or none.
//   - Inspect, Lock, Create and other functions know the content of the folder. Commits and Keeper handle the
//     file with the last durable commit.
//
// Between Pebble and the disk are these file systems, from Pebble down: opening, during and after opening;
// failFS, or ReadFS if the store is read-only; kindFS, which all of package db uses; and Options.FS. The
// comment of each says which harm it prevents.
//
// Every write needs Engine.Admit, except the writes of flushes and compactions, which the reserve is for.
//
// Goroutines: the database starts and ends Keeper.Run. A scheduler and the goroutines of Pebble end with the
// store. A type is safe for concurrent use if its comment says so.
//
// Locks: Pebble calls its logger, its event listener, the file system and the scheduler while it holds its
// own locks. So the locks under these calls (tableTrouble.mu, scheduler.mu, opening.mu and the locks of
// files, signal.Sender.mu) are held for moments. Code that holds them waits only for the disk, and takes no
// lock of the store. Reserve.mu and Keeper.Mu are taken outside the store. Their holders ask the disk, and
// Reserve asks the store for the size of its log.
//
// The package imports record for the identity of a store, event and signal to report troubles, fault for
// their words, and no package that knows collections. db/faults_test.go fails each change to the file system
// in turn, db/keep_up_test.go and db/disk_full_test.go fill disks, db/recovery_test.go damages logs.
package store
