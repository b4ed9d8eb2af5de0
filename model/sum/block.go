package sum

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

// BlockItems is the number of items of a block; two blocks are in memory at a time.
const BlockItems = 512

// A Source yields the training items. Every call of Examples yields the same items in
// the same order, because training reads them several times instead of holding them.
// All of them have labels. Training keeps no slice of an example once it has asked for
// the next one.
type Source interface {
	Examples(ctx context.Context) iter.Seq2[model.Example, error]
}

// A Block is a run of consecutive training items. Row r of x[t] and phi[t] belongs to
// item first+at[t][r]; items without modality t have no row. All matrices have items as
// rows; the paper has them as columns.
type Block struct {
	First, N int              // the items are first to first+n-1
	Labels   [][]uint32       // by item
	At       [][]int          // by modality: the item of each row, counted from first
	X        [][]model.Vector // by modality, in the form of the modality
	Phi      [][]float32      // by modality: features; nil unless blocks got maps
}

// Rows returns the number of items of the block that have modality t.
func (b *Block) Rows(t int) int { return len(b.At[t]) }

// Reader turns a source into blocks. It belongs to the goroutine of Train.
type Reader struct {
	Modalities []model.Modality
	Source     Source
	Engine     Engine                                // does the passes, if there is no source
	first      int                                   // the number of the first item that src yields
	unlabelled bool                                  // items may be without labels
	Progress   func(stage string, done, total int64) // Options.Progress; may be nil

	counted bool // a pass has counted the items
	items   int  // their number; 0 before
}

// Blocks reads the source once and calls f with each block, in order. If maps is not
// nil it computes phi first. One goroutine computes and calls f for a block while the
// next block is read. blocks checks the context and reports progress at each block.
func (r *Reader) Blocks(ctx context.Context, stage string, maps []*model.Map, f func(*Block) error) error {
	w := &blockWorker{maps: maps, scratch: make([]model.MapScratch, parallel.Workers()), f: f}
	for _, m := range maps {
		w.phi = append(w.phi, make([]float32, BlockItems*m.Size()))
	}
	// The worker must not outlive the pass, even if the source panics.
	defer w.wait()
	done := 0
	finish := func() error { // waits for the block that is under way
		err := w.wait()
		if err == nil && done > 0 && r.Progress != nil {
			r.Progress(stage, int64(done), int64(r.items))
		}
		return err
	}
	// Two blocks change places: one is read while the worker has the other.
	b, next := r.newBlock(), r.newBlock()
	b.First = r.first
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		w.start(b)
		done = b.First + b.N
		b, next = next, b
		b.First, b.N = done, 0
		for t := range b.X {
			b.X[t], b.At[t] = b.X[t][:0], b.At[t][:0]
		}
		return nil
	}
	for ex, err := range r.Source.Examples(ctx) {
		if err == nil {
			err = r.add(b, ex)
		}
		if err != nil {
			return fmt.Errorf("training item %d: %w", b.First+b.N, err)
		}
		if b.N == BlockItems {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if b.N > 0 {
		if err := flush(); err != nil {
			return err
		}
	}
	if err := finish(); err != nil {
		return err
	}
	if r.counted && done != r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has %d now: it must yield the same items each time", model.ErrMismatch, r.items, done)
	}
	r.counted, r.items = true, done
	return ctx.Err()
}

// Sum reads the source once and returns the sums of a pass over it. Unless each is nil it is called with each
// block as well, after it has been added. An engine does the pass elsewhere, and calls nothing.
func (r *Reader) Sum(ctx context.Context, p *Pass, each func(*Block) error) (Sums, error) {
	if r.Engine != nil {
		b, err := r.Engine.Sum(ctx, p)
		if err != nil {
			return nil, err
		}
		return p.unmarshal(b)
	}
	t := &tree{}
	leaf, of := p.sums(), r.first // the leaf, and the item that it begins with
	err := r.Blocks(ctx, p.Stage(), p.maps(), func(b *Block) error {
		if b.First-of == LeafItems {
			t.add(0, leaf)
			if leaf, of = t.reuse(), b.First; leaf == nil {
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
func (r *Reader) newBlock() *Block {
	return &Block{
		Labels: make([][]uint32, BlockItems),
		At:     make([][]int, len(r.Modalities)),
		X:      make([][]model.Vector, len(r.Modalities)),
	}
}

// A blockWorker works on one block at a time, in a goroutine of its own. Its memory
// belongs to that goroutine from start to wait.
type blockWorker struct {
	maps    []*model.Map       // nil: no features are computed
	phi     [][]float32        // memory of block.phi, reused by each block
	scratch []model.MapScratch // one for each goroutine of ApplyAll
	f       func(*Block) error // called with each block
	result  chan error         // gets the error of the block; nil if no block is under way
}

// start begins work on a block. wait must have been called for the block before.
func (w *blockWorker) start(b *Block) {
	result := make(chan error, 1)
	w.result = result
	go func() { result <- w.work(b) }()
}

// work computes the features of a block and calls f. A panic becomes an error.
func (w *blockWorker) work(b *Block) (err error) {
	defer parallel.Guard(&err, "in the numerics")
	for t, m := range w.maps {
		m.ApplyAll(w.phi[t], b.X[t], w.scratch)
	}
	b.Phi = w.phi
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
func (r *Reader) add(b *Block, ex model.Example) error {
	if r.counted && b.First+b.N >= r.items {
		return fmt.Errorf("%w: the source had %d training items at first and has more now: it must yield the same items each time", model.ErrMismatch, r.items)
	}
	if b.First+b.N == math.MaxInt32 {
		return fmt.Errorf("%w: training takes at most %d items", model.ErrOption, math.MaxInt32)
	}
	if len(ex.Vectors) != len(r.Modalities) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give the zero Vector for what an item lacks", model.ErrMismatch, len(ex.Vectors), len(r.Modalities))
	}
	if len(ex.Labels) == 0 && !r.unlabelled {
		return fmt.Errorf("%w: the item has none: leave unlabelled items out of the training",
			model.ErrNoLabels)
	}
	for i := 1; i < len(ex.Labels); i++ {
		if ex.Labels[i-1] >= ex.Labels[i] {
			return fmt.Errorf("%w: label %d follows %d: labels must be sorted and distinct", model.ErrOption,
				ex.Labels[i], ex.Labels[i-1])
		}
	}
	for t, x := range ex.Vectors {
		if !x.Present() {
			continue
		}
		m := r.Modalities[t]
		if err := model.CheckVector(m, x); err != nil {
			return err
		}
		row := len(b.X[t])
		if row < cap(b.X[t]) {
			b.X[t] = b.X[t][:row+1] // keeps the memory of that row
		} else {
			b.X[t] = append(b.X[t], model.Vector{})
		}
		b.X[t][row].Set(m, x)
		b.At[t] = append(b.At[t], b.N)
	}
	b.Labels[b.N] = append(b.Labels[b.N][:0], ex.Labels...)
	b.N++
	return nil
}
