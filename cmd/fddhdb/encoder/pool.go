package encoder

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db"
)

// A Stored is an encoder that a collection has.
type Stored struct {
	Program
	Collection string
}

// Errors of a pool.
var (
	ErrNone = errors.New("no encoder makes vectors of this") // for this collection, modality and input
	ErrBusy = errors.New("too many requests wait for the encoder: ask again when some are answered")
)

const (
	keptVectors = 64 // inputs of one encoder whose vectors are kept
	maxWaiting  = 64 // inputs that may wait for one encoder
)

// A Pool is the encoders of collections. Each encodes an input at a time, in the turn of the requests. It
// keeps the latest vectors, as people and programs ask for the same input again. A Pool is safe for
// concurrent use.
type Pool struct {
	all   []*pooled
	byUse map[use]*pooled
	once  sync.Once
}

// use names what an encoder is for.
type use struct {
	collection, modality string
	input                db.EncoderInput
}

// pooled is an encoder of a pool.
type pooled struct {
	*Encoder
	use
	turn    chan struct{} // has an element while an input is encoded
	waiting atomic.Int32

	mu    sync.Mutex        // guards kept and order
	kept  map[string]Vector // by input
	order []string          // of kept, the oldest first
}

// NewPool returns a pool that has started no program yet. There is at most one encoder for each collection,
// modality and input. The caller closes the pool.
func NewPool(all []Stored) *Pool {
	p := &Pool{byUse: map[use]*pooled{}}
	for _, s := range all {
		e := &pooled{Encoder: New(s.Program), use: use{s.Collection, s.Modality, s.input()},
			turn: make(chan struct{}, 1), kept: map[string]Vector{}}
		p.all = append(p.all, e)
		p.byUse[e.use] = e
	}
	return p
}

// Modalities returns the modalities of a collection whose vectors can be made of texts, or of files, in the
// order in which the pool got them.
func (p *Pool) Modalities(collection string, input db.EncoderInput) []string {
	names := []string{}
	for _, e := range p.all {
		if e.collection == collection && e.input == input {
			names = append(names, e.modality)
		}
	}
	return names
}

// Has reports whether there is an encoder.
func (p *Pool) Has(collection, modality string, input db.EncoderInput) bool {
	return p.byUse[use{collection, modality, input}] != nil
}

// Encode returns the vector, with dim dimensions, of content: a text, or the path of a file. Its errors are
// ErrNone, ErrBusy, the error of the context, and those of Encoder.Encode. The caller must not change the
// vector, which the pool keeps. For a file, Encode waits for the program even when the context ends: the
// caller may delete the file as soon as Encode has returned.
func (p *Pool) Encode(ctx context.Context, collection, modality string, input db.EncoderInput, dim int,
	content string) (Vector, error) {
	e := p.byUse[use{collection, modality, input}]
	if e == nil {
		return Vector{}, ErrNone
	}
	if x, ok := e.known(content); ok {
		return x, x.Check(dim)
	}
	if err := e.enter(ctx); err != nil {
		return Vector{}, err
	}
	defer func() { <-e.turn }()
	if x, ok := e.known(content); ok { // the request before had the same input
		return x, x.Check(dim)
	}
	if input == db.InputFile {
		// Encode would return while the program goes on, and may read the file
		ctx = context.WithoutCancel(ctx)
	}
	all, err := e.Encode(ctx, dim, []string{content})
	if err != nil {
		return Vector{}, err
	}
	if input == db.InputText { // the path of a file does not tell what is in it
		e.keep(content, all[0])
	}
	return all[0], nil
}

// Close ends the programs, also those that encode. It may be called again.
func (p *Pool) Close() {
	p.once.Do(func() {
		for _, e := range p.all {
			e.Close()
		}
	})
}

// enter waits for the turn, unless many wait already. The caller takes the element out of turn again.
func (e *pooled) enter(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	default:
	}
	defer e.waiting.Add(-1)
	if e.waiting.Add(1) > maxWaiting {
		return ErrBusy
	}
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *pooled) known(content string) (Vector, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x, ok := e.kept[content]
	return x, ok
}

func (e *pooled) keep(content string, x Vector) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.Contains(e.order, content) {
		e.kept[content] = x
		e.order = append(e.order, content)
	}
	if len(e.order) > keptVectors {
		delete(e.kept, e.order[0])
		e.order = e.order[1:]
	}
}
