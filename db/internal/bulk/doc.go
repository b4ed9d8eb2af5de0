// Package bulk stores many new items of one collection, or the codes of many rows, as sorted tables that the
// store takes over in one commit, bypassing its log and memtables. It decides which changes are stored this
// way.
//
//   - Batch.Commit stores the changes of a batch: as a load where they put nothing but many new
//     items into one collection, else through the committer.
//   - StoreCodes stores the codes of rows in a space that is being built.
//
// A batch is encoded first, outside the committer. Then a load (load.go) runs as one request of the
// committer: it gives keys (keys.go), numbers labels and codes (space_codes.go), and writes each kind of
// record into tables of its own (write.go, space_codes.go). If a load is impossible, as to replace an item,
// it fails with errNotBulk, and the committer gets the changes.
//
// Until the store has taken the tables only the tables of codes in memory have changed, and a failure reverts
// them: a full disk costs the load and nothing else. Key by key, a load stores the same records as a
// transaction item by item (TestBulkLoadOfCodesIsAsOneByOne and its neighbours in package db). After a
// failure at any point either all records are there or none (TestEveryFailedChangeAroundABulkLoad,
// TestCrashesAroundABulkLoad).
//
// Tables avoid the log, the memtables and most compactions of the store. Sorting the keys costs nothing
// extra: writing needs it, and one pass over sorted keys shows that none is stored already. Postings come
// from counting sorts.
//
// Goroutines: a Batch belongs to the goroutine that commits it. The tables are made in the
// committer's goroutine and in others, which end before the request does. Each table of codes is
// changed by one task, while the committer waits; all other state changes in the committer alone.
// No lock is held meanwhile.
//
// The package may import state and the packages below it, never db.
package bulk
