package cluster

import (
	"cmp"
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// Collections returns the names of the collections, in order. While a collection is being created or dropped,
// it counts as long as any shard has it.
func (c *Client) Collections(ctx context.Context) ([]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	answers, err := c.Collection("").all(ctx, func(int) wire.Request { return wire.Request{Verb: wire.Collections} })
	if err != nil {
		return nil, err
	}
	var all []string
	for _, a := range answers {
		all = append(all, a.Names...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Schema returns the schema of the collection. It asks the first shard: all shards have the same schema.
func (c *Collection) Schema(ctx context.Context) (db.Schema, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	var a *wire.Answer
	err := c.client.steady(ctx, func(ctx context.Context, v *view) (err error) {
		a, err = v.ask(ctx, 0, wire.Request{Verb: wire.Describe, Collection: c.name})
		return err
	})
	if err != nil {
		return db.Schema{}, err
	}
	if a.About == nil {
		return db.Schema{}, wire.ErrAnswer
	}
	return a.About.Schema, nil
}

// A Space is a space of codes of a collection, summed over all shards.
type Space struct {
	Space    db.Space      `json:"space"`
	State    db.SpaceState `json:"state"` // the earliest of all shards: building, standby, active
	Bits     int           `json:"bits"`
	Revision uint32        `json:"revision"` // the lowest in use of all shards
	Items    int           `json:"items"`    // items with a code in it
	Shards   int           `json:"shards"`   // shards that have it: fewer than all while it is created or dropped
}

// Spaces returns the spaces of codes of the collection, by number.
func (c *Collection) Spaces(ctx context.Context) ([]Space, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, err := c.all(ctx, func(int) wire.Request { return wire.Request{Verb: wire.Describe} })
	if err != nil {
		return nil, err
	}
	var all []Space
	for _, a := range answers {
		if a.About == nil {
			return nil, wire.ErrAnswer
		}
		for _, s := range a.About.Spaces {
			i := slices.IndexFunc(all, func(o Space) bool { return o.Space == s.Space })
			if i < 0 {
				all = append(all, Space{Space: s.Space, State: s.State, Bits: s.Bits, Revision: s.Revision, Items: s.Items, Shards: 1})
				continue
			}
			o := &all[i]
			o.Items, o.Shards, o.Revision = o.Items+s.Items, o.Shards+1, min(o.Revision, s.Revision)
			if progress(s.State) < progress(o.State) {
				o.State = s.State
			}
		}
	}
	slices.SortFunc(all, func(a, b Space) int { return cmp.Compare(a.Space, b.Space) })
	return all, nil
}

// progress orders the states of a space.
func progress(s db.SpaceState) int {
	return slices.Index([]db.SpaceState{db.SpaceBuilding, db.SpaceStandby, db.SpaceActive}, s)
}
