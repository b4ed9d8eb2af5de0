package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/fddhdb/fddhdb/db"
)

// Digest returns a SHA-256 of everything that an export of the database contains: schemas, labels with their
// ids, items in order, with codes and rows. Replicas of a shard at the same position have the same digest. It
// reads the whole database.
func (s *State) Digest(ctx context.Context) ([]byte, Position, error) {
	var at Position
	snap, err := s.DB.Snapshot()
	if err != nil {
		return nil, at, err
	}
	defer snap.Close()
	if b, err := snap.Mark(positionMark); err == nil {
		if at, err = readPosition(b); err != nil {
			return nil, at, err
		}
	} else if !errors.Is(err, db.ErrNotFound) {
		return nil, at, err
	}
	names, err := s.DB.Collections()
	if err != nil {
		return nil, at, err
	}
	h := sha256.New()
	put := json.NewEncoder(h).Encode
	for _, name := range names {
		c, err := snap.Collection(name)
		if errors.Is(err, db.ErrNotFound) { // created after the snapshot
			continue
		} else if err != nil {
			return nil, at, err
		}
		if err := digest(ctx, c, put); err != nil {
			return nil, at, err
		}
	}
	return h.Sum(nil), at, nil
}

func digest(ctx context.Context, c *db.Collection, put func(any) error) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	labels, err := c.Labels()
	if err != nil {
		return err
	}
	if err := errors.Join(put(c.Name()), put(schema), put(labels)); err != nil {
		return err
	}
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return err
		}
		if err := put(it); err != nil {
			return err
		}
	}
	for coded, err := range c.Codes(ctx, "") {
		if errors.Is(err, db.ErrNoModel) {
			return nil
		} else if err != nil {
			return err
		}
		if err := put(coded); err != nil {
			return err
		}
	}
	return nil
}
