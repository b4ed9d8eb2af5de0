package store

import (
	"context"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

// FlushAll is the function FlushAll with the error of a full disk as a *fault.DiskFullError.
func (e *Engine) FlushAll(ctx context.Context) error {
	return e.FullDisk(FlushAll(ctx, e.DB, e.Log))
}

// FlushAll writes the memtables to tables and returns when the tables are durable. If that fails, Pebble
// tries forever. FlushAll gives up after openingTries failed flushes, when tableTrouble reports trouble, or
// when the context ends. The log keeps the unflushed data, and Pebble goes on trying. Concurrent calls may
// take each other's signal of a failure, and then wait for a few tries more.
func FlushAll(ctx context.Context, kv *pebble.DB, log *Log) error {
	select {
	case <-log.unflushed: // of earlier failures
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
