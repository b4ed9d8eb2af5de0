package dbtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/oracle"
)

// An Oracle knows all items of a collection, and finds items by looking at each of
// them. It belongs to the state of the collection and the code space at which it was
// made. Compare it only with the same state: if others write or train meanwhile, use a
// snapshot for both. It is safe for concurrent use.
type Oracle struct {
	c        *db.Collection
	schema   db.Schema
	space    db.Space
	revision uint32
	items    []*db.Item // in database order
	byKey    map[string]*db.Item
	rows     map[string]uint32 // rows of the items that have a code, by key
}

// NewOracle reads all items of a collection. The collection may be of a snapshot or of
// a space (db.Collection.InSpace). The Oracle takes the memory of the items, vectors
// included. NewOracle returns errors of reading, and an error if the codes that
// searches use are not those of the items.
func NewOracle(ctx context.Context, c *db.Collection) (*Oracle, error) {
	o := &Oracle{c: c, byKey: map[string]*db.Item{}, rows: map[string]uint32{}}
	var err error
	if o.schema, err = c.Schema(); err != nil {
		return nil, err
	}
	stats, err := c.Stats()
	if err != nil {
		return nil, err
	}
	o.space, o.revision = stats.Space, stats.Revision
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return nil, err
		}
		o.items = append(o.items, it)
		o.byKey[it.Key] = it
	}
	return o, o.readCodes(ctx)
}

// readCodes reads rows, and compares codes with those of the items.
func (o *Oracle) readCodes(ctx context.Context) error {
	coded := 0
	for _, it := range o.items {
		if it.Code != nil {
			coded++
		}
	}
	for c, err := range o.c.Codes(ctx, "") {
		if err != nil {
			return err
		}
		coded--
		o.rows[c.Key] = c.Row
		it := o.byKey[c.Key]
		if it == nil {
			return fmt.Errorf("dbtest: Codes has an item %q, and Items has none; if others write meanwhile, take a snapshot", c.Key)
		}
		if !bytes.Equal(it.Code, c.Code) {
			return fmt.Errorf("dbtest: the code of item %q is %x by Items, and %x by Codes; if others write meanwhile, take a snapshot", c.Key, it.Code, c.Code)
		}
	}
	if coded != 0 {
		return fmt.Errorf("dbtest: Items and Codes differ by %d items that have a code; if others write meanwhile, take a snapshot", coded)
	}
	return nil
}

// Items returns the items for which an expression is true, in database order; see
// db.Query.Where. args are the values of its placeholders. The items are shared: do not
// write to them.
func (o *Oracle) Items(where string, args ...any) ([]*db.Item, error) {
	match, err := oracle.Where(where, args, o.schema)
	if err != nil {
		return nil, fmt.Errorf("dbtest: %w", err)
	}
	var found []*db.Item
	for _, it := range o.items {
		if match(it) {
			found = append(found, it)
		}
	}
	return found, nil
}

// Hits returns all items that a query may find, ignoring its K and Rerank. They
// are sorted by (distance, -score), then by (code, row), with the item of q.Key before
// others of its code. Search sorts the items of one code by db.Query.Rerank. The
// database only encodes the query.
func (o *Oracle) Hits(ctx context.Context, q db.Query) ([]db.Hit, error) {
	a, err := o.answer(ctx, &q)
	if err != nil {
		return nil, describe(&q, err)
	}
	hits := make([]db.Hit, len(a.Candidates))
	for i, c := range a.Candidates {
		hits[i] = db.Hit{Key: c.Key, Row: c.Row, Distance: c.Distance, Score: c.Score}
	}
	return hits, nil
}

// answer returns the answer that a query must have.
func (o *Oracle) answer(ctx context.Context, q *db.Query) (*oracle.Answer, error) {
	switch {
	case q.After != "":
		return nil, errors.New("dbtest: an oracle answers queries from the start, not behind a cursor")
	case q.Space != 0 && q.Space != o.space:
		return nil, fmt.Errorf("dbtest: the oracle is of space %d: make one of InSpace(%d)", o.space, q.Space)
	}
	b, z, err := o.c.EncodeQuery(ctx, *q)
	if err != nil {
		return nil, err
	}
	code := string(b)
	if z != nil {
		if err := oracle.Signs(code, z); err != nil {
			return nil, fmt.Errorf("dbtest: %w", err)
		}
	} else if it := o.byKey[q.Key]; q.Key != "" && it != nil {
		if it.Code != nil && string(it.Code) != code {
			return nil, fmt.Errorf("dbtest: the item has the code %x, and as a query %x", it.Code, code)
		}
	}
	found, err := o.Items(q.Where, q.Args...)
	if err != nil {
		return nil, err
	}
	a := &oracle.Answer{Projection: z, Self: q.Key}
	for _, it := range found {
		own := string(it.Code)
		if own == "" || q.To != "" && !oracle.HasModality(it, q.To) || q.ExcludeSelf && it.Key == q.Key {
			continue
		}
		a.Candidates = append(a.Candidates, oracle.Candidate{
			Key: it.Key, Row: o.rows[it.Key], Code: own, Distance: oracle.Distance(own, code), Score: oracle.Score(z, own)})
	}
	a.Sort()
	return a, nil
}
