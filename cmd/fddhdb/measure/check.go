package measure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
)

// A checkScan is the oracle of bench --check. It computes the distance of every item to
// a query by counting the bits of each byte, and finds errors in answers. It shares no
// code with the searches that it checks.
type checkScan struct {
	width     int      // bytes of a code
	codes     []byte   // of the items, ascending
	rows      []uint32 // of the items
	keys      []string
	distances []int  // of the items to the query
	within    []int  // by number of bits: items within so many bits of the query
	seen      []bool // by position: whether a hit was at it
	touched   []int  // positions at which seen is true
}

func newCheckScan(q int) *checkScan {
	return &checkScan{width: q / 8, within: make([]int, q+1)}
}

// add adds an item; rows must ascend.
func (c *checkScan) add(row uint32, key string, code []byte) {
	c.codes = append(c.codes, code...)
	c.rows = append(c.rows, row)
	c.keys = append(c.keys, key)
}

// scan computes the distances to a query.
func (c *checkScan) scan(query []byte) {
	c.distances = slices.Grow(c.distances[:0], len(c.rows))[:len(c.rows)]
	c.seen = slices.Grow(c.seen[:0], len(c.rows))[:len(c.rows)]
	clear(c.within)
	for i := range c.rows {
		d := 0
		for j, x := range c.codes[i*c.width : (i+1)*c.width] {
			d += bits.OnesCount8(x ^ query[j])
		}
		c.distances[i] = d
		c.within[d]++
	}
	for d := range c.within[1:] {
		c.within[d+1] += c.within[d]
	}
}

// count returns the number of items within r bits of the query.
func (c *checkScan) count(r int) int {
	if r < 0 {
		return 0
	}
	return c.within[min(r, len(c.within)-1)]
}

// wrong returns the error of hits that should be n of the nearest items, including all
// that are nearer than the last one; "" if there is none. Any items at the last
// distance are right, and so is any order within a distance. keys says whether hits
// have keys.
func (c *checkScan) wrong(hits iter.Seq2[db.Hit, error], n int, keys bool) (string, error) {
	defer func() {
		for _, at := range c.touched {
			c.seen[at] = false
		}
		c.touched = c.touched[:0]
	}()
	last, nearer := 0, 0
	for h, err := range hits {
		if err != nil {
			return "", err
		}
		at, found := slices.BinarySearch(c.rows, h.Row)
		switch {
		case !found:
			return fmt.Sprintf("row %d is no item", h.Row), nil
		case c.seen[at]:
			return fmt.Sprintf("row %d comes twice", h.Row), nil
		case keys && h.Key != c.keys[at]:
			return fmt.Sprintf("row %d has key %q, not %q", h.Row, c.keys[at], h.Key), nil
		case h.Distance != c.distances[at]:
			return fmt.Sprintf("row %d is %d bits away, not %d", h.Row, c.distances[at], h.Distance), nil
		case h.Distance < last:
			return fmt.Sprintf("row %d, %d bits away, comes after one that is %d away", h.Row, h.Distance, last), nil
		}
		if h.Distance > last {
			last, nearer = h.Distance, len(c.touched)
		}
		c.seen[at] = true
		c.touched = append(c.touched, at)
	}
	// The hits are distinct items at their true distances. So they are n of the nearest
	// if as many of them are nearer than the last as there are such items.
	switch want := c.count(last - 1); {
	case len(c.touched) != n:
		return fmt.Sprintf("there are %d hits, want %d", len(c.touched), n), nil
	case nearer != want:
		return fmt.Sprintf("%d hits are nearer than %d bits, want %d", nearer, last, want), nil
	}
	return "", nil
}

// CheckAll compares the answer of every line to every query with the oracle. Queries
// are the outer loop, as one scan serves all lines.
func (b *Bench) CheckAll(ctx context.Context) error {
	first, wrong := "", 0
	for i := range b.queries {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.bar.Report("checking", int64(i), int64(len(b.queries)))
		b.oracle.scan(b.queries[i].Encoded)
		if b.orders != nil {
			b.orders.scan(&b.queries[i])
		}
		for _, l := range b.lines {
			var what string
			var err error
			if l.ordered {
				what, err = l.checkOrder(ctx, &b.queries[i], b.orders)
			} else {
				what, err = l.check(ctx, &b.queries[i], b.oracle)
			}
			if err != nil {
				return exit.Wrap(err, "while checking %s", l.name())
			}
			l.checked++
			if what == "" {
				continue
			}
			l.mismatches++
			if wrong++; wrong == 1 {
				first = fmt.Sprintf("%s, query %d: %s", l.name(), i, what)
			}
		}
	}
	if wrong > 0 {
		return exit.Failedf("%s of %s differ from those of a linear scan, the first being %s",
			term.Thousands(wrong), term.Plural(len(b.queries)*len(b.lines), "answer", "answers"), first)
	}
	return nil
}

// check runs the operation again and returns the error of its answer; "" if there is
// none.
func (l *line) check(ctx context.Context, q *Query, oracle *checkScan) (what string, err error) {
	ask := l.ask(q)
	keys := l.tier != FullScan
	switch l.Kind {
	case "knn":
		r, err := l.searches.Search(ctx, ask)
		if err != nil {
			return "", err
		}
		return oracle.wrong(func(yield func(db.Hit, error) bool) {
			for _, h := range r.Hits {
				if !yield(h, nil) {
					return
				}
			}
		}, min(l.N, len(oracle.rows)), keys)
	case "count":
		n, err := l.searches.Count(ctx, ask, l.N)
		if want := oracle.count(l.N); err == nil && n != want {
			what = fmt.Sprintf("the count is %d, want %d", n, want)
		}
		return what, err
	}
	runs, err := l.searches.Radius(ctx, ask, l.N)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, runs.Close()) }()
	n := oracle.count(l.N)
	if got := runs.Total(); got != n {
		return fmt.Sprintf("the total is %d, want %d", got, n), nil
	}
	hits := runs.Hits(ctx)
	if l.Kind == "hits" {
		n = min(n, firstHits)
		hits = firstOf(hits, firstHits)
	}
	return oracle.wrong(hits, n, keys)
}

// firstOf ends a sequence after n elements.
func firstOf(hits iter.Seq2[db.Hit, error], n int) iter.Seq2[db.Hit, error] {
	return func(yield func(db.Hit, error) bool) {
		left := n
		for h, err := range hits {
			if left--; !yield(h, err) || left == 0 {
				return
			}
		}
	}
}
