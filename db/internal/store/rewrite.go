package store

import (
	"bytes"
	"context"
	"slices"
)

// compactPiece is about how many bytes of the store are rewritten at a time: so much more
// it takes while that lasts.
const compactPiece = 256 << 20

// CompactAll rewrites the store, as its tables in memory are written, in pieces.
func (e *Engine) CompactAll(ctx context.Context, progress func(done, total int64)) error {
	if err := e.Admit(0, true); err != nil {
		return err
	}
	if err := e.FlushAll(ctx); err != nil {
		return err
	}
	pieces, err := e.pieces()
	if err != nil {
		return err
	}
	done, total := int64(0), int64(0)
	for _, p := range pieces {
		total += p.bytes
	}
	for i, p := range pieces {
		progress(done, total)
		end := []byte{0xff} // keys begin with a kind, of which none is that large
		if i+1 < len(pieces) {
			end = pieces[i+1].start
		}
		if err := e.Admit(p.bytes, true); err != nil {
			return err
		}
		if err := e.Rewrite(ctx, p.start, end); err != nil {
			return err
		}
		done += p.bytes
	}
	e.Reserve.LookAgain() // the tables that were rewritten have gone
	progress(done, total)
	return nil
}

// Rewrite rewrites the tables with keys from start to end. Pebble goes on trying where it
// cannot; this does not wait for that.
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
	start []byte
	bytes int64
}

// pieces cuts the store between its tables. A table counts for where it begins.
func (e *Engine) pieces() ([]storePiece, error) {
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
		if last := &out[len(out)-1]; last.bytes+t.bytes <= compactPiece || bytes.Equal(last.start, t.start) {
			last.bytes += t.bytes
		} else {
			out = append(out, t)
		}
	}
	return out, nil
}
