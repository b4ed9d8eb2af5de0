package store

import (
	"bytes"
	"context"
	"slices"
	"time"
)

// compactPiece is roughly the number of bytes of the store that are rewritten at a time. The rewrite takes at
// most as much additional space. With less free space a piece is smaller.
const compactPiece = 256 << 20

// CompactAll rewrites the whole store, so that deleted and replaced data takes no space. It flushes memory,
// and then compacts piece by piece, so it never needs much more than compactPiece bytes of additional space.
// On a full disk it takes the free space, and a table without room ends it. After each piece progress gets
// the bytes done and in total. Writers and readers go on. An error (ErrDiskFull, or the end of the context)
// ends it between two pieces; rewritten pieces stay. It needs a Reserve.
func (e *Engine) CompactAll(ctx context.Context, progress func(done, total int64)) error {
	room := e.Reserve.roomToCompact()
	if err := e.Admit(0, true); err != nil {
		return err
	}
	if err := e.FlushAll(ctx); err != nil {
		return err
	}
	pieces, err := e.pieces(min(room, compactPiece))
	if err != nil {
		return err
	}
	done, total := int64(0), int64(0)
	for _, p := range pieces {
		total += p.bytes
	}
	patient := time.Now().Add(maxZombieWait)
	for i, p := range pieces {
		progress(done, total)
		end := []byte{0xff} // keys begin with a kind, and no kind is that large
		if i+1 < len(pieces) {
			end = pieces[i+1].start
		}
		if err := e.Rewrite(ctx, p.start, end); err != nil {
			return err
		}
		if err := e.waitForRoom(ctx, patient); err != nil {
			return err
		}
		done += p.bytes
	}
	e.Reserve.LookAgain() // the old tables are gone
	progress(done, total)
	return nil
}

// maxZombieWait is the total time that CompactAll waits for tables that are still being read.
const maxZombieWait = time.Second

// waitForRoom returns once the old tables are gone: Pebble removes them in the background. Pebble itself
// often reads one for some milliseconds more, to take its statistics. An iterator may hold one for any time,
// so the wait for tables that are being read ends at the time patient.
func (e *Engine) waitForRoom(ctx context.Context, patient time.Time) error {
	for {
		m := e.DB.Metrics()
		if m.Table.ObsoleteCount == 0 && (m.Table.ZombieCount == 0 || !time.Now().Before(patient)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}

// Rewrite compacts the tables with keys from start to end to the lowest level. If that fails, Pebble tries
// forever; Rewrite returns once tableTrouble reports trouble. Two calls at a time may take each other's
// signal of a failure; as Pebble tries again, the other call gets the next one.
func (e *Engine) Rewrite(ctx context.Context, start, end []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-e.Log.trouble:
			}
			if err := e.Log.compactions.err(); err != nil {
				cancel(err)
				return
			}
		}
	}()
	err := e.DB.Compact(ctx, start, end, true)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// A storePiece is the part of the store from a key up to the next piece.
type storePiece struct {
	start []byte // first key of the piece
	bytes int64  // of the tables that begin in the piece
}

// pieces cuts the store at the beginnings of tables into pieces of at most so many bytes; tables that begin
// with the same key stay together. A table counts where it begins, though it may reach into the next piece.
func (e *Engine) pieces(most int64) ([]storePiece, error) {
	levels, err := e.DB.SSTables()
	if err != nil {
		return nil, err
	}
	all := []storePiece{{start: []byte{0}}}
	for _, level := range levels {
		for _, t := range level {
			all = append(all, storePiece{t.Smallest.UserKey, int64(t.Size)})
		}
	}
	slices.SortFunc(all, func(a, b storePiece) int { return bytes.Compare(a.start, b.start) })
	out := all[:1]
	for _, t := range all[1:] {
		if last := &out[len(out)-1]; last.bytes+t.bytes <= most || bytes.Equal(last.start, t.start) {
			last.bytes += t.bytes
		} else {
			out = append(out, t)
		}
	}
	return out, nil
}
