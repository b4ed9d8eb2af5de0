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

// The name of an object begins with its kind.
const (
	changesObject = "op-"     // changes too large for a message; the message names the object
	modelObject   = "model-"  // the file of a model; a message names the object
	trainObject   = "train-"  // a part of a training, which removes it
	exportObject  = "export-" // a model for a client, which fetches and then removes it
)

// lateAfter bounds the time from the start of storing an object to appending the message that names it; then
// the client gives up. So if no log names an object older than settled, no log ever will. The client measures
// lateAfter and the servers measure the age of objects, each with its own clock; the clocks need not agree.
const lateAfter = time.Hour

var settled = 3 * time.Hour // a variable for tests

// The servers tell the age of objects, and their clocks may jump. So a sweep removes an object only if an
// earlier sweep of this node found it, too, longer than lateAfter ago by the monotonic clock.
var between = 2 * lateAfter // a variable for tests

// A sweeper remembers the findings of earlier sweeps of a node. It is in memory alone, so it is empty after a
// start.
type sweeper struct {
	mu    sync.Mutex
	found map[found]time.Time // when it was first found
}

// A found is an object that no log names. The same name stored again is another object.
type found struct {
	name string
	seq  uint64
}

// ripe returns the objects that an earlier sweep found long enough ago, and notes the others.
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

// abandoned is the age of an object whose owner was killed before removing it: no owner needs one for so
// long.
var abandoned = 48 * time.Hour // a variable for tests

// mostSwept bounds the objects of one sweep, and so its memory: the oldest come first.
const mostSwept = 100_000

// byNumber orders the names of streams by the number at their end.
func byNumber(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// sweep removes the objects that no log of the cluster names: their messages have been trimmed behind
// backups, or never came. It reads all logs, also of shards that are being split and of their parts. If it
// cannot read a message, it removes no such object, because the message may name any. It also removes
// abandoned objects.
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
	logs, err := journal.Logs(ctx, n.js, n.cluster) // after the objects: a message appended from now on names another object
	if err != nil {
		return removed, err
	}
	for i := range of.Shards {
		if stream := n.cluster.Stream(of.Number(i)); logs[stream] == nil {
			return removed, fmt.Errorf("%w: log %s", db.ErrNotFound, stream)
		}
	}
	// Shards being split come before their parts: a message copied meanwhile is seen in one of them.
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
