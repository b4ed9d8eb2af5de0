// Package copies makes copies of a database, and databases of copies: checkpoints, backups and restored
// backups.
//
//   - Copier copies an open database. A copy of everything is Pebble's checkpoint, which links
//     to tables; the committer makes it. A copy that leaves something out is an extract: one
//     view, written into new tables.
//   - Restore makes a database of a backup, and verifies it before it becomes one.
//
// An extract has the values that reading gives: edits are merged, and replaced, deleted or excluded data is
// gone. Numbers of rows, codes and spaces stay. It shares no table with its source: a backup of it stores
// everything again. An index-only extract leaves out vectors and records that only learning needs. It also
// leaves out spaces that are being built, because it could not complete them.
//
// Restore moves the store and then the marker into the folder. It does not rename a whole folder,
// which is impossible for a mount point, and on Windows for a folder that exists.
//
// The invariant: a folder is a database only when it is complete and durable. A checkpoint is written under
// another name (store.NewFolder), and a restored store stays in a folder of its own until the marker is moved
// last (restorer.place). Tests of package db let operations on files fail in turn
// (TestEveryFailedChangeOfACheckpoint, TestEveryFailedOperationOfARestore, TestEveryFailedOperationOfABackup)
// and the machine crash (TestCrashesAroundACheckpoint).
//
// Package db has the same option types, with their full description. This package imports the packages below
// db: state, store, spaces, record and package backup.
//
// Goroutines: tables of an extract are written side by side by store.Tables, which waits for
// all of them. Locks: extract.reporting and backedUp.mu are each held alone.
package copies
