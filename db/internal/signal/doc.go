// Package signal sends events, spans and counts of operations to the program that
// embeds a database. It imports db/event, db/fault and db/internal/work, and knows no
// database.
//
// Its invariant: telling never waits. Any goroutine, holding any lock, may put an event
// into the queue. One goroutine hands events on. It exists while there are some, and
// Sender.Wait waits for it. A listener that panics or takes its time only loses events:
// see event_test.go of package db.
package signal
