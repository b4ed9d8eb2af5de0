package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/event"
)

// An Index is an index of the vectors of a modality, over all shards.
type Index struct {
	Modality string  `json:"modality"`
	Recall   float64 `json:"recall"`  // of searches without Query.Recall
	Shards   int     `json:"shards"`  // that have it, as far as one replica of each has said
	Entries  int     `json:"entries"` // vectors in it

	// Waiting says, by shard, why the latest try to make it has failed: often that no item has such a vector
	// yet. The replica tries again each minute.
	Waiting map[int]string `json:"waiting,omitempty"`

	asked int // shards that are to have it
}

// IndexVectors has every replica index the vectors of a modality, see db.Collection.IndexVectors. A search
// then takes a fraction of the time and has Query.Recall, or the given recall if that is 0. A recall of 0
// means .99. Once IndexVectors has told all shards it waits until one replica of each has the index, or
// cannot make it now.
// Others follow, as those do that join later, and shards that have no such vectors yet; until then the answer
// of a replica is exact. If the context ends early the replicas go on. A node makes one index at a time.
//
// Replicas index for themselves, so two of them may find different items where a search has Approximate. A
// sparse modality, or one that the collection does not have, is db.ErrInvalid.
func (c *Collection) IndexVectors(ctx context.Context, modality string, recall float64,
	progress event.Progress) (*Index, error) {
	recall = cmp.Or(recall, .99)
	err := c.client.onAll(ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.IndexVectors, Collection: c.name, Modality: modality, Recall: recall}
	}, nil)
	if err != nil {
		return nil, err
	}
	ctx, cancel := installing(ctx)
	defer cancel()
	for {
		all, err := c.VectorIndexes(ctx)
		var silent *ShardError // it may come back
		if err != nil && (!errors.As(err, &silent) || ctx.Err() != nil) {
			return nil, err
		}
		if err == nil {
			i := slices.IndexFunc(all, func(x Index) bool { return x.Modality == modality })
			if i < 0 || all[i].asked < c.client.Shards() {
				return nil, fmt.Errorf("%w: index of the vectors of %q: somebody has dropped it", db.ErrNotFound,
					modality)
			}
			x := &all[i]
			if progress != nil {
				progress("index", int64(x.Shards), int64(c.client.Shards()))
			}
			if x.Shards+len(x.Waiting) == c.client.Shards() {
				return x, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the replicas go on without this program: %w", context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// VectorIndexes returns the indexes of vectors that the collection has or is to have, as one replica of each
// shard says.
func (c *Collection) VectorIndexes(ctx context.Context) ([]Index, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, err := c.all(ctx, describe)
	if err != nil {
		return nil, err
	}
	return indexesIn(answers)
}

// indexesIn returns the indexes that descriptions have; those of missing shards are nil.
func indexesIn(answers []*wire.Answer) ([]Index, error) {
	all := []Index{}
	for shard, a := range answers {
		if a == nil {
			continue
		}
		if a.About == nil {
			return nil, wire.ErrAnswer
		}
		for _, x := range a.About.Indexes {
			i := slices.IndexFunc(all, func(o Index) bool { return o.Modality == x.Modality })
			if i < 0 {
				i = len(all)
				all = append(all, Index{Modality: x.Modality, Waiting: map[int]string{}})
			}
			o := &all[i]
			o.asked++
			if o.Recall = max(o.Recall, x.Recall); x.Problem != "" {
				o.Waiting[shard] = x.Problem
			}
			if x.Complete {
				o.Shards, o.Entries = o.Shards+1, o.Entries+x.Entries
			}
		}
	}
	slices.SortFunc(all, func(a, b Index) int { return cmp.Compare(a.Modality, b.Modality) })
	return all, nil
}

// DropVectorIndex has every replica drop the index of the vectors of a modality. If no shard has one, that is
// db.ErrNotFound.
func (c *Collection) DropVectorIndex(ctx context.Context, modality string) error {
	return c.client.dropAll(ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.DropIndex, Collection: c.name, Modality: modality}
	}, fmt.Errorf("%w: index of the vectors of %q", db.ErrNotFound, modality))
}
