package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// FlushAll writes tables of all that is only in the log and in memory, as the function
// FlushAll does, and words the error of a full disk.
func (e *Engine) FlushAll(ctx context.Context) error {
	return e.FullDisk(FlushAll(ctx, e.DB, e.Log))
}

// FlushAll writes tables of all that is only in the log and in memory, and returns when they
// are durable. Pebble tries for ever where it cannot; this gives up after openingTries failed
// flushes, or as soon as tableTrouble speaks of trouble, and with the context. What it leaves
// unflushed stays in the log, and Pebble goes on trying. Calls at the same time may take each
// other's news of a failure, and so wait for a few tries more.
func FlushAll(ctx context.Context, kv *pebble.DB, log *Log) error {
	select {
	case <-log.unflushed: // of earlier
	default:
	}
	flushed, err := kv.AsyncFlush()
	if err != nil {
		return err
	}
	for tries := 0; tries < openingTries; tries++ {
		select {
		case <-flushed:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-log.unflushed:
		}
		if err := errors.Join(log.Err(), log.flushes.err()); err != nil {
			return err
		}
	}
	return errors.New("the tables of what is in memory could not be written, which will be tried again")
}
