package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// BackupOptions are the options of Client.Backup. The zero value stores backups and nothing else.
type BackupOptions struct {
	// Trim removes from each log the messages that its backup covers, except the latest Keep, once the backup
	// has been read back whole, and the nodes of the shard find it. A node that was away for longer starts
	// from the backup.
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
// Backup was called. Other nodes of the shard that answer must find the backup, too; only then is the log
// trimmed. An error names the shards without a backup, or with one that a node does not find.
func (c *Client) Backup(ctx context.Context, o BackupOptions) (all []Backup, err error) {
	o.Keep = cmp.Or(o.Keep, 10_000)
	for shard := range c.Shards() {
		b, berr := c.backup(ctx, shard, c.plan.Nodes(shard))
		for try := 1; berr == nil && o.Trim && b.Position > o.Keep; try++ {
			berr = c.trim(ctx, b, o.Keep)
			if try == backupTries || !errors.Is(berr, db.ErrConflict) {
				break
			}
			b, berr = c.backup(ctx, shard, c.plan.Nodes(shard))
		}
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

// backup has one of some nodes make a backup of a shard, which all nodes of the shard must find.
func (c *Client) backup(ctx context.Context, shard int, nodes []string) (Backup, error) {
	var errs []error // of all nodes: any of them may be transient
	for _, node := range nodes {
		b, err := c.backupOn(ctx, shard, node)
		for try := 1; try < backupTries && errors.Is(err, db.ErrConflict); try++ {
			b, err = c.backupOn(ctx, shard, node)
		}
		if err == nil {
			return b, c.shared(ctx, b)
		}
		errs = append(errs, fmt.Errorf("node %s: %w", node, err))
	}
	if len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%w: no node has it", db.ErrNotFound))
	}
	return Backup{}, errors.Join(errs...)
}

// backupTries bounds how often a backup is made while somebody else makes backups, too.
const backupTries = 3

// backupOn has a node make a backup of a shard. If another client has trimmed the log beyond this backup
// meanwhile, that is db.ErrConflict: a replica that began with the backup could not go on with the log.
func (c *Client) backupOn(ctx context.Context, shard int, node string) (b Backup, err error) {
	a, err := c.order(ctx, node, wire.Order{Do: wire.Backup, Shard: shard})
	if err != nil {
		return b, err
	}
	var e vault.Entry
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return b, err
	}
	b = Backup{Shard: shard, Node: node, ID: e.Backup, Items: e.Items, Position: e.Least}
	log, err := c.logs[shard].Info(ctx)
	if err == nil && log.First > b.Position+1 {
		err = fmt.Errorf("%w: the log begins at %d meanwhile, and backup %s goes to %d", db.ErrConflict, log.First,
			b.ID, b.Position)
	}
	return b, err
}

// trim trims a log behind a backup. If somebody else has put the entry of an older one in its place
// meanwhile, that is db.ErrConflict: another backup is needed, for replicas that join.
func (c *Client) trim(ctx context.Context, b Backup, keep uint64) error {
	if err := c.logs[b.Shard].Trim(ctx, b.Position+1-keep); err != nil {
		return err
	}
	a, err := c.order(ctx, b.Node, wire.Order{Do: wire.Find, Shard: b.Shard, File: b.ID})
	if err != nil {
		return err
	}
	var e vault.Entry
	if err := json.Unmarshal(a.Data, &e); err != nil {
		return err
	}
	log, err := c.logs[b.Shard].Info(ctx)
	if err == nil && log.First > e.Least+1 {
		err = fmt.Errorf("%w: the log begins at %d, and the newest backup, %s, goes to %d", db.ErrConflict, log.First,
			e.Backup, e.Least)
	}
	return err
}

// shared checks that all nodes of a shard that answer find a backup: their places may be different ones.
func (c *Client) shared(ctx context.Context, b Backup) error {
	nodes := slices.DeleteFunc(slices.Clone(c.plan.Nodes(b.Shard)),
		func(node string) bool { return node == b.Node })
	return each(ctx, len(nodes), func(ctx context.Context, i int) error {
		ctx, cancel := context.WithTimeout(ctx, findingFor)
		defer cancel()
		for try := 1; ; try++ {
			_, err := c.order(ctx, nodes[i], wire.Order{Do: wire.Find, Shard: b.Shard, File: b.ID})
			var fault *wire.Fault
			if !errors.As(err, &fault) || errors.Is(err, wire.ErrNotHere) { // or it does not answer
				return nil
			}
			if try == backupTries {
				return fmt.Errorf("node %s does not find the backup of node %s; all nodes need the same place for backups: %w",
					nodes[i], b.Node, err)
			}
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Second): // a shared folder may lag
			}
		}
	})
}

const (
	findFor    = 5 * time.Second           // bounds the time of a node that looks for a backup
	findingFor = backupTries * 2 * findFor // bounds the time of a client that asks it, some times
)
