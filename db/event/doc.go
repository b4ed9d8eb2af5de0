// Package event has what a database tells of itself: events, for a Listener or as log lines,
// spans, for a Tracer, figures of how often and how long, and how far a call has come, for a
// Progress.
//
// A listener and a tracer are set in db.Options. Whoever listens holds no lock of the database:
// events wait in a queue, and a slow listener costs events only. Names and fields of events do
// not change; docs/OPERATIONS.md has them all. The package has types and names, no goroutine and
// no state, and imports the standard library only.
package event
