package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/model/sum"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/model"
)

// A training reads the items of a shard several times, and must see the same ones. So it stays with one
// replica, and with a snapshot of it. A shard sends sums over its items (sum.Pass); only a sample of items
// leaves it.

// sessions are the trainings that read the replica, by id.
type sessions struct {
	mu  sync.Mutex
	all map[wire.ID]*session
}

// A session is one training that reads the replica.
type session struct {
	snap *db.Snapshot
	c    *db.Collection
	mu   sync.Mutex  // one pass at a time
	end  *time.Timer // ends the session after idle
}

// idle is how long a session waits for the next request. Its snapshot keeps disk space of replaced data.
const idle = 15 * time.Minute

// Survey begins a session and describes its training items.
func (r *Replica) Survey(ctx context.Context, id wire.ID, collection string,
	from uint64) (*wire.Training, error) {
	state, err := r.caughtUp(ctx, from)
	if err != nil {
		return nil, err
	}
	snap, err := state.DB.Snapshot()
	if err != nil {
		return nil, err
	}
	c, err := snap.Collection(collection)
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	s := &session{snap: snap, c: c}
	survey, err := s.survey(ctx)
	if err != nil {
		return nil, errors.Join(err, snap.Close())
	}
	r.learning.mu.Lock()
	defer r.learning.mu.Unlock()
	if r.learning.all == nil {
		r.learning.all = map[wire.ID]*session{}
	}
	r.learning.all[id] = s
	s.end = time.AfterFunc(idle, func() { r.EndSession(id) })
	return survey, nil
}

// Model returns the file of a space's present model, as db.Collection.ExportModel writes it.
func (r *Replica) Model(ctx context.Context, collection string, space db.Space, from uint64) ([]byte, error) {
	state, err := r.caughtUp(ctx, from)
	if err != nil {
		return nil, err
	}
	c, err := state.DB.Collection(collection)
	if err != nil {
		return nil, err
	}
	if c, err = c.InSpace(space, 0); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = c.ExportModel(ctx, &b)
	return b.Bytes(), err
}

// EndSession ends a session, if it exists.
func (r *Replica) EndSession(id wire.ID) {
	r.learning.mu.Lock()
	s := r.learning.all[id]
	delete(r.learning.all, id)
	r.learning.mu.Unlock()
	if s == nil {
		return
	}
	s.end.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.snap.Close(); err != nil && !errors.Is(err, db.ErrClosed) {
		r.Log.Warn("ending a training", "error", err)
	}
}

func (s *session) survey(ctx context.Context) (*wire.Training, error) {
	schema, err := s.c.Schema()
	if err != nil {
		return nil, err
	}
	labels, err := s.c.Labels()
	if err != nil {
		return nil, err
	}
	labelled, has := roaring.New(), make([]*roaring.Bitmap, len(schema.Modalities))
	for i := range has {
		has[i] = roaring.New()
	}
	n := uint32(0)
	for it, err := range s.c.Items(ctx, "") {
		if err != nil {
			return nil, err
		}
		if len(it.Labels) > 0 {
			labelled.Add(n)
		}
		for i, m := range schema.Modalities {
			if vectorOf(it, m.Name).Present() {
				has[i].Add(n)
			}
		}
		n++
	}
	out := &wire.Training{Items: int(n), Labels: labels, Schema: schema}
	for _, rows := range append([]*roaring.Bitmap{labelled}, has...) {
		rows.RunOptimize()
		b, err := rows.ToBytes()
		if err != nil {
			return nil, err
		}
		out.Has = append(out.Has, b)
	}
	out.Labelled, out.Has = out.Has[0], out.Has[1:]
	return out, nil
}

// vectorOf returns the vector of an item in a modality.
func vectorOf(it *db.Item, modality string) model.Vector {
	if x, ok := it.Vectors[modality]; ok {
		return model.Dense(x)
	}
	if x, ok := it.Sparse[modality]; ok {
		return model.Sparse(x.Index, x.Value)
	}
	return model.Vector{}
}

// errNoSession says that a session is unknown or has ended.
var errNoSession = errors.New(
	"fddhdb: the training is not known here: it has been silent for long, or the node was started again")

// Sum returns the sum of a pass over a stretch of items of a session, in binary form.
func (r *Replica) Sum(ctx context.Context, id wire.ID, p *sum.Pass, o *wire.SumOrder,
	of wire.Stretch) ([]byte, error) {
	r.learning.mu.Lock()
	s := r.learning.all[id]
	r.learning.mu.Unlock()
	if s == nil {
		return nil, errNoSession
	}
	s.end.Stop()
	defer s.end.Reset(idle)
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := roaring.New()
	if _, err := rows.ReadFrom(bytes.NewReader(of.Items)); err != nil {
		return nil, fmt.Errorf("%w: items of a sum: %w", db.ErrInvalid, err)
	}
	ids := make(map[string]uint32, len(o.Labels))
	for i, l := range o.Labels {
		ids[l] = uint32(i)
	}
	return p.Sum(ctx, of.First, s.examples(ctx, rows, o.Modalities, ids, o.Known))
}

// examples yields the items of a session in rows. If known is not 0, an item also needs a label with a number
// below known.
func (s *session) examples(ctx context.Context, rows *roaring.Bitmap, modalities []string,
	ids map[string]uint32, known int) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		ex := model.Example{Vectors: make([]model.Vector, len(modalities))}
		n := uint32(0)
		for it, err := range s.c.Items(ctx, "") {
			if err != nil {
				yield(model.Example{}, err)
				return
			}
			if n++; !rows.Contains(n - 1) {
				continue
			}
			for i, name := range modalities {
				ex.Vectors[i] = vectorOf(it, name)
			}
			ex.Labels = ex.Labels[:0]
			for _, l := range it.Labels {
				id, known := ids[l]
				if !known {
					yield(model.Example{}, fmt.Errorf("%w: the training does not know the label %q",
						db.ErrInvalid, l))
					return
				}
				ex.Labels = append(ex.Labels, id)
			}
			slices.Sort(ex.Labels)
			if known > 0 && (len(ex.Labels) == 0 || ex.Labels[0] >= uint32(known)) {
				continue
			}
			if !yield(ex, nil) {
				return
			}
		}
	}
}
