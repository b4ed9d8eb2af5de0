// Package state is what an open database has in memory, and the one goroutine that changes it.
//
//   - Committer takes requests, makes one Tx of those that wait, gives it to the store, and makes
//     the next View. It alone touches CollectionState, SpaceState and CodeSet.
//   - A flight is such a Tx whose sync is awaited, by a second goroutine, while the committer
//     makes the next one. When it lands, readers get its View, and its requests their answers.
//   - A request is applied whole or not at all: it is resolved first, which reads and finds all
//     that can be wrong, and then applied, which only writes to memory and the batch.
//   - Committer.committed counts a commit, and Committer.ended is its one end: side file, view.
//   - A View is one state of everything, with a snapshot of the store. It never changes. Each
//     Acquire is followed by a Release.
//   - Database holds these with the store, the indexer, which makes tables of codes, and the
//     loading of codes after opening.
//
// Everything comes in pairs: a state, which the committer owns and changes, and a view of it,
// which readers share: CollectionState and CollectionView, SpaceState and SpaceView, CodeSet
// and CodeSetView, QuantRows and QuantView. A publish method makes the second of the first.
// They share bitmaps, tables, descriptors and models; the committer copies a bitmap before it
// changes one that a view shows (sharedBitmap), and mih.Writer and quant.Writer do the same for
// tables.
//
// To follow one write: Committer.Submit, commitTx, Tx.write, Tx.resolve, Tx.apply, Tx.put,
// Tx.SetCodes, Tx.commit, Committer.committed, Committer.launch, Committer.land,
// Committer.ended, Database.setCurrent. To follow one read: Database.Acquire, View.Collection,
// CollectionView.InSpace, CollectionView.CodesFor.
//
// Goroutines: Run starts the committer, which starts landAll, and End ends both; Load and
// RunIndexer run in one that the caller starts, and end with their context.
//
// Locks: guard.mu and Labels.mu are each held alone, for moments. Database.indexing is held
// while an index is made, and while the committer shows it; pins.mu while a view is released,
// which asks the store. What is handed to Committer.Do and its kin runs in the committer: it
// must not call these again, nor wait for anyone who does.
//
// Invariants and their tests: requests whole or not at all, write_test.go, db/faults_test.go and
// db/inject_test.go; nothing seen or answered before its sync, flight_test.go; what is in memory
// is what is in the store, db/in_memory_test.go; views that stay as they are,
// db/spaces_crash_test.go, under the race detector.
//
// It imports store, spaces and record, and no room that reads views or writes tables: those
// import it.
package state
