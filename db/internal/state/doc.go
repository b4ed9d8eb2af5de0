// Package state is what an open database has in memory, and the one goroutine that changes it.
//
//   - Committer takes requests, makes one Tx of those that wait, commits it, and publishes the
//     next View. It alone touches CollectionState, SpaceState and CodeSet.
//   - A request is applied whole or not at all: it is resolved first, which reads and finds all
//     that can be wrong, and then applied, which only writes to memory and the batch.
//   - Committer.committed is the one end of a commit: sequence, side file, view.
//   - A View is one state of everything, with a snapshot of the store. It never changes; who
//     has acquired it releases it.
//   - Database holds these with the store, the indexer, which makes tables of codes, and the
//     loading of codes after opening.
//
// Goroutines: Run starts the committer and End ends it; Load and RunIndexer run in one that
// the caller starts, and end with their context.
//
// Locks: Guard.mu, Labels.mu and Database.indexing are each held alone. What is handed to
// Committer.Do and its kin runs in the committer: it must not call these again.
package state
