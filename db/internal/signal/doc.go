// Package signal tells the program that embeds a database what goes on in it: events by way of
// a queue, spans, and counts of operations.
//
// Its invariant: nobody who tells waits. Whoever holds whatever lock puts an event into the
// queue; one goroutine, which is there while there are some, hands them on, and Sender.Wait
// waits for it. A listener that panics or takes its time costs events only, see event_test.go
// of package db. It imports the events, errors and work that waits, and knows no database.
package signal
