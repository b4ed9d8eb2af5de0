package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

var errNotOpen = fmt.Errorf("%w: it is not open", wire.ErrNotHere)

// Answer answers a request. It never returns nil.
func (r *Replica) Answer(ctx context.Context, q *wire.Request) *wire.Answer {
	a := &wire.Answer{}
	s := r.state.Load()
	if s == nil {
		a.Fault = wire.FaultOf(errNotOpen)
		return a
	}
	if !r.follows.Load() {
		a.Fault = wire.FaultOf(fmt.Errorf("%w: whether it has what the log has is not known", wire.ErrBehind))
		return a
	}
	from := *q
	from.From, from.Wait = max(q.From, r.reached.Load()), min(q.Wait, mostWait)
	if err := r.wait(ctx, s, &from); err != nil {
		a.Fault, a.Applied = wire.FaultOf(err), s.Position().Seq
		return a
	}
	err := answer(ctx, s, q, a)
	// Only now, so that the sequence covers everything in the answer: the client asks other replicas for at
	// least this sequence, and never gets an older state.
	shown, serr := s.Shown()
	a.Applied = shown
	a.Fault = wire.FaultOf(cmp.Or(err, serr))
	return a
}

// mostWait bounds how long a request may wait for the log, in milliseconds.
const mostWait = 10_000

// wait waits until the replica has applied the sequence that the request needs.
func (r *Replica) wait(ctx context.Context, s *apply.State, q *wire.Request) error {
	at := s.Position().Seq
	if at >= q.From {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Wait)*time.Millisecond)
	defer cancel()
	r.Journal.Wake()
	if err := s.Wait(ctx, q.From); err != nil {
		return fmt.Errorf("%w: at %d, and the request wants %d", wire.ErrBehind, s.Position().Seq, q.From)
	}
	return nil
}

// catchUp is how long an order waits for the log.
const catchUp = time.Minute

// caughtUp returns the state once the replica has applied a sequence that an order needs. One that does not
// apply its log has an error at once.
func (r *Replica) caughtUp(ctx context.Context, seq uint64) (*apply.State, error) {
	s := r.state.Load()
	if s == nil || !r.follows.Load() {
		return nil, errNotOpen
	}
	seq = max(seq, r.reached.Load())
	if why := r.trouble.Load(); why != nil && s.Position().Seq < seq {
		return nil, fmt.Errorf("%w: at %d of %d: %w", wire.ErrBehind, s.Position().Seq, seq, *why)
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	r.Journal.Wake()
	if err := s.Wait(ctx, seq); err != nil {
		return nil, fmt.Errorf("%w: at %d, and the order wants %d", wire.ErrBehind, s.Position().Seq, seq)
	}
	return s, nil
}

func answer(ctx context.Context, s *apply.State, q *wire.Request, a *wire.Answer) error {
	switch q.Verb {
	case wire.OutcomeOf:
		a.Outcome = s.Outcome(q.ID)
		return nil
	case wire.Digest:
		ctx, cancel := context.WithTimeout(ctx, time.Duration(q.Wait)*time.Millisecond)
		defer cancel()
		var err error
		a.Digests, err = s.Digests(ctx, q.ID)
		return err
	case wire.Collections:
		names, err := s.DB.Collections()
		a.Names = names
		return err
	}
	c, err := s.DB.Collection(q.Collection)
	if err != nil {
		return err
	}
	var query db.Query
	if q.Query != nil {
		query = q.Query.Query()
		query.After = cmp.Or(q.After, query.After)
		if c, err = c.InSpace(q.Query.Space, q.Query.Revision); err != nil {
			return err
		}
	}
	switch q.Verb {
	case wire.Get:
		it, err := c.Get(ctx, q.Key)
		a.Item = wire.ItemOf(it)
		return err
	case wire.Search:
		if q.Query == nil {
			return errNoQuery
		}
		res, err := c.Search(ctx, query)
		return fill(a, res, err)
	case wire.Within:
		if q.Query == nil {
			return errNoQuery
		}
		runs, err := c.SearchRadius(ctx, query, q.Radius)
		if err != nil {
			return err
		}
		defer runs.Close()
		k := query.K
		if k == 0 {
			k = 10
		}
		res, err := runs.First(ctx, k)
		return fill(a, res, err)
	case wire.Count:
		a.N, err = c.Count(ctx, q.Where, q.Args...)
		return err
	case wire.Facets:
		if q.Facets == nil {
			return errNoQuery
		}
		a.Facets, err = c.Facets(ctx, *q.Facets)
		return err
	case wire.Labels:
		a.Names, err = c.Labels()
		return err
	case wire.Describe:
		a.About, err = describe(ctx, s, c)
		return err
	}
	return fmt.Errorf("%w: a request with verb %d: the node is of an older version", db.ErrInvalid, q.Verb)
}

// describe returns the schema, the spaces and the indexes of a collection.
func describe(ctx context.Context, s *apply.State, c *db.Collection) (*wire.About, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	indexes, err := s.Indexes(ctx, c)
	if err != nil {
		return nil, err
	}
	about := &wire.About{Schema: schema, Indexes: indexes}
	for _, s := range spaces {
		about.Spaces = append(about.Spaces, wire.Space{Space: s.Space, State: s.State, Bits: s.Bits,
			Revision: s.Revision, Items: s.Items})
	}
	return about, nil
}

var errNoQuery = fmt.Errorf("%w: the request has no query", db.ErrInvalid)

func fill(a *wire.Answer, res *db.Result, err error) error {
	if err == nil && res == nil {
		err = errors.New("no result")
	}
	if err == nil {
		a.Result = wire.ResultOf(res)
	}
	return err
}
