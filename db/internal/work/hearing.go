package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Hearing replaces a progress callback by one that does not panic, and returns the context for
// the operation that it hears of. If the callback panics the context ends, and the callback is
// not called again. end must be deferred: once the operation has ended, it panics in the
// caller's goroutine, with an error that has the stack of the callback. A nil callback stays
// nil.
//
// An operation calls its callback from goroutines of its own, and while it has files open and
// spaces half built. So the panic must not leave the callback, and the operation ends as if
// its caller had cancelled it.
func Hearing[P ~func(stage string, done, total int64)](ctx context.Context, callback *P) (_ context.Context,
	end func()) {
	hear := *callback
	if hear == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var panicked atomic.Pointer[error]
	*callback = func(stage string, done, total int64) {
		if panicked.Load() != nil {
			return
		}
		defer func() {
			if p := recover(); p != nil {
				err := fmt.Errorf("progress callback: %v\n%s", p, debug.Stack())
				panicked.Store(&err)
				cancel()
			}
		}()
		hear(stage, done, total)
	}
	return ctx, func() {
		cancel()
		if p := panicked.Load(); p != nil {
			panic(*p)
		}
	}
}
