package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// BackupOptions say what Client.Backup does besides storing backups. The zero value stores them and nothing
// else.
type BackupOptions struct {
	// Trim removes from each log what its backup holds, once that has been read again and is whole, but for
	// the Keep latest messages of it: a node that has been away for longer begins with the backup. Then it
	// removes the objects that no log names any more, which are three hours old, and which a backup two hours
	// ago or earlier has found so, too. If that fails the backups are
	// good all the same: the node that does it logs why, and the next backup with Trim makes up for it.
	Trim bool
	Keep uint64 // messages; 0 means 10,000. A log that has no more stays as it is

	// Progress, unless nil, is called with each backup that is done.
	Progress func(b Backup)
}

// A Backup is the backup of one shard.
type Backup struct {
	Shard int    // its number
	Node  string // that has made it
	ID    string
	Items int

	// Position is the sequence of the log that it goes to, at least.
	Position uint64
}

// Backup has a node of each shard store a backup of it where the nodes have their backups
// (NodeOptions.Backups), one shard after the other, and read it again. Writes and searches go on. The
// backups are of different moments: each is its shard as behind some message of its log. An error names the
// shards that have none.
func (c *Client) Backup(ctx context.Context, o BackupOptions) (all []Backup, err error) {
	o.Keep = cmp.Or(o.Keep, 10_000)
	v := c.view.Load()
	for i := range v.Shards {
		shard := v.Number(i)
		b, berr := c.backup(ctx, shard, order{Trim: o.Trim, Keep: o.Keep})
		if berr != nil {
			err = errors.Join(err, fmt.Errorf("shard %d: %w", shard, berr))
			continue
		}
		all = append(all, b)
		if o.Progress != nil {
			o.Progress(b)
		}
	}
	if o.Trim && len(all) > 0 {
		last := all[len(all)-1]
		_, _ = c.order(ctx, last.Node, order{Do: "sweep", Shard: last.Shard}) // see Trim
	}
	return all, err
}

// backup has one of the nodes of a shard make a backup.
func (c *Client) backup(ctx context.Context, shard int, o order) (Backup, error) {
	node, b, err := c.backed(ctx, shard, o)
	if err != nil {
		return Backup{}, err
	}
	return Backup{Shard: shard, Node: node, ID: b.Backup, Items: b.Items, Position: b.Least}, nil
}

// backed is backup, with all that the node says of it.
func (c *Client) backed(ctx context.Context, shard int, o order) (node string, b *replica.Backed, err error) {
	o.Do, o.Shard = "backup", shard
	var errs []error // of all nodes, as one of them may say that it passes
	for _, node := range c.plan.Nodes(shard) {
		d, err := c.order(ctx, node, o)
		if err == nil && d.Backed != nil {
			return node, d.Backed, nil
		}
		errs = append(errs, fmt.Errorf("node %s: %w", node, cmp.Or(err, error(wire.ErrAnswer))))
	}
	if len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%w: no node has it", db.ErrNotFound))
	}
	return "", nil, errors.Join(errs...)
}
