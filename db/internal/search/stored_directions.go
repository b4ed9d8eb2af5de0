package search

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// seekBlocks is the number of blocks from which on one iterator is faster than a look-up for each.
const seekBlocks = 4

// storedSimilarities is similarities for rows whose projections are not in memory. It reads each block of 256
// rows once, in order. A missing block has no projections. Entries of another length are fault.ErrCorrupt.
func (s *Searcher) storedSimilarities(rows []uint32, floor float32, f func(uint32, float32) float32) (err error) {
	get := s.getBlock
	if rows[len(rows)-1]/codec.BlockRows-rows[0]/codec.BlockRows >= seekBlocks {
		k := s.Cv.Space.Keys(s.Cv.ID)
		it, err := s.V.Snap.NewIter(&pebble.IterOptions{
			LowerBound: k.Block(codec.KindProjection, rows[0]),
			UpperBound: codec.PrefixEnd(k.Block(codec.KindProjection, rows[len(rows)-1])),
		})
		if err != nil {
			return fault.ReadError(err, "projections")
		}
		defer it.Close() // all that it read was checked
		get = func(key []byte, use func([]byte) error) error {
			if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
				return it.Error()
			}
			value, err := it.ValueAndErr()
			if err != nil {
				return err
			}
			return use(value)
		}
	}
	for len(rows) > 0 {
		block := rows[0] / codec.BlockRows
		n := 1
		for n < len(rows) && rows[n]/codec.BlockRows == block {
			n++
		}
		found := false
		err := get(s.Cv.Space.Keys(s.Cv.ID).Block(codec.KindProjection, rows[0]), func(value []byte) error {
			found = true
			b, err := codec.DecodeBlock(value)
			if err == nil && b.Len() > 0 && b.Width() != s.Cv.Space.ProjectionBytes() {
				err = fmt.Errorf("%w: entries of %d bytes", codec.ErrCorrupt, b.Width())
			}
			if err != nil {
				return err
			}
			for _, row := range rows[:n] {
				similarity := float32(0)
				if entry, ok := b.Lookup(byte(row)); ok {
					similarity = s.p.direction.Similarity(codec.Direction(entry))
				}
				if similarity > floor {
					floor = f(row, similarity)
				}
			}
			return nil
		})
		first := block * codec.BlockRows
		if err != nil {
			return fault.ReadError(err, "projections of rows %d to %d", first, first+codec.BlockRows-1)
		}
		for i := 0; !found && i < n; i++ {
			if 0 > floor {
				floor = f(rows[i], 0)
			}
		}
		rows = rows[n:]
	}
	return nil
}

// getBlock looks a block up, and calls use with its value if the block exists.
func (s *Searcher) getBlock(key []byte, use func([]byte) error) error {
	value, closer, err := s.V.Snap.Get(key)
	if errors.Is(err, fault.ErrMissing) {
		return nil
	}
	if err != nil {
		return err
	}
	defer closer.Close()
	return use(value)
}
