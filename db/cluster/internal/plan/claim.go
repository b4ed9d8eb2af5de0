package plan

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
)

// A Claim is the right to change the set of shards. It has the number of a lease. The claim writes that
// number into the key of the layout, and into the placements that it makes or takes. The latest claim wins:
// changes by an earlier holder that was stopped and resumes are db.ErrConflict.
type Claim struct {
	plan  *Plan
	lease uint64

	mu       sync.Mutex
	is       Grown
	revision uint64         // of the layout's key, as the claim has last written it
	wrote    map[int]uint64 // by shard: the revision of its placement, as the claim has written it
}

var errLater = fmt.Errorf("%w: somebody else has taken over the growth", db.ErrConflict)

// Claim claims the plan under the lease with that number, and reads it. A later claim is db.ErrConflict.
func (p *Plan) Claim(ctx context.Context, lease uint64) (*Claim, error) {
	for {
		c := &Claim{plan: p, lease: lease, wrote: map[int]uint64{},
			is: Grown{Layout: p.Settings.Layout(), Starts: make([]uint64, p.Settings.Shards)}}
		e, err := p.kv.Get(ctx, layoutKey)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
		case err != nil:
			return nil, fmt.Errorf("key %s: %w", layoutKey, err)
		default:
			if err := json.Unmarshal(e.Value(), &c.is); err != nil {
				return nil, fmt.Errorf("key %s: %w", layoutKey, err)
			}
			c.revision = e.Revision()
		}
		if c.is.Lease > lease {
			return nil, errLater
		}
		c.is.Lease = lease
		if err = c.put(ctx, c.is); err == nil {
			return c, p.Fresh(ctx, layoutKey, c.revision)
		}
		if !errors.Is(err, jetstream.ErrKeyExists) {
			return nil, fmt.Errorf("key %s: %w", layoutKey, err)
		}
		if err := p.pause(ctx, err); err != nil { // the server that was asked lags
			return nil, err
		}
	}
}

// put writes the key of the layout, unless another client has written it since the claim did.
func (c *Claim) put(ctx context.Context, is Grown) error {
	b, err := json.Marshal(is)
	if err != nil {
		return err
	}
	var revision uint64
	if c.revision == 0 {
		revision, err = c.plan.kv.Create(ctx, layoutKey, b)
	} else {
		revision, err = c.plan.kv.Update(ctx, layoutKey, b, c.revision)
	}
	if err == nil {
		c.is, c.revision = is, revision
	}
	return err
}

// write is put, and also recognizes an earlier try whose answer was lost.
func (c *Claim) write(ctx context.Context, is Grown) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		err := c.put(ctx, is)
		if err == nil || !errors.Is(err, jetstream.ErrKeyExists) {
			return err
		}
		e, gerr := c.plan.kv.Get(ctx, layoutKey)
		if gerr == nil {
			var has Grown
			if err := json.Unmarshal(e.Value(), &has); err != nil {
				return err
			}
			switch {
			case has.Lease > c.lease:
				return errLater
			case has.Lease == c.lease && e.Revision() > c.revision:
				c.revision = e.Revision()
				if has.Layout == is.Layout && has.Layout != c.is.Layout {
					c.is = has
					return nil
				}
			} // otherwise the server that was asked lags
		}
		if err := c.plan.pause(ctx, err); err != nil {
			return err
		}
	}
}

// Check returns an error if a later claim exists. Call it directly before an operation on the servers that
// ignores the plan, such as deleting a log.
func (c *Claim) Check(ctx context.Context) error {
	if err := c.write(ctx, c.layout()); err != nil {
		return fmt.Errorf("key %s: %w", layoutKey, err)
	}
	return nil
}

func (c *Claim) layout() Grown {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.is
}

// Grow replaces the claimed layout by the next one.
func (c *Claim) Grow(ctx context.Context, to Grown) error {
	to.Lease = c.lease
	if c.layout().Layout != to.Layout { // otherwise an earlier try has done it
		if err := c.write(ctx, to); err != nil {
			return fmt.Errorf("key %s: %w", layoutKey, err)
		}
	}
	p := c.plan
	p.tell()
	for {
		err := p.Look(ctx)
		if l, _, _ := p.Layout(); l.First >= to.First {
			return nil
		}
		if err == nil { // the server that was asked lags
			err = fmt.Errorf("key %s: it is not there yet", layoutKey)
		}
		if err := p.pause(ctx, err); err != nil {
			return err
		}
	}
}

// change changes a placement: f gets the present one, or nil, and returns the new one; nil removes it. A
// placement of a later claim is db.ErrConflict.
func (c *Claim) change(ctx context.Context, shard int, f func(is *Placement) (*Placement, error)) error {
	p, key := c.plan, shardKey(shard)
	for {
		var is *Placement
		e, err := p.kv.Get(ctx, key)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
		case err != nil:
			return fmt.Errorf("placement of shard %d: %w", shard, err)
		default:
			is = &Placement{}
			if err := json.Unmarshal(e.Value(), is); err != nil {
				return fmt.Errorf("placement of shard %d: %w", shard, err)
			}
			if is.Lease > c.lease {
				return fmt.Errorf("placement of shard %d: %w", shard, errLater)
			}
		}
		to, err := f(is)
		if err != nil {
			return fmt.Errorf("placement of shard %d: %w", shard, err)
		}
		var b []byte
		if to != nil {
			to.Lease = c.lease
			if b, err = json.Marshal(to); err != nil {
				return err
			}
		}
		c.mu.Lock()
		wrote := c.wrote[shard]
		c.mu.Unlock()
		var revision uint64
		switch {
		case is == nil && to == nil && wrote == 0:
			return nil
		case is == nil && to == nil: // the server that was asked lags, or an earlier try has removed it
			err = p.kv.Purge(ctx, key, jetstream.LastRevision(wrote), jetstream.PurgeTTL(marked))
			if changed(err) {
				c.note(shard, 0)
			}
		case is == nil:
			revision, err = p.kv.Create(ctx, key, b)
		case to == nil:
			err = p.kv.Purge(ctx, key, jetstream.LastRevision(e.Revision()), jetstream.PurgeTTL(marked))
		case bytes.Equal(b, e.Value()):
			c.note(shard, e.Revision())
			return nil
		default:
			revision, err = p.kv.Update(ctx, key, b, e.Revision())
		}
		switch {
		case err == nil:
			c.note(shard, revision)
			p.tell()
			return nil
		case !changed(err):
			return fmt.Errorf("placement of shard %d: %w", shard, err)
		}
		// another client has changed it, or the server that was asked lags
		if err := p.pause(ctx, err); err != nil {
			return err
		}
	}
}

// changed reports whether an error says that a key has an unexpected revision.
func changed(err error) bool {
	var refused *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) ||
		errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence
}

// note notes the revision of a placement that the claim has written; 0: the claim has removed it, or another
// client has changed it.
func (c *Claim) note(shard int, revision uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision == 0 {
		delete(c.wrote, shard)
		return
	}
	c.wrote[shard] = revision
}

// Place sets the placement of a shard. It overrides an earlier claim.
func (c *Claim) Place(ctx context.Context, shard int, is Placement) error {
	return c.change(ctx, shard, func(*Placement) (*Placement, error) { return &is, nil })
}

// Take makes the placement of a shard one of this claim, so that an earlier claim cannot remove it, and
// returns it.
func (c *Claim) Take(ctx context.Context, shard int) (is Placement, err error) {
	err = c.change(ctx, shard, func(has *Placement) (*Placement, error) {
		if has == nil {
			return nil, fmt.Errorf("%w: it has none any more: call it again", db.ErrConflict)
		}
		is = *has
		return has, nil
	})
	return is, err
}

// marked is how long the bucket keeps the marker of a removed shard. Markers are read with the plan: servers
// count them among the keys of an answer. After that time servers replace them by their own markers, which
// they keep as long.
var marked = time.Minute

// Remove takes a shard out of the plan: its nodes close it, and keep its folders.
func (c *Claim) Remove(ctx context.Context, shard int) error {
	return c.change(ctx, shard, func(*Placement) (*Placement, error) { return nil, nil })
}
