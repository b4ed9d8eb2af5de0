package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// FlushAll writes tables of what is in the log and in memory only.
func (e *Engine) FlushAll(ctx context.Context) error {
	return e.FullDisk(FlushAll(ctx, e.DB, e.Log))
}

// FlushAll writes tables of what is in the log and in memory only. Pebble tries for ever
// where it cannot; this does not wait for that.
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
