package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
)

// The log says which vectors are to be indexed (wire.IndexVectors). Each replica makes its own index of them
// beside the log: an index takes its time, and decides how fast an answer is and what an approximate one
// lacks, never what the shard has.

// indexMark returns the name of the mark that says that the vectors of a modality are to be indexed.
func indexMark(collection, modality string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", collection, modality)) // names may be as long as a mark's
	return IndexMarks + hex.EncodeToString(sum[:16])
}

// index notes in the batch what an operation says about an index.
func (s *State) index(b *db.Batch, op *wire.Op) error {
	c, err := s.DB.Collection(op.Collection)
	if err != nil {
		return err
	}
	name := indexMark(op.Collection, op.Modality)
	if op.Kind == wire.DropIndex {
		if _, err := s.DB.Mark(name); err != nil {
			return fmt.Errorf("index of the vectors of modality %q of collection %q: %w", op.Modality,
				op.Collection, err)
		}
		b.Mark(name, nil)
		return nil
	}
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(schema.Modalities, func(m db.Modality) bool { return m.Name == op.Modality })
	switch {
	case i < 0:
		return fmt.Errorf("%w: collection %q has no modality %q", db.ErrInvalid, op.Collection, op.Modality)
	case schema.Modalities[i].Sparse:
		return fmt.Errorf("%w: modality %q of collection %q is sparse: only dense vectors can be indexed",
			db.ErrInvalid, op.Modality, op.Collection)
	case !(op.Recall > 0 && op.Recall <= 1):
		return fmt.Errorf("%w: recall %v: above 0, up to 1, are possible", db.ErrInvalid, op.Recall)
	}
	return index{op.Collection, op.Modality, op.Recall}.mark(b)
}

// mark notes in the batch that the index is to be there.
func (x index) mark(b *db.Batch) error {
	value, err := json.Marshal(x)
	b.Mark(indexMark(x.Collection, x.Modality), value)
	return err
}

// markIndexes notes in the batch that the indexes that a collection has are to be there.
func markIndexes(b *db.Batch, c *db.Collection) error {
	stats, err := c.Stats(context.Background())
	if err != nil {
		return err
	}
	for _, x := range stats.VectorIndexes {
		if err == nil && x.Complete {
			err = index{c.Name(), x.Modality, x.Recall}.mark(b)
		}
	}
	return err
}

// dropIndexes notes in the batch that nothing of a collection is to be indexed.
func (s *State) dropIndexes(ctx context.Context, b *db.Batch, collection string) error {
	all, err := s.indexes(ctx)
	for _, x := range all {
		if x.Collection == collection {
			b.Mark(indexMark(collection, x.Modality), nil)
		}
	}
	return err
}

// An index is an index that is to be there, as a mark has it.
type index struct {
	Collection string  `json:"collection"`
	Modality   string  `json:"modality"`
	Recall     float64 `json:"recall"`
}

// indexes returns the indexes that the log asks for.
func (s *State) indexes(ctx context.Context) (all []index, err error) {
	for m, err := range s.DB.Marks(ctx, IndexMarks) {
		if err != nil {
			return nil, err
		}
		var x index
		if err := json.Unmarshal(m.Value, &x); err != nil {
			return nil, fmt.Errorf("%w: mark %s: %w", db.ErrCorrupt, m.Name, err)
		}
		all = append(all, x)
	}
	return all, nil
}

// of reports whether the index that a database has is this one.
func (x index) of(has report.VectorIndex) bool {
	return has.Complete && has.Damage == "" && has.Modality == x.Modality && has.Recall == x.Recall
}

// ShareTurns makes the replicas of a node take turns at what needs a processor for long and can wait: indexes
// of vectors, and the daily digests. Call it before the other methods.
func (s *State) ShareTurns(turns chan struct{}) { s.turns, s.daily.turns = turns, turns }

// Indexing gets a value when MakeIndexes may have something to do.
func (s *State) Indexing() <-chan struct{} { return s.indexing.work }

// An indexing is what MakeIndexes is doing.
type indexing struct {
	work chan struct{} // see Indexing

	mu       sync.Mutex
	asked    int              // operations about indexes so far
	problems map[string]error // by indexMark: why the latest try has failed
	making   string           // the mark of the index that is being made
	cancel   context.CancelFunc
}

// ask has MakeIndexes look what an operation about an index has changed. An index that is being made by what
// was said before is given up.
func (x *indexing) ask(op *wire.Op) {
	mark := indexMark(op.Collection, op.Modality)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked++
	delete(x.problems, mark)
	if x.making == mark {
		x.cancel()
	}
	select {
	case x.work <- struct{}{}:
	default:
	}
}

// begin notes that an index is being made, unless an operation has come since asked.
func (x *indexing) begin(ctx context.Context, mark string, asked int) (context.Context, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.asked != asked {
		return nil, false
	}
	ctx, x.cancel = context.WithCancel(ctx)
	x.making = mark
	delete(x.problems, mark)
	return ctx, true
}

// end notes that an index has been made, or why not. A try that an operation has ended is no problem.
func (x *indexing) end(asked int, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.cancel(); err != nil && x.asked == asked {
		x.problems[x.making] = err
	}
	x.making = ""
}

// errNothing says what an index waits for.
var errNothing = errors.New(
	"no item of the shard has such a vector yet: its index follows within a minute of the first")

// MakeIndexes makes the indexes that are to be there, and drops those that are not. It takes some seconds for
// each 100,000 vectors, beside reads and writes. Only one goroutine may call it.
func (s *State) MakeIndexes(ctx context.Context) (errs error) {
	s.indexing.mu.Lock()
	asked := s.indexing.asked
	s.indexing.mu.Unlock()
	wished, err := s.indexes(ctx)
	if err != nil {
		return err
	}
	names, err := s.DB.Collections()
	if err != nil {
		return err
	}
	for _, name := range names {
		c, err := s.DB.Collection(name)
		if errors.Is(err, db.ErrNotFound) { // dropped meanwhile
			continue
		} else if err != nil {
			return err
		}
		has, err := c.Stats(ctx)
		if err != nil {
			return err
		}
		for _, x := range has.VectorIndexes {
			if x.Complete && !slices.ContainsFunc(wished, func(w index) bool {
				return w.Collection == name && w.Modality == x.Modality
			}) {
				errs = errors.Join(errs, c.DropVectorIndex(ctx, x.Modality))
			}
		}
		for _, w := range wished {
			if w.Collection != name || slices.ContainsFunc(has.VectorIndexes, w.of) {
				continue
			}
			more, err := s.makeIndex(ctx, c, w, asked)
			if err != nil && !errors.Is(err, errNothing) {
				errs = errors.Join(errs, fmt.Errorf("collection %q, modality %q: %w", name, w.Modality, err))
			}
			if !more {
				return errs
			}
		}
	}
	return errs
}

// makeIndex makes an index, when it is its turn. more is false if an operation has come meanwhile that
// changes which indexes the log asks for.
func (s *State) makeIndex(ctx context.Context, c *db.Collection, x index, asked int) (more bool, err error) {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return false, nil
	}
	defer func() { <-s.turns }()
	making, ok := s.indexing.begin(ctx, indexMark(x.Collection, x.Modality), asked)
	if !ok {
		return false, nil
	}
	defer func() { s.indexing.end(asked, err) }() // also of a panic
	_, err = c.IndexVectors(making, db.IndexOptions{Modality: x.Modality, Recall: x.Recall})
	switch {
	case errors.Is(err, db.ErrInvalid), errors.Is(err, db.ErrNotFound): // or what there was has just gone
		return true, errNothing
	case err != nil && making.Err() != nil:
		return false, nil
	}
	return true, err
}

// Indexes returns the state of the indexes of a collection that are to be there.
func (s *State) Indexes(ctx context.Context, c *db.Collection) (all []wire.Index, err error) {
	wished, err := s.indexes(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := c.Stats(ctx)
	if err != nil {
		return nil, err
	}
	has := stats.VectorIndexes
	s.indexing.mu.Lock()
	defer s.indexing.mu.Unlock()
	for _, w := range wished {
		if w.Collection != c.Name() {
			continue
		}
		out := wire.Index{Modality: w.Modality, Recall: w.Recall}
		if i := slices.IndexFunc(has, w.of); i >= 0 {
			out.Complete, out.Entries = true, has[i].Entries
		} else if err := s.indexing.problems[indexMark(c.Name(), w.Modality)]; err != nil {
			out.Problem = err.Error()
		}
		all = append(all, out)
	}
	return all, nil
}
