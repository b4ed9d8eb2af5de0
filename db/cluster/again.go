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

// callFor bounds one call of the servers; then the call is repeated. A lost call never gets an answer.
const callFor = 5 * time.Second

// again calls f, which asks the servers, until f succeeds or fails with a permanent error. The effect of f
// may have happened even if f failed.
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
	errNoStorage jetstream.ErrorCode = 10047 // no server has storage for a stream
	errNoPeers   jetstream.ErrorCode = 10005 // too few servers for a stream: one is gone or has no room
)

// passes reports whether an error of the servers is transient, as when a server is lost.
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
