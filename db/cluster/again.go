package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// callFor is how long a call of the servers may take before it is made again: one that has been lost is never
// answered.
const callFor = 5 * time.Second

// again calls f, which asks the servers, until it works, or fails for a reason that does not pass. What f
// does may have happened although it failed.
func again(ctx context.Context, f func(ctx context.Context) error) error {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		try, cancel := context.WithTimeout(ctx, callFor)
		err := f(try)
		cancel()
		if err == nil || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// Codes of JetStream's errors.
const (
	errNoStorage jetstream.ErrorCode = 10047 // servers have none for a stream
	errNoPeers   jetstream.ErrorCode = 10005 // there are not as many servers for a stream, as one is gone or has no room
)

// passes reports whether an error of the servers is one that passes, as when a server is lost.
func passes(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case errNoStorage:
			return false
		case errNoPeers:
			return !strings.Contains(refused.Description, "insufficient storage")
		}
		return refused.Code >= 500
	}
	for _, e := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrReconnectBufExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
