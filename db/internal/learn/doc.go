// Package learn does the learning of an open database. It trains models, makes spaces of them, gives items
// their codes, updates spaces as items come, and measures the quality. The method is FDDH (Liu, Wang, Cheung
// 2021); package model has the mathematics, this package feeds it from the store and stores the results.
//
// A space goes through these steps:
//
//	train       a trainingSet streams the labelled items of a view to fit.Train
//	install     one commit stores the model, its statistics and the lesson of each row
//	builder     gives all items their codes, block by block, a commit each
//	updater     lets pending rows teach, and commits a revision (eqs. 22-24 of the paper)
//	reindex     installs another space on the present revision of a space
//
// A learner holds the statistics of one space in memory between updates. Drift and evaluation
// only measure. After a crash Resume completes the spaces that were being built,
// and KeepUpdated completes the recoding of rows.
//
// The invariant (see learner.go):
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - retractions whose lessons are of revisions up to the checkpoint
//
// It holds after a crash at any point. TestUpdateByLabels of db compares the statistics with statistics made
// of the present items, after crashes too. A deep db.Verify compares them with lessons and retractions in any
// database; the histories of test/metamorphic run one.
//
// These calls store something, each in a commit of its own. A crash leaves the state after the
// last one:
//
//	Install          all of a new space but its codes; it is then being built
//	builder.store    the codes of a block, and the row that the builder has come to
//	completeSpace    the space is complete, and active if Activate is set
//	updater.commit   a revision, its lessons, retractions of rows that changed meanwhile
//	GrowLabels       the same, with a checkpoint and the rows to recode
//	recode           the codes of a block of these rows, and retractions of their lessons
//	restore          an earlier revision again, without the lessons since, and a checkpoint
//	Checkpoint       statistics alone, when the database closes
//
// TestCrashesAroundSpaces and TestCrashesWhileASpaceIsBuilt of db crash at changes to the file
// system in such histories.
//
// Long work reads a view and holds no lock. Meanwhile the committer records the rows that change: Changed of
// the CollectionState while a space is being installed, Changed of the SpaceState while it is built or
// updated. The commit at the end adjusts these rows. All changes are functions that state.Collection runs in
// the committer.
//
// Three goroutines of the database run code of this package: one calls KeepUpdated, one KeepRenewed, one the
// function that Resume returns. All end with state.Database.Stopping. Everything else runs in the goroutine
// of the caller and in helpers that it waits for. The exception is a watcher of dropped collections
// (untilDropped), which ends with the call and is not waited for. One goroutine at a time uses a learner
// (turnOf). One builder at a time builds a space, and others wait for their turn (builder.run).
//
// It may import state, bulk (codes stored as tables), search (queries of an evaluation), and the packages
// below these.
package learn
