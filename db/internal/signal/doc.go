// Package signal sends events, spans and counts of operations to the program that
// embeds a database. It imports db/event, db/fault and db/internal/work, and knows no
// database.
//
// Its invariant: telling never waits. Any goroutine, holding any lock, may put an event
// into the queue. One goroutine hands events on. It exists while there are some, and
// Sender.Wait waits for it. A listener that panics or takes its time only loses events:
// see event_test.go of package db.
//
// The price of the queue is that events come a moment later than they happen; they carry
// their time. An operation has one life for all that look: its events have one number, it has
// a span, a line in Activity.Running, and counts when it has ended. Spans of short calls, such
// as searches of a few microseconds, are a method of an interface that is nil unless asked for.
//
// Locks: Sender.mu guards the queue, Operations.mu the lists, Operation.mu the progress of
// one operation. Operation.mu may be taken under Operations.mu; no other is taken under one
// of them, and no listener, logger or tracer is called under any.
package signal
