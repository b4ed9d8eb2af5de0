package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/merge"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Query is a db.Query for a cluster.
//
// Answers are as from one database with all items: the first K of all shards, by distance, then score, then
// similarity. By codes they are exact. By an index of vectors (IndexVectors) items may be missing, and a page
// behind a cursor may come from another replica, which misses others. Ties come by age within a shard, as in
// one database, and by key across shards. RerankAuto is RerankProjection if shards would choose differently.
// The row in a hit counts within its shard only: ignore it. By a Key without From no vector orders the items
// of a code.
type Query struct {
	db.Query

	// Space is the space of codes to search; 0 is the active one.
	Space db.Space

	// AllowPartial accepts an answer without shards that do not answer; Result.Missing names them. Otherwise
	// a missing shard is a *ShardError.
	AllowPartial bool

	revision uint32 // of Space, that encodes the query; 0 is the one in use
}

// A Result is the answer to a Query. Total and facets count only the shards that answered.
type Result struct {
	db.Result
	Missing []int // shards that did not answer
}

// MarshalJSON implements json.Marshaler: the object of db.Result, plus "missing" if shards are missing.
func (r Result) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(r.Result)
	if err != nil || len(r.Missing) == 0 {
		return b, err
	}
	missing, err := json.Marshal(r.Missing)
	if err != nil {
		return nil, err
	}
	return slices.Concat(bytes.TrimSuffix(b, []byte("}")), []byte(`,"missing":`), missing, []byte("}")), nil
}

// Search returns the K nearest items, see db.Collection.Search. To go on behind an answer, set After to its
// Next; a shard that was missing there joins at the current position.
func (c *Collection) Search(ctx context.Context, q Query) (*Result, error) {
	return c.search(ctx, q, wire.Request{Verb: wire.Search})
}

// SearchRadius returns the K nearest items within a Hamming distance, and in Total the number of all items
// within it; see db.Collection.SearchRadius.
func (c *Collection) SearchRadius(ctx context.Context, q Query, radius int) (*Result, error) {
	return c.search(ctx, q, wire.Request{Verb: wire.Within, Radius: radius})
}

// Count returns the number of items that match an expression, see db.Query.Where; an empty one matches all.
func (c *Collection) Count(ctx context.Context, where string, args ...any) (int, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	own := slices.Clone(args) // a node in this program may read them after this has returned
	answers, err := c.all(ctx, func(int) wire.Request {
		return wire.Request{Verb: wire.Count, Where: where, Args: own}
	})
	return foundIn(answers), err
}

func foundIn(answers []*wire.Answer) (n int) {
	for _, a := range answers {
		if a != nil {
			n += a.N
		}
	}
	return n
}

// Facets counts items by label or by the values of a field, see db.Collection.Facets.
func (c *Collection) Facets(ctx context.Context, q db.FacetQuery) (*db.Facets, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	all := q
	all.Args = slices.Clone(q.Args)
	all.Limit = 0 // a value that one shard cuts off may be among the first overall
	answers, err := c.all(ctx,
		func(int) wire.Request { return wire.Request{Verb: wire.Facets, Facets: &all} })
	if err != nil {
		return nil, err
	}
	parts := make([]*db.Facets, len(answers))
	for i, a := range answers {
		parts[i] = a.Facets
	}
	return merge.Facets(parts, q.Limit)
}

// Labels returns the labels of the items, in order.
func (c *Collection) Labels(ctx context.Context) ([]string, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, err := c.all(ctx, func(int) wire.Request { return wire.Request{Verb: wire.Labels} })
	if err != nil {
		return nil, err
	}
	return namesIn(answers), nil
}

// namesIn returns the names in answers, each once and in order; those of missing shards are nil.
func namesIn(answers []*wire.Answer) []string {
	all := map[string]bool{}
	for _, a := range answers {
		if a == nil {
			continue
		}
		for _, name := range a.Names {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// partialFor is how long a partial answer waits for silent shards.
const partialFor = 2 * time.Second

// all asks all shards in parallel.
func (c *Collection) all(ctx context.Context,
	request func(shard int) wire.Request) (answers []*wire.Answer, err error) {
	answers, _, err = c.scatter(ctx, false, nil, request)
	return answers, err
}

// scatter asks all shards in parallel, except the shards for which skip, if not nil, is true. A silent shard
// is an error. With partial it is missing instead, as long as another shard answers.
func (c *Collection) scatter(ctx context.Context, partial bool, skip func(shard int) bool,
	request func(shard int) wire.Request) (answers []*wire.Answer, missing []int, err error) {
	requests := make([]*wire.Request, c.client.Shards())
	asked := 0
	for shard := range requests {
		if skip != nil && skip(shard) {
			continue
		}
		asked++
		q := request(shard)
		q.Collection = c.name
		requests[shard] = c.client.prepare(shard, &q)
	}
	if partial { // do not wait longer for silent shards
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, partialFor)
		defer cancel()
	}
	answers, errs := c.client.router.AskAll(ctx, requests)
	for shard, a := range answers {
		c.client.learn(shard, a)
	}
	for shard, err := range errs {
		var silent *ShardError
		switch {
		case err == nil:
		case partial && errors.As(err, &silent):
			answers[shard] = nil
			missing = append(missing, shard)
		default:
			return nil, nil, err
		}
	}
	if asked > 0 && len(missing) == asked {
		return nil, nil, errs[missing[0]]
	}
	return answers, missing, nil
}

// search asks all shards for the first hits behind the cursor, and merges them.
func (c *Collection) search(ctx context.Context, q Query, r wire.Request) (*Result, error) {
	if q.Words != "" {
		return nil, cannot("search by words", "search by a vector, a key or a code, with CONTAINS in Where")
	}
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	from, err := merge.ParseCursor(q.After, c.client.Shards())
	if err != nil {
		return nil, err
	}
	want := merge.Want{K: cmp.Or(q.K, 10), Self: q.Key, Within: r.Verb == wire.Within}
	in := asked{Query: q.Query, space: q.Space, revision: q.revision}
	in.K, in.Include, in.After = want.K, in.Include|db.IncludeCursor, ""
	if len(q.Facets) > 0 && !want.Within {
		in.Include |= db.IncludeLabels | db.IncludeFields // merge counts these
	}
	if basis, ok := from.Basis(); ok {
		in.space, in.revision, in.Rerank = basis.Space, basis.Revision, basis.Rerank
	}
	queries, err := c.queries(ctx, in)
	if err != nil {
		return nil, err
	}
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		skip := from.Ended
		if want.Within { // the totals and facets of ended shards count, too
			skip = nil
		}
		answers, missing, err := c.scatter(ctx, q.AllowPartial, skip, func(shard int) wire.Request {
			own := r
			own.Query, own.After = queries(shard), from.After(shard)
			if from.Ended(shard) {
				few := *own.Query
				few.K, own.Query = 1, &few
			}
			return own
		})
		if _, later := from.Basis(); later && in.revision > 0 && errors.Is(err, db.ErrNotFound) {
			return nil, fmt.Errorf("%w: %w: search from the start", ErrMoved, err)
		}
		if err != nil {
			return nil, err
		}
		results := make([]*db.Result, len(answers))
		for i, a := range answers {
			if a != nil && a.Result != nil {
				results[i] = a.Result.Result()
			}
		}
		page, _, err := merge.Page(results, from, want)
		var differ *merge.MismatchError
		if !errors.As(err, &differ) {
			if err != nil {
				return nil, err
			}
			strip(page, q.Include)
			return &Result{Result: *page, Missing: missing}, nil
		}
		if differ.Cursor != nil {
			return nil, fmt.Errorf("%w: %w: search from the start", ErrMoved, differ)
		}
		if agree(&in, differ) {
			if queries, err = c.queries(ctx, in); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w: %w", ErrMoved, differ, context.Cause(ctx))
		case <-time.After(wait):
		}
	}
}

// An asked query is a query as shards are asked it: in a space, and by a revision, that all of them have.
type asked struct {
	db.Query
	space    db.Space
	revision uint32
}

func (q asked) wire() *wire.Query {
	w := wire.QueryOf(q.Query)
	w.Space, w.Revision = q.space, q.revision
	return w
}

// agree changes a query so that shards which answered it differently may agree, and reports whether it did.
// While one shard after the other activates a space, all shards still have the space before; the same holds
// for revisions. So agree asks for the oldest one. If shards chose different orders, it names one.
func agree(q *asked, differ *merge.MismatchError) (changed bool) {
	oldest, orders := differ.Bases[0].Space, map[db.Rerank]bool{}
	least, most := differ.Bases[0].Revision, differ.Bases[0].Revision
	same := true
	for _, b := range differ.Bases {
		same = same && b.Space == differ.Bases[0].Space
		oldest = min(oldest, b.Space)
		least, most = min(least, b.Revision), max(most, b.Revision)
		orders[b.Rerank] = true
	}
	if same && least > 0 && least < most && q.revision != least {
		q.space, q.revision = oldest, least
		return true
	}
	if !same && oldest > 0 && q.space != oldest {
		q.space, q.revision = oldest, 0
		return true
	}
	if same && len(orders) > 1 && q.Rerank == db.RerankAuto {
		q.Rerank = db.RerankProjection
		return true
	}
	return false
}

// strip removes parts of the hits that were fetched only to count facets.
func strip(page *db.Result, include db.Include) {
	for i := range page.Hits {
		h := &page.Hits[i]
		h.Cursor = ""
		switch {
		case h.Item == nil:
		case include&^(db.IncludeCursor|db.IncludeDistances|db.IncludeExplain) == 0:
			h.Item = nil
		default:
			if include&db.IncludeLabels == 0 {
				h.Item.Labels = nil
			}
			if include&db.IncludeFields == 0 {
				h.Item.Fields = nil
			}
		}
	}
}

// queries returns the query for each shard; shards share it, so do not change it. A query by key goes
// unchanged to the shard with the item. The other shards get the item's vector instead, or else its code.
func (c *Collection) queries(ctx context.Context, q asked) (func(shard int) *wire.Query, error) {
	if q.Key == "" {
		all := q.wire()
		return func(int) *wire.Query { return all }, nil
	}
	owner := c.client.of(q.Key)
	a, err := c.client.ask(ctx, owner, wire.Request{Verb: wire.Get, Collection: c.name, Key: q.Key,
		Query: asked{space: q.space}.wire()})
	if err != nil {
		return nil, err
	}
	it := a.Item.Item()
	other := q
	other.Key, other.ExcludeSelf = "", false
	from := q.From
	if from == "" && it.Code == nil && len(it.Vectors)+len(it.Sparse) == 1 { // there is no model
		for name := range it.Vectors {
			from = name
		}
		for name := range it.Sparse {
			from = name
		}
	}
	vector, dense := it.Vectors[from]
	sparse, is := it.Sparse[from]
	switch {
	case from != "" && dense:
		other.From, other.Vector = from, vector
	case from != "" && is:
		other.From, other.Sparse = from, &sparse
	default:
		if q.space == db.ActiveSpace && it.Code != nil {
			// A code belongs to one space. Another space may be activated right now, so the query names the
			// space for all shards.
			about, err := c.client.ask(ctx, owner, wire.Request{Verb: wire.Describe, Collection: c.name})
			if err != nil {
				return nil, err
			}
			for _, s := range about.About.Spaces {
				if s.State == report.SpaceActive && q.space == db.ActiveSpace {
					q.space = s.Space
					return c.queries(ctx, q)
				}
			}
		}
		other.From, other.Code = "", it.Code
	}
	its, others := q.wire(), other.wire()
	return func(shard int) *wire.Query {
		if shard == owner {
			return its
		}
		return others
	}, nil
}

// onAll applies an operation on every shard, in parallel. The result of each shard goes through done, unless
// done is nil.
func (c *Client) onAll(ctx context.Context, op func() *wire.Op, done func(error) error) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	errs := make([]error, c.Shards())
	var all sync.WaitGroup
	for shard := range errs {
		all.Go(func() {
			errs[shard] = c.do(ctx, shard, op())
			if done != nil {
				errs[shard] = done(errs[shard])
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
