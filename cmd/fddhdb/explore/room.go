package explore

import (
	"context"
	"net/http"
	"sync/atomic"
)

// maxWaiting is the number of requests that may wait for a place in one room.
const maxWaiting = 64

// A room bounds the number of requests that do one kind of work at a time. A request
// takes a place, and waits if all are taken. Each kind has its own room, so requests
// that wait for an encoder or a slow sender leave the processors to the others. To
// avoid deadlock, no request waits for one room while it holds a place that the holders
// of that room need: the computing room is entered last. It is safe for concurrent use.
type room struct {
	places  chan struct{} // one element for each taken place
	waiting atomic.Int32  // waiting requests
}

func newRoom(places int) *room { return &room{places: make(chan struct{}, places)} }

// enter takes a place, which the caller gives back with leave. It fails if too many
// requests wait already, and when the context ends.
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
