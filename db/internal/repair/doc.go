// Package repair makes a sound database of a damaged one that no process has open. Folder does all of it; the
// comment of db.Repair has its promise.
//
// Records are of three kinds. Primary records stand alone: items, features, models, revisions, lessons, codes
// that items have brought. Repair copies them, and leaves out and reports damaged ones. Keys and rows can be
// restored from each other. Everything else is derived, and made again in any case: row sets, codes, indexes,
// counters, statistics.
//
// A repair goes through these steps:
//
//	look      verify the store; if it is sound, mend only what stands beside it (beside)
//	salvage   read the damaged store file by file, as it may not open any more (damaged,
//	          table, log), and merge the versions of each key (merge)
//	mend      make the copied records agree, collection by collection (mender, catalogue,
//	          items, keys, given, spaces, lessons)
//	build     open the new store as a database, and let builders make all codes (build)
//	check     verify the new store, deeply
//	replace   put it in the place of the damaged one, which is kept under another name (swap)
//
// The invariant: nothing is written to the old store, and the new store replaces it only
// after a deep verification. An error, a context that ends and a process that is killed leave
// one of the two in place. TestEveryFailedChangeOfARepair and TestCrashesOfARepair of package
// db prove it: they fail each change to the file system in turn, and crash after it.
//
// One goroutine at a time uses the types of this package: the goroutine of the caller, or a
// helper that it waits for, as while salvage writes tables. No type is safe for concurrent
// use, except listingFS. Each step embeds the one around it: a mender has the repairer, a
// collectionMender the mender, a spaceMender and a keyMender the collectionMender.
//
// It may import every room but search and copies. It reads the old store with record and
// store alone: state, which works in an open database, trusts the records that it reads.
package repair
