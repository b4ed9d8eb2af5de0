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

// coded holds the codes of many rows in one space, ascending by row.
type coded struct {
	space *spaces.Space
	rows  []uint32
	encs  []spaces.Encoding

	teaches []bool // by row, where that matters: it has what projections learn from
}

// EncodeBlock is how many items are read while those before them are encoded.
const EncodeBlock = 1024

// encodeRows makes the codes in a space of the items of a view in the rows from from up
// to and without until, up to limit of them, while it reads the next ones; 0 is no limit. Reading takes one of the
// workers where they are not all that there could be. progress, if not nil, hears how
// many there are so far.
func encodeRows(ctx context.Context, v *state.View, cv *state.CollectionView, sp *spaces.Space, workers int, from uint32, until uint64, limit int, progress func(done int)) (*coded, error) {
	out := &coded{space: sp}
	var rows []uint32
	var vectors [][]model.Vector
	var labels [][]uint32
	var working chan error // of the block that is being encoded, nil for none
	if workers < work.All() {
		workers--
	}
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
		if working != nil { // the store has failed
			<-working
		}
	}()
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		at := len(out.encs)
		out.rows = append(out.rows, rows...)
		out.encs = append(out.encs, make([]spaces.Encoding, len(rows))...)
		encs, rowsNow, vectorsNow, labelsNow := out.encs[at:], rows, vectors, labels
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
		if workers == 0 { // there is one goroutine for both
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
