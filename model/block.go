package model

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
)

// blockItems is how many items are in memory at a time.
const blockItems = 512

// An Example is one training item.
type Example struct {
	Vectors [][]float32 // by modality; nil where the item lacks it
	Labels  []uint32    // sorted and distinct; any numbers
}

// A Source yields the training items: the same ones in the same order at every
// call, because training reads them several times instead of holding them. All
// of them are labelled. Training keeps none of an example's slices after it has
// asked for the next example.
type Source interface {
	Examples(ctx context.Context) iter.Seq2[Example, error]
}

// A block is a run of consecutive training items. For modality t, row r of x
// and phi belongs to item first+at[t][r]; items without the modality have no
// row. All matrices hold items as rows, where the paper has columns.
type block struct {
	first, n int
	labels   [][]uint32 // by item
	at       [][]int
	x        [][]float32
	phi      [][]float64 // nil unless the reader has maps
}

// rows returns how many items of the block have modality t.
func (b *block) rows(t int) int { return len(b.at[t]) }

// errStop, returned by the function that blocks calls, ends the pass early and
// without an error.
var errStop = errors.New("stop")

// reader turns a source into blocks.
type reader struct {
	modalities []Modality
	src        Source
	items      int // as counted by the first pass; -1 before
	progress   func(phase string, done, total int)
}

// blocks reads the source once and calls f with each block; with maps, phi is
// computed, in parallel over the items. The context is asked at each block.
func (r *reader) blocks(ctx context.Context, phase string, maps []*featureMap, f func(*block) error) error {
	b := &block{
		labels: make([][]uint32, blockItems),
		at:     make([][]int, len(r.modalities)),
		x:      make([][]float32, len(r.modalities)),
		phi:    make([][]float64, len(r.modalities)),
	}
	for t := range maps {
		b.phi[t] = make([]float64, blockItems*maps[t].size())
	}
	scratch := make([]mapScratch, workerCount())
	flush := func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		for t := range maps {
			maps[t].applyRows(b.phi[t], b.x[t], scratch)
		}
		if err := f(b); err != nil {
			return err
		}
		b.first, b.n = b.first+b.n, 0
		for t := range b.x {
			b.x[t], b.at[t] = b.x[t][:0], b.at[t][:0]
		}
		if r.progress != nil {
			r.progress(phase, b.first, max(r.items, 0))
		}
		return nil
	}
	for ex, err := range r.src.Examples(ctx) {
		if err == nil {
			err = r.add(b, ex)
		}
		if err != nil {
			return fmt.Errorf("training item %d: %w", b.first+b.n, err)
		}
		if b.n == blockItems {
			if err := flush(); err != nil {
				return ignoreStop(err)
			}
		}
	}
	if b.n > 0 {
		if err := flush(); err != nil {
			return ignoreStop(err)
		}
	}
	if r.items >= 0 && b.first != r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has %d now: it must yield the same items each time", ErrMismatch, r.items, b.first)
	}
	return ctx.Err()
}

func ignoreStop(err error) error {
	if err == errStop {
		return nil
	}
	return err
}

// add checks the example and copies it to the end of the block.
func (r *reader) add(b *block, ex Example) error {
	if r.items >= 0 && b.first+b.n >= r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has more now: it must yield the same items each time", ErrMismatch, r.items)
	}
	if r.items < 0 && b.first+b.n == math.MaxInt32 {
		return fmt.Errorf("%w: training takes at most %d items", ErrOption, math.MaxInt32)
	}
	if len(ex.Vectors) != len(r.modalities) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give nil for what an item lacks", ErrMismatch, len(ex.Vectors), len(r.modalities))
	}
	if len(ex.Labels) == 0 {
		return fmt.Errorf("%w: the item has none: leave unlabelled items out of the training", ErrNoLabels)
	}
	for i := 1; i < len(ex.Labels); i++ {
		if ex.Labels[i-1] >= ex.Labels[i] {
			return fmt.Errorf("%w: label %d follows %d: labels must be sorted and distinct", ErrOption, ex.Labels[i], ex.Labels[i-1])
		}
	}
	for t, x := range ex.Vectors {
		if x == nil {
			continue
		}
		if err := checkVector(r.modalities[t], x); err != nil {
			return err
		}
		b.x[t] = append(b.x[t], x...)
		b.at[t] = append(b.at[t], b.n)
	}
	b.labels[b.n] = append(b.labels[b.n][:0], ex.Labels...)
	b.n++
	return nil
}
