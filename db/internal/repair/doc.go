// Package repair makes a sound database of a damaged one that nobody has open. Folder is its
// door; db.Repair says what it promises.
//
// It has two halves. Salvage reads the damaged store file by file, as it may not open any
// more (damaged, table, log), and merges what it finds into the newest version of each key
// (merge). Menders copy what nothing else tells into a new store, and leave out what does not
// hold (mender, catalogue, items, keys, spaces, lessons, given). Then the new store is opened
// as a database is, and a builder makes the codes of all items again (build). Sets, indexes,
// counters and statistics are made again as well.
//
// The invariant: nothing is written to the old store, and what takes its place has been
// verified, deeply (check, swap). An error, a context that ends and a process that is killed
// leave either the one or the other in place: TestEveryFailedChangeOfARepair and
// TestCrashesOfARepair of package db fail each change in turn, and crash after it.
//
// Everything runs in the goroutine of the caller, but what builders start. It may import
// every room but search and copies, and reads the old store by record and store alone: what
// works in an open database trusts what it reads.
package repair
