package killtest

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// A book keeps what processes have told of the work on a folder, and what the folder
// held after each process.
type book struct {
	noSync  bool
	writers []history
	spaces  spaceHistory
	imports importHistory
	copies  copies
	acked   int // acknowledged operations, of all

	// for each writer, the operations that were acknowledged when the last operation of the importer began
	imported []int
}

// A history is the work of one writer since the last look at the folder.
type history struct {
	before contents
	ops    []begun
	acked  int // how many of ops are acknowledged
	synced int // how many of ops are surely on stable storage
}

// A begun operation has the count of acknowledged operations of each writer at its
// begin.
type begun struct {
	*operation
	after []int
}

// A spaceHistory is the history of the changes of spaces and loads.
type spaceHistory struct {
	revisions map[db.Space]uint32 // the revision of each existing space
	active    db.Space
	last      db.Space // the largest number of a space so far
	loads     map[int]bool
	altered   int    // how often the collection was altered
	going     *begun // the operation that is not acknowledged
}

func newBook(writers int, noSync bool) *book {
	b := &book{noSync: noSync, writers: make([]history, writers),
		spaces: spaceHistory{revisions: map[db.Space]uint32{}, loads: map[int]bool{}}, copies: newCopies()}
	b.imports = importHistory{there: map[int]int{}, number: 1, noSync: noSync}
	for i := range b.writers {
		b.writers[i].before = contents{}
	}
	return b
}

func (b *book) ackedNow() []int {
	var n []int
	for i := range b.writers {
		n = append(n, b.writers[i].acked)
	}
	return n
}

// hear notes a line.
func (b *book) hear(l line) {
	switch {
	case l.Who == archivist && l.Op != nil:
		b.copies.begin(l.Op, b)
	case l.Who == archivist && l.Done != nil:
		b.acked++
		b.copies.done(l.Done, b)
	case l.Who == importer && l.Op != nil:
		b.imports.begin(l.Op)
		b.imported = b.ackedNow()
		b.copies.meanwhile(b)
	case l.Who == importer && l.Done != nil:
		b.acked++
		if b.imports.going.Kind == "unimport" {
			b.syncedSince(b.imported)
		}
		b.imports.done(l.Done)
		b.copies.meanwhile(b)
	case l.Who == spaces && l.Op != nil:
		b.spaces.going = &begun{l.Op, b.ackedNow()}
		b.copies.meanwhile(b)
	case l.Who == spaces && l.Done != nil:
		b.acked++
		if b.spaces.wrote(l.Done) {
			b.syncedSince(b.spaces.going.after)
		}
		b.spaces.done(l.Done)
		b.copies.meanwhile(b)
	case l.Op != nil:
		w := &b.writers[l.Who]
		w.ops = append(w.ops, begun{l.Op, b.ackedNow()})
	case l.Done != nil:
		w := &b.writers[l.Who]
		b.acked++
		if w.acked++; !b.noSync {
			w.synced = w.acked
		}
	}
}

// syncedSince notes that an operation has been synced. With it everything is synced
// that had been acknowledged before it began: after[i] operations of writer i.
func (b *book) syncedSince(after []int) {
	for i, n := range after {
		b.writers[i].synced = max(b.writers[i].synced, n)
	}
}

// wrote reports whether an acknowledged operation has written something. A refused
// operation has not, nor has an update that had nothing to learn.
func (s *spaceHistory) wrote(r *result) bool {
	return r.Refused == "" && (s.going.Kind != "update" || r.Revision != s.revisions[r.Space])
}

// done notes the effect of an acknowledged operation on the spaces.
func (s *spaceHistory) done(r *result) {
	op := s.going
	s.going = nil
	if r.Refused != "" {
		return
	}
	switch op.Kind {
	case "train", "reindex":
		s.revisions[r.Space], s.last = 1, max(s.last, r.Space)
		if r.Active {
			s.active = r.Space
		}
	case "update":
		s.revisions[r.Space] = r.Revision
	case "activate":
		s.active = r.Space
	case "drop":
		delete(s.revisions, op.Space)
	case "alter":
		s.altered = op.Load
	case "load", "unload":
		s.loads[op.Load] = leaves[op.Kind]
	}
}

// next returns the number of the next operation of each writer.
func (b *book) next() int {
	n := 1
	for _, w := range b.writers {
		for _, op := range w.ops {
			n = max(n, op.N+1)
		}
		for _, v := range w.before {
			n = max(n, v.Put+1, v.Merged+1)
		}
	}
	return n
}

// look compares a database with what was told of it, and starts a new page. It returns
// how many acknowledged operations were lost when the process ended. Only without
// syncing may that be more than 0.
func (b *book) look(ctx context.Context, d *db.DB) (lost int, err error) {
	all, err := read(ctx, d, true)
	if err != nil {
		return 0, err
	}
	most, err := agree(b.writers, all)
	if err != nil {
		return 0, err
	}
	for i, w := range b.writers {
		lost += max(0, w.acked-most[i])
	}
	if err := b.spaces.look(ctx, d); err != nil {
		return 0, err
	}
	if err := b.imports.look(ctx, d); err != nil {
		return 0, err
	}
	for i := range b.writers {
		b.writers[i] = history{before: all.of(i)}
	}
	return lost, nil
}

// of returns the items of one writer.
func (c contents) of(writer int) contents {
	own := maps.Clone(c)
	maps.DeleteFunc(own, func(key string, _ version) bool { return ownerOf(key) != writer })
	return own
}

// agree compares the items of a database with the work of all writers. It returns, for
// each writer, the most operations after which its items can be as they are.
func agree(writers []history, all contents) (most []int, err error) {
	least := make([]int, len(writers))
	most = make([]int, len(writers))
	for i := range writers {
		w, now := &writers[i], all.of(i)
		if least[i], most[i] = w.states(now); most[i] < 0 {
			return nil, fmt.Errorf("writer %d: %d operations begun, %d acknowledged, %d synced, and what is there is what none of them has left: %v, before it was %v, then came %s",
				i, len(w.ops), w.acked, w.synced, now, w.before, w.story())
		}
	}
	// an operation that is there needs those that were acknowledged before it began
	for i, w := range writers {
		for j, n := range w.ops[:least[i]] {
			for k, before := range n.after {
				if before > most[k] {
					return nil, fmt.Errorf("operation %d of writer %d is there, and operation %d of writer %d, which came before, is lost", j, i, before-1, k)
				}
			}
		}
	}
	return most, nil
}

// states returns the least and the largest number of operations after which the items
// of a writer are as in now; -1 if there is none.
func (w *history) states(now contents) (least, most int) {
	least, most = -1, -1
	state := maps.Clone(w.before)
	for n := 0; ; n++ {
		if n >= w.synced && maps.Equal(state, now) {
			if most = n; least < 0 {
				least = n
			}
		}
		if n == len(w.ops) {
			return least, most
		}
		state.apply(w.ops[n].N, w.ops[n].Changes)
	}
}

// story tells the last operations, for a failure.
func (w *history) story() (s string) {
	for _, op := range w.ops[max(0, len(w.ops)-5):] {
		s += fmt.Sprintf("%d %v; ", op.N, op.Changes)
	}
	return s
}

func (s *spaceHistory) clone() spaceHistory {
	own := *s
	own.revisions, own.loads = maps.Clone(s.revisions), maps.Clone(s.loads)
	return own
}

// look compares the spaces, alterations and loads of a database with what was told. An
// operation that was not acknowledged may have happened. From then on what it has found
// counts as told.
func (s *spaceHistory) look(ctx context.Context, d *db.DB) error {
	loads, err := loaded(ctx, d)
	if err != nil {
		return err
	}
	infos, err := spacesOf(ctx, d)
	if err != nil {
		return err
	}
	n, err := altered(d)
	if err != nil {
		return err
	}
	return s.accept(loads, infos, n)
}

func spacesOf(ctx context.Context, d *db.DB) ([]report.SpaceInfo, error) {
	c, err := d.Collection(features)
	if err != nil {
		return nil, err
	}
	return c.Spaces(ctx)
}

// accept compares and takes over what look has read. A database without loads has no
// collection of loads.
func (s *spaceHistory) accept(loads map[int]bool, infos []report.SpaceInfo, altered int) error {
	going := operation{}
	if s.going != nil {
		going = *s.going.operation
	}
	if altered != s.altered && !(going.Kind == "alter" && going.Load == altered) {
		return fmt.Errorf("%d alterations are there, and there were %d; %+v was going on", altered, s.altered,
			going)
	}
	for load := range 4 {
		left, is := leaves[going.Kind]
		if loads != nil && loads[load] != s.loads[load] &&
			!(is && going.Load == load && loads[load] == left) {
			return fmt.Errorf("load %d is there: %t, and was: %t; %+v was going on", load, loads[load],
				s.loads[load], going)
		}
	}
	found, active, last := map[db.Space]uint32{}, db.Space(0), s.last
	for _, info := range infos {
		revision, was := s.revisions[info.Space]
		switch {
		case !was && (going.Kind == "train" || going.Kind == "reindex") && info.Space > s.last &&
			info.Revision == 1:
		case was && (info.Revision == revision ||
			going.Kind == "update" && going.Space == info.Space && info.Revision == revision+1):
		// it learns labels first
		case was && going.Kind == "update" && going.Space == info.Space && info.Revision == revision+2:
		default:
			return fmt.Errorf("space %d has revision %d; there was %v, %+v was going on", info.Space,
				info.Revision, s.revisions, going)
		}
		if info.State == report.SpaceActive {
			active = info.Space
			if was && active != s.active && !(going.Kind == "activate" && going.Space == active) {
				return fmt.Errorf("space %d is active, not %d; %+v was going on", active, s.active, going)
			}
		}
		found[info.Space], last = info.Revision, max(last, info.Space)
	}
	for _, id := range slices.Sorted(maps.Keys(s.revisions)) {
		if _, is := found[id]; !is && !(going.Kind == "drop" && going.Space == id) {
			return fmt.Errorf("space %d is gone; %+v was going on", id, going)
		}
	}
	if active == 0 && s.active != 0 {
		return fmt.Errorf("no space is active, and space %d was", s.active)
	}
	*s = spaceHistory{revisions: found, active: active, last: last, loads: loads, altered: altered}
	return nil
}
