// Package event has the types by which a database reports its work: events for a
// Listener or as log lines, figures about numbers and durations
// of calls, and how far a call has come, for a Progress.
//
// A listener is set in db.Options. It is called without any lock
// of the database: events wait in a queue, and a slow listener only loses events
// (event_test.go of package db). Names and fields of events do not change;
// docs/OPERATIONS.md has them all. The package has types and names, no goroutine and no
// state. It imports the standard library only; db/internal/signal sends the events.
package event
