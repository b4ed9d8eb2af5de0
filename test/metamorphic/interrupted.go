package metamorphic

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/fddhdb/fddhdb/db"
)

// A cut is a state of the database while lanes write. It has all writes of each lane
// that had returned, at most those that had begun, and no half of any.
type cut struct {
	least []int64 // writes of each lane that had returned before
	most  []int64 // writes of each lane that had begun by the end
}

// A progress counts the writes of a lane that have begun, and those that have returned.
// Lanes write it and others read it.
type progress struct{ begun, back atomic.Int64 }

// cutOf calls f, and returns the cut that f sees.
func cutOf(lanes []progress, f func() error) (c cut, err error) {
	for l := range lanes {
		c.least = append(c.least, lanes[l].back.Load())
	}
	err = f()
	for l := range lanes {
		c.most = append(c.most, lanes[l].begun.Load())
	}
	return c, err
}

// An interruption is a crash while lanes write.
type interruption struct {
	cut
	after  int64 // the crash comes after so many writes
	writes atomic.Int64
	left   *memory // what the crash leaves; nil: it has not come
}

// wrote counts a write that has returned. If it is number after, it makes the crash.
func (i *interruption) wrote(h *history, op *Op, lanes []progress) {
	if i.writes.Add(1) != i.after {
		return
	}
	i.cut, _ = cutOf(lanes, func() error {
		i.left = h.mem.crash(op)
		return nil
	})
}

// check opens what the crash has left and compares it.
func (i *interruption) check(h *history, lanes [][]laneStep) error {
	if i.left == nil {
		return nil
	}
	dir, o := h.dbOptions(h.name)
	o.FS = i.left
	if err := i.cut.check(h, dir, o, lanes); err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	return nil
}

// check opens the database in dir and compares it.
func (c *cut) check(h *history, dir string, o *db.Options, lanes [][]laneStep) error {
	o.UpdateItems, o.MustExist = 0, true
	d, err := db.Open(dir, o)
	if err != nil {
		return err
	}
	if err = c.compare(h, d, lanes); err == nil {
		err = (&history{ctx: h.ctx, d: d}).verify(nil)
	}
	return errors.Join(err, d.Close())
}

func (c *cut) compare(h *history, d *db.DB, lanes [][]laneStep) error {
	got := map[string]map[string]*db.Item{}
	for name := range h.now.collections {
		handle, err := d.Collection(name)
		if err != nil {
			return err
		}
		got[name] = map[string]*db.Item{}
		for it, err := range handle.Items(h.ctx, "") {
			if err != nil {
				return err
			}
			got[name][it.Key] = it
		}
	}
	for l, steps := range lanes {
		worlds := []*world{h.now}
		keys := touched{}
		for _, step := range steps {
			if step.writes() {
				worlds = append(worlds, step.w)
				for name, of := range step.t {
					for _, key := range of {
						keys.add(name, key)
					}
				}
			}
		}
		var last error
		possible := func(w *world) bool {
			last = keys.same(h.now, w, got)
			return last == nil
		}
		if !slices.ContainsFunc(worlds[c.least[l]:c.most[l]+1], possible) {
			return fmt.Errorf("of lane %d, %d writes had come back and %d begun; there is no state in between: %w", l, c.least[l], c.most[l], last)
		}
	}
	for name, of := range h.now.collections { // collections that no lane writes to
		others := touched{}
		for key := range of.items {
			if !strings.HasPrefix(key, "lane") {
				others.add(name, key)
			}
		}
		if err := others.same(h.now, h.now, got); err != nil {
			return err
		}
	}
	return nil
}

// same compares items with those of a world, in the collections that seen has.
func (t touched) same(seen, w *world, got map[string]map[string]*db.Item) error {
	for name, keys := range t {
		as, c := seen.collections[name], w.collections[name]
		if as == nil {
			continue // the copy does not have this collection
		}
		for _, key := range keys {
			want, is := c.items[key], got[name][key]
			if (want == nil) != (is == nil) {
				return fmt.Errorf("collection %q: item %q is there: %v, want %v", name, key, is != nil, want != nil)
			}
			if want != nil {
				if err := as.sameContent(want, is); err != nil {
					return fmt.Errorf("collection %q: item %q: %w", name, key, err)
				}
			}
		}
	}
	return nil
}
