package cluster

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// ExportModel writes the file of the model of a space, with all updates so far; 0 is the active space. The
// file is for ImportModel of a database or of another cluster, or for a program that encodes with the model.
// See db.Collection.ExportModel.
func (c *Collection) ExportModel(ctx context.Context, w io.Writer, space db.Space) error {
	if w == nil {
		return fmt.Errorf("%w: nothing to write the model to", db.ErrInvalid)
	}
	var b []byte
	err := c.client.steady(ctx, func(ctx context.Context, v *view) error {
		of, err := c.revisions(ctx, v, space)
		if err == nil {
			b, err = c.modelOf(ctx, v, of)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// revisions are the revisions of a space on the shards. They differ only while a revision is being installed,
// or after an update that has not reached all shards.
type revisions struct {
	space          db.Space
	least, highest uint32
	index          int // of the shard with the highest revision
}

// revisions returns the revisions of a space; 0 is the active one.
func (c *Collection) revisions(ctx context.Context, v *view, space db.Space) (r revisions, err error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, _, err := c.scatter(ctx, v, false, nil, func(int) wire.Request { return wire.Request{Verb: wire.Describe} })
	if err != nil {
		return r, err
	}
	r.space = space
	for index, a := range answers {
		if a.About == nil {
			return r, wire.ErrAnswer
		}
		if a.About.Schema.Bits > 0 {
			return r, fmt.Errorf("%w: collection %q has no model: its items bring their codes", db.ErrInvalid, c.name)
		}
		i := slices.IndexFunc(a.About.Spaces, func(s wire.Space) bool {
			return s.Space == r.space || r.space == 0 && s.State == db.SpaceActive
		})
		if i < 0 && space == 0 {
			return r, fmt.Errorf("%w: collection %q: train it first", db.ErrNoModel, c.name)
		} else if i < 0 {
			return r, fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, space, c.name)
		}
		s := a.About.Spaces[i]
		r.space = s.Space // the same space on all shards, even if another one is activated meanwhile
		if index == 0 || s.Revision < r.least {
			r.least = s.Revision
		}
		if s.Revision > r.highest {
			r.highest, r.index = s.Revision, index
		}
	}
	return r, nil
}

// modelOf fetches the file of the model of a space, from a node of the shard with the highest revision.
func (c *Collection) modelOf(ctx context.Context, v *view, of revisions) ([]byte, error) {
	shard := v.Number(of.index)
	store, into := objects{c.client.js, c.client.cluster}, exportObject+wire.NewID().String()
	defer store.remove(context.WithoutCancel(ctx), into)
	_, err := c.client.orderShard(ctx, order{Do: "model", Shard: shard, Collection: c.name, Space: of.space, From: v.sees(of.index), Into: into})
	if err != nil {
		return nil, fmt.Errorf("model of space %d of collection %q: shard %d: %w", of.space, c.name, shard, err)
	}
	return store.fetch(ctx, into)
}
