package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// What messages of logs name as objects: changes that are too large for a message, and models. Objects of others, of
// a training, have other names.
const (
	changesObject = "op-"
	modelObject   = "model-"
)

// A message that names an object comes into a log within lateAfter, from when storing the object began, or not at all:
// whoever appends it gives up then. So a log that does not name an object that is settled will never name it. Clients
// count the one time, servers the other, and their clocks need not agree on what time it is.
const lateAfter = time.Hour

var settled = 3 * time.Hour // a variable for tests

// mostSwept bounds the objects that one sweep looks at, and so its memory: the oldest come first.
const mostSwept = 100_000

// sweep removes the objects that no log of the cluster names any more: their messages have been trimmed behind
// backups, or never came. It reads what all logs have, whether or not they are those of shards: a shard whose log is
// being divided is named twice. What it cannot read may name anything, so then nothing is removed.
func (n *Node) sweep(ctx context.Context, shards int) (removed int, err error) {
	store := objects{n.js, n.cluster}
	left, err := store.old(ctx, settled, mostSwept, changesObject, modelObject)
	if err != nil || len(left) == 0 {
		return 0, err
	}
	logs, err := journal.Logs(ctx, n.js, n.cluster) // after the objects: what comes into a log from now on names others
	if err != nil {
		return 0, err
	}
	for shard := range shards {
		if stream := n.cluster.Stream(shard); logs[stream] == nil {
			return 0, fmt.Errorf("%w: log %s", db.ErrNotFound, stream)
		}
	}
	for _, log := range logs {
		err := log.All(ctx, func(some []journal.Read) error {
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
			return 0, err
		}
	}
	for _, x := range left {
		if err := store.erase(ctx, x); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
