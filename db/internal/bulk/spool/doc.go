// Package spool keeps the items of an import in files until they are committed, so that there
// may be more of them than fit into memory, and an interrupted import can be continued.
//
//   - Folder is imports/ of a database. Open begins or continues an import; the other methods
//     are for imports that nobody has open: list, remove, and Tidy at opening.
//   - Imports are those of an open database: which go on, which were interrupted, what they take.
//   - Spool is one import that is open. Put, Skip and Register stage; Settle makes all of it
//     durable and readable through the columns of a bulk.Items; Promise and Withdraw surround the
//     commit of these; Close keeps what is staged, Remove forgets it.
//
// An import continues behind its last durable chunk, or behind the last before damage (TestSpool,
// TestDamageToStagedItems in package db). The promise of a commit is durable before that commit,
// and is withdrawn if the commit does not come about: after any failure or crash the items are
// stored once, or not at all (TestPromise; TestEveryFailedChangeAroundAnImport and
// TestCrashesAroundAnImport in package db). Any bytes in a chunk give an error, or items that
// suit the collection (FuzzChunk).
//
// Goroutines: one goroutine uses a Spool. The Spool starts one that writes, which Close and Remove
// end. A commit reads a settled Spool on all cores, and calls Promise and Withdraw in the
// committer. The database may Close a Spool when no call goes on.
//
// Locks: chunkFile.mu, writer.mu and Imports.mu are each held alone; figures.mu is held while
// the files of imports are looked at, and Imports.mu is taken under it.
//
// The package imports bulk and what is below it, never db. docs/FORMAT.md has the files.
package spool
