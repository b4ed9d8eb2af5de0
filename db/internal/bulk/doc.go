// Package bulk stores many new items of one collection, or the codes of many rows, as sorted
// tables that the store takes over in one commit, instead of through its log and memory. It
// decides what is stored so.
//
//   - Batch.Commit stores the changes of a batch: as a load where they put nothing but many new
//     items into one collection, else through the committer.
//   - StoreCodes stores the codes of rows in a space that is being built.
//
// A batch is encoded first, outside the committer. Then a load (load.go) runs as one request of
// the committer: it gives keys (keys.go), numbers labels and codes (space_codes.go), and writes
// each kind of record into tables of its own (write.go, space_codes.go). What a load cannot do,
// such as replacing an item, is errNotBulk, and the committer gets the changes.
//
// Until the store has taken the tables nothing has changed but the tables of codes in memory,
// and these go back to what they were if something fails: a full disk costs the load and
// nothing else. What is stored is, key by key, what a transaction would have stored item by
// item (TestBulkLoadOfCodesIsAsOneByOne and its neighbours in package db), and after a failure
// at any point all of it is there, or nothing (TestEveryFailedChangeAroundABulkLoad,
// TestCrashesAroundABulkLoad).
//
// Tables avoid the log, the memory tables and most compactions of the store. Sorting the keys
// costs nothing extra: it is needed to write them, and shows in one pass that none of them is
// stored already. Postings come from counting sorts.
//
// Goroutines: a Batch belongs to the goroutine that commits it. The tables are made in the
// committer's goroutine and in others, which end before the request does. Each table of codes is
// changed by one task, while the committer waits; all other state changes in the committer alone.
// No lock is held meanwhile.
//
// The package may import state and what is below it, never db.
package bulk
