package encoder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db"
)

// A Stored is an encoder that a collection has and that may run.
type Stored struct {
	Program
	Standby bool // see db.Encoder
}

// A Lookup returns the encoders of a collection that may run, as they are stored now.
type Lookup func(ctx context.Context, collection string) ([]Stored, error)

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
	lookup Lookup

	mu      sync.Mutex         // guards what follows
	byUse   map[string]*pooled // by collection, modality and input
	closed  bool
	closing sync.WaitGroup // of encoders that another one has replaced
}

// pooled is an encoder of a pool.
type pooled struct {
	*Encoder
	turn    chan struct{} // has an element while an input is encoded
	waiting atomic.Int32

	mu    sync.Mutex        // guards kept and order
	kept  map[string]Vector // by input
	order []string          // of kept, the oldest first
}

// NewPool returns a pool that has started no program yet. It looks up the encoders of a collection with each
// request, so that one that is stored later is used from then on, and ends the one before. The caller closes
// the pool.
func NewPool(lookup Lookup) *Pool { return &Pool{lookup: lookup, byUse: map[string]*pooled{}} }

// Modalities returns the modalities of a collection whose vectors can be made of texts, or of files, in their
// order, but for those whose encoder stands by.
func (p *Pool) Modalities(ctx context.Context, collection string, input db.EncoderInput) []string {
	names := []string{}
	all, _ := p.lookup(ctx, collection) // nothing can be made where an error is
	for _, s := range all {
		if s.input() == input && !s.Standby {
			names = append(names, s.Modality)
		}
	}
	return names
}

// encoder returns the encoder of a collection, or ErrNone.
func (p *Pool) encoder(ctx context.Context, collection, modality string,
	input db.EncoderInput) (*pooled, error) {
	all, err := p.lookup(ctx, collection)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s Stored) bool { return s.Modality == modality && s.input() == input })
	if i < 0 {
		return nil, ErrNone
	}
	use := fmt.Sprintf("%q %q %q", collection, modality, input)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, db.ErrClosed
	}
	e, now := p.byUse[use], &all[i].Program
	if e != nil && slices.Equal(e.Command, now.Command) && slices.Equal(e.Fingerprint, now.Fingerprint) {
		return e, nil
	}
	if e != nil { // its model may hold much memory
		p.closing.Go(e.Close)
	}
	e = &pooled{Encoder: New(*now), turn: make(chan struct{}, 1), kept: map[string]Vector{}}
	p.byUse[use] = e
	return e, nil
}

// Encode returns the vector, with dim dimensions, of content: a text, or the path of a file. Its errors are
// ErrNone, ErrBusy, the error of the context, and the errors of Lookup and Encoder.Encode. The caller must
// not change the vector, as the pool keeps it. For a file, Encode waits for the program even when the context
// ends: the caller may delete the file as soon as Encode has returned.
func (p *Pool) Encode(ctx context.Context, collection, modality string, input db.EncoderInput, dim int,
	content string) (Vector, error) {
	e, err := p.encoder(ctx, collection, modality, input)
	if err != nil {
		return Vector{}, err
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
	p.mu.Lock()
	all := p.byUse
	p.byUse, p.closed = nil, true
	p.mu.Unlock()
	for _, e := range all {
		e.Close()
	}
	p.closing.Wait()
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
