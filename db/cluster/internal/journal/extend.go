package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of Extend: messages and bytes in flight, and waiting times.
const (
	extendMost  = 256
	extendBytes = 8 << 20
	extendFor   = 5 * time.Second
	// how long a log may seem shorter than before, while its servers choose a leader
	settlesIn = 30 * time.Second
)

// Extend appends messages in order, directly behind the sequence last, to a log that has no other writer. It
// skips messages that an earlier call has appended: after an interruption call it again with all messages
// that may be missing. It returns when all of them are durable.
func (j *Journal) Extend(ctx context.Context, last uint64, all [][]byte) error {
	to := last + uint64(len(all))
	var short time.Time // since when the log ends before last
	for at, wait := last, tryWait; ; wait = min(2*wait, 500*time.Millisecond) {
		err := j.extend(ctx, at, all[at-last:])
		if err == nil {
			return nil
		}
		var refused *jetstream.APIError
		switch {
		case errors.As(err, &refused) && refused.ErrorCode == errStoreFailed &&
			strings.Contains(refused.Description, "maximum bytes"):
			return j.in(ErrFull)
		// the log has more, or fewer: see below
		case errors.As(err, &refused) && refused.ErrorCode == errWrongLast:
		case errors.As(err, &refused) && refused.Code < 500:
			return j.in(err)
		case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrPermissionViolation),
			errors.Is(err, nats.ErrConnectionClosed):
			return j.in(err)
		}
		select {
		case <-ctx.Done():
			return j.in(fmt.Errorf("%w: %w", context.Cause(ctx), err))
		case <-time.After(wait):
		}
		try, cancel := context.WithTimeout(ctx, extendFor)
		info, ierr := j.Info(try)
		cancel()
		switch {
		case ierr != nil:
		case info.Last >= to:
			return nil
		case info.Last >= last:
			at, short = info.Last, time.Time{}
		case short.IsZero():
			short = time.Now()
		case time.Since(short) > settlesIn:
			return j.in(fmt.Errorf("it ends with message %d, and message %d was in it: its servers have lost messages", info.Last, last))
		}
	}
}

// errWrongLast is JetStream's error code if a log does not end with the expected sequence.
const errWrongLast jetstream.ErrorCode = 10071

// extend appends messages directly behind the sequence at. After an error some of them may be appended.
func (j *Journal) extend(ctx context.Context, at uint64, all [][]byte) error {
	for len(all) > 0 {
		n, bytes := 0, 0
		for n < len(all) && n < extendMost && (n == 0 || bytes+len(all[n]) <= extendBytes) {
			bytes += len(all[n])
			n++
		}
		acks := make([]jetstream.PubAckFuture, 0, n)
		var err error
		for i, data := range all[:n] {
			var ack jetstream.PubAckFuture
			ack, err = j.js.PublishMsgAsync(&nats.Msg{Subject: j.log, Data: data},
				jetstream.WithExpectStream(j.stream), jetstream.WithExpectLastSequence(at+uint64(i)),
				jetstream.WithRetryAttempts(0))
			if err != nil {
				break
			}
			acks = append(acks, ack)
		}
		late := time.NewTimer(extendFor)
		for i, ack := range acks {
			if aerr := j.acknowledged(ctx, ack, late.C, at+uint64(i)+1); aerr != nil {
				late.Stop()
				return aerr
			}
		}
		late.Stop()
		if err != nil {
			return err
		}
		all, at = all[n:], at+uint64(n)
	}
	return nil
}

// acknowledged waits until a message is durable.
func (j *Journal) acknowledged(ctx context.Context, ack jetstream.PubAckFuture, late <-chan time.Time,
	seq uint64) error {
	select {
	case a := <-ack.Ok():
		if a.Sequence != seq {
			return fmt.Errorf("message %d has become message %d", seq, a.Sequence)
		}
		return nil
	case err := <-ack.Err():
		return err
	case <-late:
		return fmt.Errorf("message %d is not acknowledged after %v", seq, extendFor)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
