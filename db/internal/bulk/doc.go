// Package bulk stores many new items of one collection, or the codes of many rows, as sorted
// tables that the store takes over in one commit, instead of through its log and memory.
//
//   - Items gathers items column by column, and Commit stores them.
//   - StoreCodes stores the codes of rows in a space that is being built.
//
// Until the store has taken the tables nothing has changed but the tables of codes in memory,
// and these go back to what they were where something fails: a full disk costs the load and
// nothing else. What is stored is, key by key, what a transaction would have stored item by
// item (TestBulkLoadOfCodesIsAsOneByOne and its neighbours in package db), and after a failure
// at any point all of it is there, or nothing (TestEveryFailedChangeAroundABulkLoad,
// TestCrashesAroundABulkLoad).
//
// Tables avoid the log, the memory tables and most compactions of the store. Sorting the keys
// costs nothing extra: it is needed to write them, and shows in one pass that none of them is
// stored already. Postings come from counting sorts.
//
// Goroutines: Items belong to the goroutine that adds to them and commits them. Commit encodes
// on all cores, and then makes the tables, in the committer and in goroutines that end before
// it does; only the committer changes the tables of codes and the state.
//
// The package may import state and what is below it, never db.
package bulk
