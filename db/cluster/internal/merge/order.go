package merge

import (
	"cmp"
	"container/heap"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
)

// An order compares two hits of different shards as an answer orders them: negative if a comes first, 0 if
// they are tied.
type order func(a, b *db.Hit) int

// descending orders the greatest first and NaN last. NaN equals NaN.
// cmp.Compare has NaN as the least
func descending[F float32 | float64](a, b F) int { return cmp.Compare(b, a) }

// orderOf returns the order across shards of answers on a basis. self is the key of the query's item, or "".
func orderOf(b Basis, self string) (order, error) {
	if b.Space == 0 { // by vectors, where the item of the query has no special place
		return func(a, b *db.Hit) int { return descending(a.Similarity, b.Similarity) }, nil
	}
	// within orders hits that share a code. A database puts the item of the query first of its code.
	within := func(a, b *db.Hit) int {
		if self != "" && (a.Key == self) != (b.Key == self) {
			if a.Key == self {
				return -1
			}
			return 1
		}
		return descending(a.Similarity, b.Similarity)
	}
	switch b.Rerank {
	case db.RerankAuto, db.RerankProjection, db.RerankNone:
		return func(a, b *db.Hit) int {
			if c := byCode(a, b); c != 0 {
				return c
			}
			return within(a, b)
		}, nil
	case db.RerankAsymmetric:
		return func(a, b *db.Hit) int {
			if c := descending(a.Score, b.Score); c != 0 {
				return c
			}
			// A query by code has no scores. The scores that follow from its distances would give this order.
			if c := cmp.Compare(a.Distance, b.Distance); c != 0 {
				return c
			}
			return within(a, b)
		}, nil
	}
	return nil, fault.Invalid("answers in the order %v, which is not known here", b.Rerank)
}

// byCode orders hits by distance and score.
func byCode(a, b *db.Hit) int {
	if c := cmp.Compare(a.Distance, b.Distance); c != 0 {
		return c
	}
	return descending(a.Score, b.Score)
}

// A head is the rest of a shard's hits, without those that a page has taken. It has one hit or more.
type head struct {
	shard int
	hits  []db.Hit
}

// heads is a heap (container/heap) of the heads of shards, by their first hits.
type heads struct {
	order order
	heap  []head
}

func (h *heads) Len() int      { return len(h.heap) }
func (h *heads) Swap(i, j int) { h.heap[i], h.heap[j] = h.heap[j], h.heap[i] }
func (h *heads) Push(x any)    { h.heap = append(h.heap, x.(head)) }

func (h *heads) Pop() any {
	n := len(h.heap) - 1
	x := h.heap[n]
	h.heap = h.heap[:n]
	return x
}

// Less reports whether the first hit of head i precedes the first hit of head j. No two heads are equal: a
// key is in one shard, and if it were in two, the shard numbers would decide.
func (h *heads) Less(i, j int) bool {
	a, b := &h.heap[i], &h.heap[j]
	return cmp.Or(h.order(&a.hits[0], &b.hits[0]), strings.Compare(a.hits[0].Key, b.hits[0].Key),
		cmp.Compare(a.shard, b.shard)) < 0
}

// next takes the first hit of all, and returns it with its shard. last says that the shard has no more hits.
// There must be a head.
func (h *heads) next() (hit *db.Hit, shard int, last bool) {
	first := &h.heap[0]
	hit, shard = &first.hits[0], first.shard
	if first.hits = first.hits[1:]; len(first.hits) == 0 {
		heap.Pop(h) // makes no more comparisons with the empty head
		return hit, shard, true
	}
	heap.Fix(h, 0)
	return hit, shard, false
}
