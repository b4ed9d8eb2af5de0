package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// comparisons has the digests that were taken at the latest Compare, for whoever compares replicas. An
// earlier one ends: a replica that applies a log with many of them takes one snapshot at a time.
type comparisons struct {
	mu     sync.Mutex
	latest *comparison
}

// A comparison is the digests at one message.
type comparison struct {
	id   wire.ID
	stop context.CancelFunc
	done chan struct{} // closed when all and err are known
	all  []wire.PartDigest
	err  error
}

// compare begins to take the digests of what the database has now. Messages are applied meanwhile.
func (s *State) compare(ctx context.Context, id wire.ID) error {
	s.comparisons.mu.Lock()
	defer s.comparisons.mu.Unlock()
	if last := s.comparisons.latest; last != nil {
		last.stop()
		<-last.done
	}
	snap, err := s.DB.Snapshot()
	if err != nil {
		return err
	}
	c := &comparison{id: id, done: make(chan struct{})}
	ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx)) // closing the database ends it, too
	s.comparisons.latest = c
	go func() {
		defer close(c.done)
		defer c.stop()
		defer func() {
			if p := recover(); p != nil {
				c.err = fmt.Errorf("panic: %v", p)
			}
			if err := snap.Close(); !errors.Is(err, db.ErrClosed) {
				c.err = errors.Join(c.err, err)
			}
		}()
		c.all, c.err = digests(ctx, s.DB, snap)
	}()
	return nil
}

// Digests waits for the digests that the Compare with that ID has taken.
func (s *State) Digests(ctx context.Context, id wire.ID) ([]wire.PartDigest, error) {
	s.comparisons.mu.Lock()
	c := s.comparisons.latest
	s.comparisons.mu.Unlock()
	if c == nil || c.id != id {
		return nil, fmt.Errorf("%w: a comparison that this replica has not begun, or has given up for another one",
			db.ErrNotFound)
	}
	select {
	case <-c.done:
		return c.all, c.err
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: the digests are not complete", wire.ErrBehind)
	}
}

// digests returns a digest of each part of a snapshot: of each collection its schema, labels with their ids,
// items, and the codes and rows of each space. Replicas of a shard have the same ones at the same message. It
// reads the whole database.
func digests(ctx context.Context, d *db.DB, snap *db.Snapshot) (all []wire.PartDigest, err error) {
	names, err := d.Collections()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		c, err := snap.Collection(name)
		if errors.Is(err, db.ErrNotFound) { // created after the snapshot
			continue
		}
		if err == nil {
			err = digest(ctx, c, func(part string, fill func(put func(any) error) error) error {
				h := sha256.New()
				err := fill(json.NewEncoder(h).Encode)
				all = append(all, wire.PartDigest{Part: fmt.Sprintf("%s of %q", part, name), Sum: h.Sum(nil)})
				return err
			})
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func digest(ctx context.Context, c *db.Collection,
	part func(name string, fill func(put func(any) error) error) error) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return err
	}
	err = errors.Join(
		part("schema", func(put func(any) error) error { return put(schema) }),
		part("labels", func(put func(any) error) error { return put(labels) }),
		part("items", func(put func(any) error) error {
			for it, err := range c.Items(ctx, "") {
				if err == nil {
					err = put(it)
				}
				if err != nil {
					return err
				}
			}
			return nil
		}))
	codes := func(c *db.Collection) func(put func(any) error) error {
		return func(put func(any) error) error {
			for coded, err := range c.Codes(ctx, "") {
				if err == nil {
					err = put(coded)
				}
				if err != nil && !errors.Is(err, db.ErrNoModel) {
					return err
				}
			}
			return nil
		}
	}
	if schema.Bits > 0 {
		return errors.Join(err, part("codes", codes(c)))
	}
	for _, s := range spaces {
		in, ierr := c.InSpace(s.Space, 0)
		if errors.Is(ierr, db.ErrBusy) { // it is being built
			continue
		}
		if ierr == nil {
			ierr = part(fmt.Sprintf("codes in space %d", s.Space), codes(in))
		}
		err = errors.Join(err, ierr)
	}
	return err
}
