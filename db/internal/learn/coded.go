package learn

import (
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// coded holds the codes of some rows in one revision of a space. The goroutine that made it
// owns it.
type coded struct {
	space *spaces.Space     // the revision that has made the codes
	rows  []uint32          // ascending
	encs  []spaces.Encoding // parallel to rows

	// teaches is parallel to rows: the item has a vector that the projections can learn
	// from. Only encodeSome sets it.
	teaches []bool
}

// Reading items waits for the store and decodes vectors, encoding multiplies matrices. encodeRows
// does both at the same time: one block is encoded in the background while the caller's goroutine
// reads the next one. At most one block is being encoded, so results come in the order of rows.

// EncodeBlock is the number of items that are encoded together, while the next ones are read.
const EncodeBlock = 1024

// encodeRows encodes the items of rows [from, until) of a view in space sp. It stops after
// limit items; 0 means no limit. It reads ahead while it encodes. Of fewer workers than
// work.All(), reading is one; with one worker it reads and encodes in turn. progress, unless
// nil, is called in the goroutine of the caller, with the number of items encoded so far. Up
// to two blocks of EncodeBlock items with their vectors are in memory, beside the result.
func encodeRows(ctx context.Context, v *state.View, cv *state.CollectionView, sp *spaces.Space, workers int, from uint32, until uint64, limit int, progress func(done int)) (*coded, error) {
	out := &coded{space: sp}
	var rows []uint32
	var vectors [][]model.Vector
	var labels [][]uint32
	var working chan error // gives the outcome of the block that is being encoded; nil: there is none
	if workers < work.All() {
		workers--
	}
	// finish waits for the block that is being encoded.
	finish := func() (err error) {
		if working != nil {
			err = <-working
			working = nil
			if err == nil && progress != nil {
				progress(len(out.rows))
			}
		}
		return err
	}
	defer func() {
		if working != nil { // reading has failed: wait for the goroutine
			<-working
		}
	}()
	// flush waits for the block before, and begins to encode the rows read since.
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		// append may move out.encs, into which the goroutine writes: finish has waited for it.
		at := len(out.encs)
		out.rows = append(out.rows, rows...)
		out.encs = append(out.encs, make([]spaces.Encoding, len(rows))...)
		encs, rowsNow, vectorsNow, labelsNow := out.encs[at:], rows, vectors, labels
		// It has room for the result, so the goroutine ends even if reading has failed.
		result := make(chan error, 1)
		working = result
		encode := func() {
			result <- work.Safely(func() error {
				return sp.EncodeAll(ctx, max(workers, 1), encs,
					func(i int) ([]model.Vector, []uint32) { return vectorsNow[i], labelsNow[i] },
					func(i int, err error) error { return fmt.Errorf("fddhdb: encode row %d: %w", rowsNow[i], err) })
			})
		}
		rows, vectors, labels = nil, nil, nil
		if workers == 0 { // one goroutine reads and encodes
			encode()
			return finish()
		}
		go encode()
		return nil
	}
	err := record.ForEachItem(v.Snap, cv.Descriptor, from, func(row uint32, rec *codec.ItemRecord, x []model.Vector) error {
		if uint64(row) >= until {
			return record.ErrStopped
		}
		// ForEachItem fills x again for the next item, and this one waits for its block.
		own := make([]model.Vector, len(x))
		for t := range x {
			own[t] = record.CloneVector(x[t])
		}
		rows, vectors, labels = append(rows, row), append(vectors, own), append(labels, rec.Labels)
		n := len(out.rows) + len(rows)
		if len(rows) == EncodeBlock || n == limit {
			if err := flush(); err != nil {
				return err
			}
		}
		if n == limit {
			return record.ErrStopped
		}
		return nil
	})
	if err == nil || errors.Is(err, record.ErrStopped) {
		err = flush()
	}
	if err == nil {
		err = finish()
	}
	return out, err
}
