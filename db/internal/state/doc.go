// Package state holds the memory of an open database, and the one goroutine that changes it.
//
//   - Committer takes requests, makes one Tx of the waiting ones, gives it to the store, and makes the next
//     View. It alone touches CollectionState, SpaceState and CodeSet.
//   - A pendingCommit is a Tx whose sync a second goroutine awaits while the committer makes the next Tx.
//     Afterwards readers get its View, and its requests their answers.
//   - A request is applied whole or not at all. Resolving it reads and finds every possible error; applying
//     it only writes to memory and the batch.
//   - Committer.committed counts a commit, and Committer.ended alone finishes it: side file, view.
//   - A View is one immutable state of everything, with a snapshot of the store. Each Acquire is followed by
//     a Release.
//   - Database holds these with the store, the indexer, which builds tables of codes, and the loading of
//     codes after opening.
//
// States and views come in pairs. The committer owns and changes a state; readers share a view of it:
// CollectionState and CollectionView, SpaceState and SpaceView, CodeSet and CodeSetView, QuantRows and
// QuantView. A publish method makes a view of a state. The two share bitmaps, tables, descriptors and models.
// The committer copies a bitmap before it changes one that a view shows (sharedBitmap); mih.Writer and
// quant.Writer do the same for tables.
//
// To follow one write: Committer.Submit, commitTx, Tx.write, Tx.resolve, Tx.apply, Tx.put, Tx.SetCodes,
// Tx.commit, Committer.committed, Committer.handOver, Committer.finish, Committer.ended, Database.setCurrent.
// To follow one read: Database.Acquire, View.Collection, CollectionView.InSpace, CollectionView.CodesFor.
//
// Goroutines: Run starts the committer, which starts finishAll, and End ends both. Load and RunIndexer run in
// a goroutine of the caller, and end with their context.
//
// Locks: guard.mu and Labels.mu are each held alone, for moments. Database.indexing is held while an index is
// made, and while the committer shows it. pins.mu is held while a view is released, which asks the store.
// Functions passed to Committer.Do, Free, Load, Look and Show run in the committer: they must not call these
// again, nor wait for a goroutine that does.
//
// Invariants and their tests:
//
//   - A request is applied whole or not at all: committer_test.go, db/faults_test.go and db/inject_test.go.
//   - Nothing is visible or answered before its sync: committer_test.go.
//   - Memory equals the store: db/in_memory_test.go.
//   - Views never change: db/spaces_crash_test.go, under the race detector.
//
// It imports store, spaces and record. Packages that read views or write tables import it, not the reverse.
package state
