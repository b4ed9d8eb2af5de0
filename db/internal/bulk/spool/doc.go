// Package spool keeps the items of an import in files until they are committed, so that there
// may be more of them than fit into memory, and an interrupted import can be continued.
//
//   - Folder is imports/ of a database. Open begins or continues an import; the other methods
//     are for imports that nobody has open: list, remove, and Tidy at opening.
//   - Spool is one import that is open. Put, Skip and Register stage; Settle makes all of it
//     durable and hands it to the columns of a bulk.Items; Promise and Withdraw go around the
//     commit of these; Close keeps what is staged, Remove forgets it.
//
// What has been staged durably is continued, up to the first damage, and the user puts the rest
// again (TestDamageToStagedItems in package db, TestSpool). The promise of a commit is durable
// before that commit, and is taken back where it does not come about: after any failure or crash
// the items of an import are stored once, or not at all (TestEveryFailedChangeAroundAnImport,
// TestCrashesAroundAnImport in package db, TestPromise). Chunks that are damaged by a stranger
// give an error, never an item that the collection cannot have (FuzzChunk).
//
// Goroutines: a Spool belongs to the one that stages, and has one of its own that writes, which
// Close and Remove end. The encoding of a commit reads a settled Spool on all cores. The
// committer calls Promise and Withdraw, and the closing of a database calls Close, when nothing
// else goes on. No lock is held while another is taken.
//
// The package imports bulk and what is below it, never db. docs/FORMAT.md has the files.
package spool
