// Package retry repeats calls of the NATS servers while these elect leaders or are restarted.
package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// callFor bounds one call. A lost call never gets an answer.
const callFor = 5 * time.Second

// Do calls f until it succeeds, fails with a permanent error, or the context ends. The effect of a call may
// have happened even if it failed, so f must have the same result when it is called again.
func Do(ctx context.Context, f func(ctx context.Context) error) error {
	for wait, most := 50*time.Millisecond, callFor/8; ; {
		try, cancel := context.WithTimeout(ctx, most)
		err := f(try)
		cancel()
		if err == nil || !transient(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
		wait, most = min(2*wait, time.Second), min(2*most, callFor)
	}
}

// transient reports whether an error of the servers passes by itself, as when one of them is lost.
func transient(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case fewServers:
			return strings.Contains(refused.Description, "offline")
		case alone:
			return false
		}
		return refused.Code >= 500 && !NoRoom(refused)
	}
	for _, e := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders,
		jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrReconnectBufExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Codes of JetStream's errors.
const (
	fewServers jetstream.ErrorCode = 10005 // for the replicas of a stream; the description says why
	noStorage  jetstream.ErrorCode = 10047
	alone      jetstream.ErrorCode = 10074 // a single server has no replicas
)

// NoRoom reports whether an error says that the servers have no storage for a stream.
func NoRoom(refused *jetstream.APIError) bool {
	return refused.ErrorCode == noStorage || refused.ErrorCode == fewServers &&
		strings.Contains(refused.Description, "insufficient storage")
}
