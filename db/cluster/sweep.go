package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// The names of objects begin with what they are.
const (
	changesObject = "op-"     // changes that are too large for a message, which names it
	modelObject   = "model-"  // likewise the file of a model
	trainObject   = "train-"  // a part of a training, which removes it
	exportObject  = "export-" // a model for a client, which removes it once it has fetched it
)

// lateAfter is how long after it began to store an object a client may append the message that names it; then
// it gives up. So if no log names an object older than settled, none ever will. The client measures lateAfter
// and the servers measure the age of objects, each with its own clock: the clocks need not show the same
// time.
const lateAfter = time.Hour

var settled = 3 * time.Hour // a variable for tests

// How old an object is the servers say, whose clocks may jump. So an object is removed only by a sweep that
// comes longer than lateAfter, by the clock of the machine that no one sets, after another one by the same
// node that has found it already.
var between = 2 * lateAfter // a variable for tests

// A sweeper knows what earlier sweeps of a node have found. It is in memory alone: after a start it begins
// anew.
type sweeper struct {
	mu    sync.Mutex
	found map[found]time.Time // when it was found first
}

// A found is an object that no log names. One that is stored again under its name is another one.
type found struct {
	name string
	seq  uint64
}

// ripe returns those of the objects that an earlier sweep has found long enough ago, and notes the others.
func (s *sweeper) ripe(all map[string]object) map[string]object {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, noted, ripe := time.Now(), map[found]time.Time{}, map[string]object{}
	for name, o := range all {
		is := found{name, o.seq}
		first, known := s.found[is]
		if !known {
			first = now
		}
		noted[is] = first
		if known && now.Sub(first) >= between {
			ripe[name] = o
		}
	}
	s.found = noted
	return ripe
}

// abandoned is the age of an object whose owner has been killed before it could remove it: nobody needs one
// for so long.
var abandoned = 48 * time.Hour // a variable for tests

// mostSwept bounds the objects that one sweep looks at, and so its memory: the oldest come first.
const mostSwept = 100_000

// byNumber orders the names of streams, which end with a number, by that.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// sweep removes the objects that no log of the cluster names any more: their messages have been trimmed
// behind backups, or never came. It reads all logs, also those of shards that are being split and of their
// parts. A message that it cannot read may name any object: then it removes none of these. It also removes
// objects that were abandoned.
func (n *Node) sweep(ctx context.Context, of plan.Layout) (removed int, err error) {
	store := objects{n.js, n.cluster}
	erase := func(all map[string]object) error {
		for _, x := range all {
			if err := store.erase(ctx, x); err != nil {
				return err
			}
			removed++
		}
		return nil
	}
	gone, err := store.old(ctx, abandoned, mostSwept, trainObject, exportObject)
	if err != nil {
		return 0, err
	}
	left, err := store.old(ctx, settled, mostSwept, changesObject, modelObject)
	if err != nil {
		return 0, err
	}
	logs, err := journal.Logs(ctx, n.js, n.cluster) // after the objects: what comes into a log from now on names others
	if err != nil {
		return removed, err
	}
	for i := range of.Shards {
		if stream := n.cluster.Stream(of.Number(i)); logs[stream] == nil {
			return removed, fmt.Errorf("%w: log %s", db.ErrNotFound, stream)
		}
	}
	// Those that are being split before their parts: what is copied meanwhile is seen in one of them.
	for _, stream := range slices.SortedFunc(maps.Keys(logs), byNumber) {
		err := logs[stream].All(ctx, func(some []journal.Read) error {
			for _, m := range some {
				op, err := wire.DecodeOp(m.Data)
				if err != nil {
					return fmt.Errorf("message %d: %w", m.Seq, err)
				}
				delete(left, op.Object)
			}
			return nil
		})
		if err != nil {
			return removed, err
		}
	}
	maps.Copy(left, gone)
	return removed, erase(n.sweeps.ripe(left))
}
