// Package copies makes copies of a database, and databases of copies: checkpoints, backups,
// restored backups, and a database in a newer format.
//
//   - Copier copies an open database. A copy of everything is Pebble's checkpoint, which links
//     to tables; the committer makes it. A copy that leaves something out is an extract: one
//     view, written into new tables.
//   - Restore makes a database of a backup, and verifies it before it becomes one.
//
// An extract has the values that reading gives, so edits are merged, and nothing in it was
// replaced, deleted or left out. Numbers of rows, codes and spaces stay. It shares no table with
// its source: a backup of it stores everything again. An index-only extract leaves out vectors
// and what only learning needs, and spaces that are being built, which it could not complete.
//
// Restore moves the store and then the marker into the folder. It does not rename a whole folder,
// which is impossible for a mount point, and on Windows for a folder that exists.
//
// The invariant: a folder is a database only when it is complete and durable. A checkpoint is
// filled under another name (store.NewFolder), and what is restored stays in a folder of its
// own until the marker is moved last (restorer.place). Tests of package db let operations on
// files fail in turn (TestEveryFailedChangeOfACheckpoint, TestEveryFailedOperationOfARestore,
// TestEveryFailedOperationOfABackup) and the machine crash (TestCrashesAroundACheckpoint).
//
// Options are those of package db, which has their full description. This package imports
// what is below db: state, store, spaces, record and package backup.
//
// Goroutines: tables of an extract are written side by side by store.Tables, which waits for
// all of them. Locks: extract.reporting and backedUp.mu are each held alone.
package copies
