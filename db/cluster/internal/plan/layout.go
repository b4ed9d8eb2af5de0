package plan

import (
	"fmt"
)

// A Layout is the set of shards of a cluster: Shards shards, with numbers from First on. When a cluster
// grows, its shards get new numbers that no shard has had before, and so do their logs, folders and backups.
type Layout struct {
	First  int `json:"first"`
	Shards int `json:"shards"`
}

// Number returns the number of the shard with an index. Package shard maps keys to indexes.
func (l Layout) Number(index int) int { return l.First + index }

// Index returns the index of the shard with a number.
func (l Layout) Index(number int) int { return number - l.First }

// Has reports whether the layout has the shard with a number.
func (l Layout) Has(number int) bool { return number >= l.First && number < l.First+l.Shards }

// Next returns the layout in which each shard is split in two: the items of index i go to i and i+Shards.
func (l Layout) Next() Layout { return Layout{l.First + l.Shards, 2 * l.Shards} }

func (l Layout) Indexes() []int {
	all := make([]int, l.Shards)
	for i := range all {
		all[i] = i
	}
	return all
}

// Parts returns the indexes that the items of an index of l have in a later layout.
func (l Layout) Parts(index int, later Layout) (indexes []int) {
	for ; index < later.Shards; index += l.Shards {
		indexes = append(indexes, index)
	}
	return indexes
}

func (l Layout) String() string { return fmt.Sprintf("shards %d to %d", l.First, l.First+l.Shards-1) }

// Layout returns the layout that a cluster is created with.
func (s Settings) Layout() Layout { return Layout{s.First, s.Shards} }

// Of returns the layout with the shard of a number, and the layout before it, which has no shards if there is
// none.
func (s Settings) Of(number int) (has, before Layout) {
	has = s.Layout()
	for !has.Has(number) && number > has.First {
		has, before = has.Next(), has
	}
	return has, before
}

// Parent returns the number of the shard whose part is the shard with a number.
func (s Settings) Parent(number int) int {
	has, before := s.Of(number)
	return before.Number(has.Index(number) % max(before.Shards, 1))
}

// A Grown is the layout of a cluster that has grown. Writing its one key makes all shards give way to their
// parts.
type Grown struct {
	Layout

	// Starts has for each shard the sequence up to which its log repeats the messages of the earlier shards.
	Starts []uint64 `json:"starts"`

	// Lease is the number of the latest lease under which the cluster grows, or has grown; see Plan.Claim.
	Lease uint64 `json:"lease,omitempty"`
}

// Layout returns the present layout, Grown.Starts, which is nil in a cluster that has not grown, and a
// channel that is closed when the plan has changed.
func (p *Plan) Layout() (l Layout, starts []uint64, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.grown.Layout, p.grown.Starts, p.changed
}
