package db

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// flushed writes tables of what is in the log and in memory only.
func (e *engine) flushed(ctx context.Context) error {
	return e.fullDisk(flushStore(ctx, e.DB, e.log))
}

// flushStore writes tables of what is in the log and in memory only. Pebble tries for ever
// where it cannot; this does not wait for that.
func flushStore(ctx context.Context, kv *pebble.DB, log *storeLogger) error {
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
		if err := errors.Join(log.err(), log.flushes.err()); err != nil {
			return err
		}
	}
	return errors.New("the tables of what is in memory could not be written, which will be tried again")
}
