package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// BackupOptions are the options of Client.Backup. The zero value stores backups and nothing else.
type BackupOptions struct {
	// Trim removes from each log the messages that its backup covers, except the latest Keep, once the backup
	// has been read back whole. A node that was away for longer starts from the backup.
	Trim bool
	Keep uint64 // messages; 0 means 10,000. A log with no more messages stays as it is

	// Progress, unless nil, is called with each finished backup.
	Progress func(b Backup)
}

// A Backup is the backup of one shard.
type Backup struct {
	Shard int    // its number
	Node  string // the node that made it
	ID    string
	Items int

	// Position is a sequence of the log: the backup covers at least the messages up to it.
	Position uint64
}

// Backup has one node of each shard store a backup in the place for backups (NodeOptions.Backups) and read it
// back, one shard after the other. Writes and searches go on. The backups are from different moments: each is
// the state of its shard after some message of its log, and has every write that was acknowledged before
// Backup was called. An error names the shards without a backup.
func (c *Client) Backup(ctx context.Context, o BackupOptions) (all []Backup, err error) {
	o.Keep = cmp.Or(o.Keep, 10_000)
	for shard := range c.Shards() {
		b, berr := c.backup(ctx, shard, wire.Order{Trim: o.Trim, Keep: o.Keep}, c.plan.Nodes(shard))
		if berr != nil {
			err = errors.Join(err, fmt.Errorf("shard %d: %w", shard, berr))
			continue
		}
		all = append(all, b)
		if o.Progress != nil {
			o.Progress(b)
		}
	}
	return all, err
}

// backup has one of some nodes make a backup of a shard.
func (c *Client) backup(ctx context.Context, shard int, o wire.Order, nodes []string) (Backup, error) {
	o.Do, o.Shard = wire.Backup, shard
	var errs []error // of all nodes: any of them may be transient
	for _, node := range nodes {
		a, err := c.order(ctx, node, o)
		var b vault.Entry
		if err == nil {
			err = json.Unmarshal(a.Data, &b)
		}
		if err == nil {
			return Backup{Shard: shard, Node: node, ID: b.Backup, Items: b.Items, Position: b.Least}, nil
		}
		errs = append(errs, fmt.Errorf("node %s: %w", node, err))
	}
	if len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%w: no node has it", db.ErrNotFound))
	}
	return Backup{}, errors.Join(errs...)
}
