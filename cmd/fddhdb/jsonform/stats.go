package jsonform

import (
	"context"

	"github.com/fddhdb/fddhdb/db"
)

// Stats are the statistics of a database, in the form of stats --json.
type Stats struct {
	*db.Stats
	Collections []Collection `json:"collections"` // never null; replaces those of db.Stats
}

// Collection are the statistics of a collection, in the form of stats and collections
// --json.
type Collection struct {
	*db.CollectionStats
	DiskBytes int64 `json:"disk_bytes"` // an estimate, see db.Collection.DiskBytes
}

// NewStats returns the form of the statistics of a database. It aliases s.
func NewStats(ctx context.Context, d *db.DB, s *db.Stats) (*Stats, error) {
	out := &Stats{Stats: s, Collections: make([]Collection, len(s.Collections))}
	for i := range s.Collections {
		c, err := d.Collection(s.Collections[i].Name)
		if err != nil {
			return nil, err
		}
		form, err := NewCollection(ctx, c, &s.Collections[i])
		if err != nil {
			return nil, err
		}
		out.Collections[i] = *form
	}
	return out, nil
}

// NewCollection returns the form of the statistics of a collection. It aliases s.
func NewCollection(ctx context.Context, c *db.Collection, s *db.CollectionStats) (*Collection, error) {
	bytes, err := c.DiskBytes(ctx)
	return &Collection{s, bytes}, err
}
