package model

import (
	"context"
	"fmt"
	"iter"
	"math"
)

// blockItems is the number of items of a block; two blocks are in memory at a time.
const blockItems = 512

// A Source yields the training items. Every call of Examples yields the same items in
// the same order, because training reads them several times instead of holding them.
// All of them have labels. Training keeps no slice of an example once it has asked for
// the next one.
type Source interface {
	Examples(ctx context.Context) iter.Seq2[Example, error]
}

// A block is a run of consecutive training items. Row r of x[t] and phi[t] belongs to
// item first+at[t][r]; items without modality t have no row. All matrices have items as
// rows; the paper has them as columns.
type block struct {
	first, n int         // the items are first to first+n-1
	labels   [][]uint32  // by item
	at       [][]int     // by modality: the item of each row, counted from first
	x        [][]Vector  // by modality, in the form of the modality
	phi      [][]float32 // by modality: features; nil unless blocks got maps
}

// rows returns the number of items of the block that have modality t.
func (b *block) rows(t int) int { return len(b.at[t]) }

// reader turns a source into blocks. It belongs to the goroutine of Train.
type reader struct {
	modalities []Modality
	src        Source
	engine     Engine                                // does the passes, if there is no source
	items      int                                   // counted by the first pass; -1 before it
	first      int                                   // the number of the first item that src yields
	unlabelled bool                                  // items may be without labels
	progress   func(stage string, done, total int64) // Options.Progress; may be nil
}

// blocks reads the source once and calls f with each block, in order. If maps is not
// nil it computes phi first. One goroutine computes and calls f for a block while the
// next block is read. blocks checks the context and reports progress at each block.
func (r *reader) blocks(ctx context.Context, stage string, maps []*featureMap, f func(*block) error) error {
	w := &blockWorker{maps: maps, scratch: make([]mapScratch, workerCount()), f: f}
	for _, m := range maps {
		w.phi = append(w.phi, make([]float32, blockItems*m.size()))
	}
	// The worker must not outlive the pass, even if the source panics.
	defer w.wait()
	done := 0
	finish := func() error { // waits for the block that is under way
		err := w.wait()
		if err == nil && done > 0 && r.progress != nil {
			r.progress(stage, int64(done), int64(max(r.items, 0)))
		}
		return err
	}
	// Two blocks change places: one is read while the worker has the other.
	b, next := r.newBlock(), r.newBlock()
	b.first = r.first
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		w.start(b)
		done = b.first + b.n
		b, next = next, b
		b.first, b.n = done, 0
		for t := range b.x {
			b.x[t], b.at[t] = b.x[t][:0], b.at[t][:0]
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
				return err
			}
		}
	}
	if b.n > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if err := finish(); err != nil {
		return err
	}
	if r.items >= 0 && done != r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has %d now: it must yield the same items each time", ErrMismatch, r.items, done)
	}
	return ctx.Err()
}

// sum reads the source once and returns the sums of a pass over it. Unless each is nil it is called with each
// block as well, after it has been added. An engine does the pass elsewhere, and calls nothing.
func (r *reader) sum(ctx context.Context, p *Pass, each func(*block) error) (sums, error) {
	if r.engine != nil {
		b, err := r.engine.Sum(ctx, p)
		if err != nil {
			return nil, err
		}
		return p.unmarshal(b)
	}
	t := &tree{}
	leaf, of := p.sums(), r.first // the leaf, and the item that it begins with
	err := r.blocks(ctx, p.Stage(), p.maps(), func(b *block) error {
		if b.first-of == LeafItems {
			t.add(0, leaf)
			if leaf, of = t.reuse(), b.first; leaf == nil {
				leaf = p.sums()
			}
		}
		if err := leaf.add(b); err != nil || each == nil {
			return err
		}
		return each(b)
	})
	if err != nil {
		return nil, err
	}
	t.add(0, leaf)
	return t.root(), nil
}

// newBlock returns an empty block. Its vectors keep their memory from one use to the next.
func (r *reader) newBlock() *block {
	return &block{
		labels: make([][]uint32, blockItems),
		at:     make([][]int, len(r.modalities)),
		x:      make([][]Vector, len(r.modalities)),
	}
}

// A blockWorker works on one block at a time, in a goroutine of its own. Its memory
// belongs to that goroutine from start to wait.
type blockWorker struct {
	maps    []*featureMap      // nil: no features are computed
	phi     [][]float32        // memory of block.phi, reused by each block
	scratch []mapScratch       // one for each goroutine of applyAll
	f       func(*block) error // called with each block
	result  chan error         // gets the error of the block; nil if no block is under way
}

// start begins work on a block. wait must have been called for the block before.
func (w *blockWorker) start(b *block) {
	result := make(chan error, 1)
	w.result = result
	go func() { result <- w.work(b) }()
}

// work computes the features of a block and calls f. A panic becomes an error.
func (w *blockWorker) work(b *block) (err error) {
	defer guard(&err, "in the numerics")
	for t, m := range w.maps {
		m.applyAll(w.phi[t], b.x[t], w.scratch)
	}
	b.phi = w.phi
	return w.f(b)
}

// wait waits for the block under way and returns its error, once.
func (w *blockWorker) wait() error {
	if w.result == nil {
		return nil
	}
	err := <-w.result
	w.result = nil
	return err
}

// add checks an example and copies it to the end of the block.
func (r *reader) add(b *block, ex Example) error {
	if r.items >= 0 && b.first+b.n >= r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has more now: it must yield the same items each time", ErrMismatch, r.items)
	}
	if r.items < 0 && b.first+b.n == math.MaxInt32 {
		return fmt.Errorf("%w: training takes at most %d items", ErrOption, math.MaxInt32)
	}
	if len(ex.Vectors) != len(r.modalities) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give the zero Vector for what an item lacks", ErrMismatch, len(ex.Vectors), len(r.modalities))
	}
	if len(ex.Labels) == 0 && !r.unlabelled {
		return fmt.Errorf("%w: the item has none: leave unlabelled items out of the training", ErrNoLabels)
	}
	for i := 1; i < len(ex.Labels); i++ {
		if ex.Labels[i-1] >= ex.Labels[i] {
			return fmt.Errorf("%w: label %d follows %d: labels must be sorted and distinct", ErrOption, ex.Labels[i], ex.Labels[i-1])
		}
	}
	for t, x := range ex.Vectors {
		if !x.Present() {
			continue
		}
		m := r.modalities[t]
		if err := checkVector(m, x); err != nil {
			return err
		}
		row := len(b.x[t])
		if row < cap(b.x[t]) {
			b.x[t] = b.x[t][:row+1] // keeps the memory of that row
		} else {
			b.x[t] = append(b.x[t], Vector{})
		}
		b.x[t][row].set(m, x)
		b.at[t] = append(b.at[t], b.n)
	}
	b.labels[b.n] = append(b.labels[b.n][:0], ex.Labels...)
	b.n++
	return nil
}
