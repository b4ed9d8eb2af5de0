// Package repair makes a sound database of a damaged one that no process has open. Folder does all of it; the
// comment of db.Repair has its promise.
//
// Primary records stand alone: items, features, models, revisions, codes that items have brought. Repair
// copies them, and leaves out and reports damaged ones. Keys and rows can be restored from each other.
// Everything else follows from these and is made again in any case: row sets, codes, indexes, counters. What
// items have taught a space is made again by the next update.
//
// A repair goes through these steps:
//
//	look      verify the store; if it is sound, mend only what stands beside it (beside)
//	salvage   read the damaged store file by file, as it may not open any more, and merge the versions of
//	          each key (salvage)
//	mend      make the copied records agree, collection by collection (mender)
//	build     open the new store as a database, and let builders make all codes (build)
//	check     verify the new store, deeply
//	replace   put it in the place of the damaged one, which is kept under another name
//
// The invariant: nothing is written to the old store, and the new store replaces it only
// after a deep verification. An error, a context that ends and a process that is killed leave
// one of the two in place. TestEveryFailedChangeOfARepair and TestCrashesOfARepair of package
// db prove it: they fail each change to the file system in turn, and crash after it.
//
// One goroutine at a time uses the types of this package: the goroutine of the caller, or a
// helper that it waits for, as while salvage writes tables. No type is safe for concurrent
// use. Each step embeds the one around it: a mender has the repairer, a
// collectionMender the mender, a spaceMender the collectionMender.
//
// It may import every room but search and copies. It reads the old store with record and
// store alone: state, which works in an open database, trusts the records that it reads.
package repair
