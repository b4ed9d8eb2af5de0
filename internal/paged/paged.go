// Package paged has arrays that successive states of a table share, page by page.
package paged

import "slices"

// An Array is a growing array of pages that successive states of a table share. The first
// change of a page in an epoch copies the page, the branch above it and the list of
// branches. So readers of published states need no lock while the one writer changes a
// later state. The writer counts epochs: one begins with each state that it publishes. The
// zero value is an empty array.
type Array[P any] struct {
	branches []*branch[P]
	epoch    uint64 // epoch in which branches was copied
}

// fanout is the number of pages of a branch.
const fanout = 256

// A branch may be changed by the writer only in its own epoch.
type branch[P any] struct {
	epoch uint64 // epoch in which the branch was made or copied
	pages [fanout]*page[P]
}

// A page may be changed by the writer only in its own epoch.
type page[P any] struct {
	epoch uint64 // epoch in which the page was made or copied
	p     P
}

// At returns page i, or nil if there is none.
func (a *Array[P]) At(i uint32) *P {
	b := i / fanout
	if int(b) >= len(a.branches) || a.branches[b] == nil {
		return nil
	}
	if pg := a.branches[b].pages[i%fanout]; pg != nil {
		return &pg.p
	}
	return nil
}

// Own returns page i for the writer to change in this epoch. It makes the page if there
// is none. It calls copied with a page that it has just copied, as the slices in that
// page are still shared.
func (a *Array[P]) Own(i uint32, epoch uint64, copied func(*P)) *P {
	b := i / fanout
	if a.epoch != epoch {
		a.branches, a.epoch = slices.Clone(a.branches), epoch
	}
	for int(b) >= len(a.branches) {
		a.branches = append(a.branches, nil)
	}
	br := a.branches[b]
	switch {
	case br == nil:
		br = &branch[P]{epoch: epoch}
		a.branches[b] = br
	case br.epoch != epoch:
		br = &branch[P]{epoch: epoch, pages: br.pages}
		a.branches[b] = br
	}
	pg := br.pages[i%fanout]
	switch {
	case pg == nil:
		pg = &page[P]{epoch: epoch}
		br.pages[i%fanout] = pg
	case pg.epoch != epoch:
		pg = &page[P]{epoch: epoch, p: pg.p}
		br.pages[i%fanout] = pg
		copied(&pg.p)
	}
	return &pg.p
}

// Drop forgets page i. Everything in that page must be empty.
func (a *Array[P]) Drop(i uint32, epoch uint64) {
	if a.At(i) == nil {
		return
	}
	a.Own(i, epoch, func(*P) {}) // the branch is the writer's now
	a.branches[i/fanout].pages[i%fanout] = nil
}

// All calls f with every page.
func (a *Array[P]) All(f func(*P)) {
	for _, b := range a.branches {
		if b == nil {
			continue
		}
		for _, pg := range b.pages {
			if pg != nil {
				f(&pg.p)
			}
		}
	}
}

// From calls f with every page from number first on, in order. f may drop the page.
func (a *Array[P]) From(first uint32, f func(i uint32, p *P)) {
	for b := first / fanout; int(b) < len(a.branches); b++ {
		for i := range uint32(fanout) {
			if number := b*fanout + i; number >= first {
				if p := a.At(number); p != nil {
					f(number, p)
				}
			}
		}
	}
}
