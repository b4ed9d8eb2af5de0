package merge

import (
	"container/heap"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
)

// A Want describes the wanted page.
type Want struct {
	K int // most hits; 1 or more

	// Self is the key of the query's item, or "". Only the shard with the item can be queried by
	// db.Query.Key, and puts the item first of its code; the others are queried by its vector or its code.
	// With Self the item also precedes hits of other shards with its code.
	Self string

	// Within says that the answers are of a search by radius (db.Runs.First): their facets count all items
	// within it, and are added up. Otherwise facets are counted from the hits of the page.
	Within bool
}

// Page returns the first w.K hits after the cursor, of all shards, and the cursor behind them. The zero
// Cursor is the start. answers has one answer for each shard, always in the order of the shard numbers. Page
// changes nothing in answers; the page shares the items of hits.
//
//   - Ask each shard for w.K hits, with IncludeCursor and with After = from.After(shard). If a shard was
//     asked for fewer and has more, the page ends behind the last hit that it gave: its next hit may be the
//     next of all.
//   - The answer of a silent shard is nil. The shard keeps its place in the cursor, so its hits come with
//     later pages, behind hits that they would have preceded. No hit is lost or comes twice. Meanwhile a page
//     may be empty although the cursor is not Done.
//   - A shard that has ended (Cursor.Ended) need not be asked. If it was, its hits are left out, but its
//     counts are not: ask it for one hit from the start if each page should have the right Total and Facets
//     of a radius.
//   - Total is the sum; Want.Within describes the facets. Facets of hits need the hits' labels and fields
//     (db.IncludeLabels, db.IncludeFields); ask for all facets without a limit.
//   - Approximate is true if it is true of any answer.
//   - Next is the text of the cursor, and "" if that is Done.
//
// Answers that cannot be compared are a *MismatchError. Answers without a required part are a db.ErrInvalid,
// and so is a cursor over another number of shards. Page makes of the order of S + K log S comparisons for S
// shards.
func Page(answers []*db.Result, from Cursor, w Want) (*db.Result, Cursor, error) {
	switch {
	case w.K < 1:
		return nil, Cursor{}, fault.Invalid("k = %d: 1 or more are possible", w.K)
	case len(answers) == 0:
		return nil, Cursor{}, fault.Invalid("a page of no shards")
	case len(answers) > MaxShards:
		return nil, Cursor{}, fault.Invalid("a page of %d shards: %d are possible", len(answers), MaxShards)
	case len(from.places) > 0 && len(from.places) != len(answers):
		return nil, Cursor{}, fault.Invalid("a cursor over %d shards, and %d answers", len(from.places),
			len(answers))
	}
	basis, known, err := agree(answers, from)
	if err != nil {
		return nil, Cursor{}, err
	}
	order, err := orderOf(basis, w.Self)
	if err != nil {
		return nil, Cursor{}, err
	}
	page := &db.Result{Space: basis.Space, Revision: basis.Revision, Rerank: basis.Rerank}
	taken, err := take(page, answers, from, order, w.K)
	if err != nil {
		return nil, Cursor{}, err
	}
	for _, a := range answers {
		if a != nil {
			page.Total += a.Total
			page.Approximate = page.Approximate || a.Approximate
			page.Distances = sum(page.Distances, a.Distances)
		}
	}
	if page.Facets, err = pageFacets(page.Hits, answers, w); err != nil {
		return nil, Cursor{}, err
	}
	to := Cursor{basis: basis, known: known, places: taken}
	if !to.Done() {
		page.Next = to.String()
	}
	return page, to, nil
}

// sum adds counts by distance.
func sum(a, b []int) []int {
	if len(b) > len(a) {
		a = append(a, make([]int, len(b)-len(a))...)
	}
	for d, n := range b {
		a[d] += n
	}
	return a
}

// take takes the hits of a page, and returns how far it has come in each shard.
func take(page *db.Result, answers []*db.Result, from Cursor, order order, k int) ([]place, error) {
	places := make([]place, len(answers))
	copy(places, from.places)
	h := heads{order: order, heap: make([]head, 0, len(answers))}
	n, ends := 0, false // number of hits; whether a shard has more than it gave
	for i, a := range answers {
		switch {
		case a == nil || from.Ended(i):
		case len(a.Hits) > 0:
			h.heap = append(h.heap, head{i, a.Hits})
			n += min(len(a.Hits), k)
		case a.Next != "":
			places[i], ends = place{after: a.Next}, true
		default:
			places[i] = ended
		}
	}
	heap.Init(&h)
	page.Hits = make([]db.Hit, 0, min(k, n))
	for len(page.Hits) < k && len(h.heap) > 0 && !ends {
		hit, shard, last := h.next()
		page.Hits = append(page.Hits, *hit)
		switch next := answers[shard].Next; {
		case !last:
			places[shard] = place{after: hit.Cursor}
		case next == "":
			places[shard] = ended
		default:
			places[shard] = place{after: next}
			ends = true
		}
	}
	for _, left := range h.heap { // the page may end between two of their hits
		p := &places[left.shard]
		if len(left.hits) < len(answers[left.shard].Hits) && p.after == "" {
			return nil, fault.Invalid("shard %d: its hits have no cursors: ask with IncludeCursor",
				left.shard)
		}
	}
	for i, p := range places {
		if len(p.after) > maxAfter {
			return nil, fault.Invalid("shard %d: a cursor of %d bytes: %d are possible", i, len(p.after),
				maxAfter)
		}
	}
	return places, nil
}
