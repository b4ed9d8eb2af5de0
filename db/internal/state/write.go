package state

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/spaces"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// Write commits changes and marks together, all or none. It waits for the codes of the collections, encodes
// the items, and submits them to the committer. It counts as one write in the figures and has a span. The
// caller has entered the Guard.
func (d *Database) Write(ctx context.Context, changes []*Change, marks []record.Mark) error {
	ctx, call := d.Signals.Call(ctx, event.OpWrite, "")
	err := d.Prepare(ctx, changes)
	if err == nil {
		err = d.Committer.Submit(ctx, &Request{Changes: changes, Marks: marks})
	}
	d.Wrote(&call, len(changes), err)
	return err
}

// Prepare waits until the codes of the changed collections are in memory, and encodes the items to put, on
// all cores if they are many. It uses the present models. The committer encodes again if these have changed
// by then.
func (d *Database) Prepare(ctx context.Context, changes []*Change) error {
	var waits []*Loading
	err := d.Read(func(v *View) error {
		for id := range collectionsOf(changes) {
			if cv, ok := v.Collections.Get(id); ok {
				waits = cv.AppendLoading(waits)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := WaitForAll(ctx, waits); err != nil {
		return err
	}
	return d.Read(func(v *View) error {
		for id, puts := range collectionsOf(changes) {
			cv, ok := v.Collections.Get(id)
			if !ok || cv.CodesOnly() { // the committer reports a collection that is gone
				continue
			}
			for _, ch := range puts {
				ch.Encs, ch.EncodedBy = nil, cv.Labels
			}
			for _, sp := range cv.Spaces {
				if err := Encode(ctx, puts, sp.Space, cv.Labels.Lookup); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// collectionsOf yields the collections of changes, with the puts into each.
func collectionsOf(changes []*Change) iter.Seq2[uint32, []*Change] {
	return func(yield func(uint32, []*Change) bool) {
		other := func(ch *Change) bool { return ch.Collection != changes[0].Collection || ch.Kind != PutItem }
		if len(changes) > 0 && !slices.ContainsFunc(changes, other) { // the usual case
			yield(changes[0].Collection, changes)
			return
		}
		puts := map[uint32][]*Change{}
		for _, ch := range changes {
			all := puts[ch.Collection]
			if ch.Kind == PutItem {
				all = append(all, ch)
			}
			puts[ch.Collection] = all
		}
		for id, all := range puts {
			if !yield(id, all) {
				return
			}
		}
	}
}

// Encode adds the codes of items in a space to the Encs of puts, on all cores if they are many. It does
// nothing for a space without a model. labelIDs returns the ids of labels; several goroutines call it.
func Encode(ctx context.Context, puts []*Change, s *spaces.Space, labelIDs func(names []string) []uint32) error {
	if s.Learned == nil {
		return nil
	}
	encs := make([]spaces.Encoding, len(puts))
	err := s.EncodeAll(ctx, work.All(), encs,
		func(i int) ([]model.Vector, []uint32) { return puts[i].Item.Vectors, labelIDs(puts[i].Item.Labels) },
		func(i int, err error) error {
			return fault.OfItem(puts[i].Item.Key, fmt.Errorf("fddhdb: encode: %w", err))
		})
	if err != nil {
		return err
	}
	for i, ch := range puts {
		if ch.Encs == nil {
			ch.Encs = encs[i : i+1 : i+1] // nearly all collections have one space
		} else {
			ch.Encs = append(ch.Encs, encs[i])
		}
	}
	return nil
}
