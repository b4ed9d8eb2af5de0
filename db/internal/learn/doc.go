// Package learn is how an open database learns, and what comes of it: a model from the
// labelled items of a view (training set, train), the beginning of a space with that model
// (foundation), the codes of all items in the space (builder), the online step that carries
// a space on (learner, updater), and how good all that is (drift, balance, evaluation).
//
// A space is founded in one commit, with its model, its statistics, and what each row has
// taught. A builder then gives the items their codes, block after block; each block is a
// commit, so what a crash leaves is gone on with (Resume). From then on updates make
// revisions of the space, each in one commit.
//
// The invariant is that of learner.go:
//
//	statistics = checkpoint
//	           + lessons of revisions after the checkpoint
//	           - departures whose lessons are of revisions up to the checkpoint
//
// It holds after a crash at any point. TestUpdateByLabels of db and the histories of
// internal/metamorphic prove it against statistics that are accumulated anew, db.Verify
// compares them in every database.
//
// Long work reads a view and holds no lock. What changes meanwhile the committer records
// (Changed of a collection or a space), and the commit at the end makes up for it. Everything
// is stored through the committer, in functions that state.Collection runs there. One
// goroutine a database, KeepUpdated, updates in the background; builders that an earlier
// process has left behind run in another, Resume; both end with Database.State.Stopping.
// A learner is used by one goroutine at a time (learners.get), and only one builds a
// space, which the others wait for (buildings.claim).
//
// It may import state, bulk for columns of codes, search for queries that are evaluated, and
// what these stand on.
package learn
