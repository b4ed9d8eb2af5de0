package explore

import (
	"context"
	"net/http"
	"sync/atomic"
)

// maxWaiting is how many requests may wait for a place in one room.
const maxWaiting = 64

// A room bounds how many requests do one kind of work at the same time: a request takes a
// place, and waits where all are taken. Each kind has a room of its own, so that requests
// that wait for an encoder or for a slow sender leave the processors to the others. No
// request waits for one room while it has a place that the holders of that room need:
// the computing room is the last one that is entered. Safe for concurrent use.
type room struct {
	places  chan struct{} // has an element for each place that is taken
	waiting atomic.Int32  // requests without a place
}

func newRoom(places int) *room { return &room{places: make(chan struct{}, places)} }

// enter takes a place, for which the caller calls leave. It fails where too many requests
// wait already, and when the context ends.
func (r *room) enter(ctx context.Context) error {
	select {
	case r.places <- struct{}{}:
		return nil
	default:
	}
	if r.waiting.Add(1) > maxWaiting {
		r.waiting.Add(-1)
		return statusErrorf(http.StatusServiceUnavailable, "too many requests at a time: ask again when some are answered")
	}
	defer r.waiting.Add(-1)
	select {
	case r.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *room) leave() { <-r.places }
