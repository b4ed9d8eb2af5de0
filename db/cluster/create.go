package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// CreateOptions are those of Create.
type CreateOptions struct {
	Shards   int      // how many; it does not change with the number of nodes: make many more than there are. Grow doubles them
	Replicas int      // nodes that have each shard; 0 means 2
	Nodes    []string // that have the shards; nil: those that answer now

	// Servers is how many NATS servers keep each log; 0 means 3. With 1 what is acknowledged is lost with
	// that server.
	Servers int

	// From, if not empty, is a place of backups, see NodeOptions.Backups: each shard begins with its newest
	// backup there. The backups are of another cluster, whose logs are lost, or fddhdb-beam has built them.
	// If that cluster has grown, the shards are those of its latest growth for which every shard has a
	// backup. Shards is 0, or their number. The nodes have this place for their backups, too, or can at least
	// read it.
	From string

	// LogBytes is how much a log may hold; 0 means 1 GiB. A log that is full takes no writes. The servers
	// set as much aside, for each shard (max_file_store).
	LogBytes int64
}

// maxShards bounds what a cluster may have: each has a key in the plan, and servers answer with 1,024 keys of
// it at most.
const maxShards = 1000

// Create makes a cluster: its logs, its plan, and where its shards are. The nodes are running, or begin to
// have their shards when they are opened. A cluster of that name is db.ErrExists. If it is interrupted, it
// is called again.
func Create(ctx context.Context, nc *nats.Conn, cluster string, o CreateOptions) error {
	if err := names.Check("cluster", cluster); err != nil {
		return err
	}
	o.Replicas, o.Servers, o.LogBytes = cmp.Or(o.Replicas, 2), cmp.Or(o.Servers, 3), cmp.Or(o.LogBytes, 1<<30)
	layout := plan.Layout{Shards: o.Shards}
	if o.From != "" {
		var err error
		if layout.First, layout.Shards, err = vault.At(o.From).Generation(ctx, maxShards); err != nil {
			return err
		}
		if o.Shards != 0 && o.Shards != layout.Shards {
			return fmt.Errorf("%w: %d shards: %s has backups of %d", db.ErrInvalid, o.Shards, o.From, layout.Shards)
		}
		o.Shards = layout.Shards
	}
	if o.Shards < 1 || o.Shards > maxShards {
		return fmt.Errorf("%w: %d shards: 1 to %d are possible", db.ErrInvalid, o.Shards, maxShards)
	}
	if o.Nodes == nil {
		all, err := Nodes(ctx, nc, cluster, time.Second)
		if err != nil {
			return err
		}
		for _, n := range all {
			o.Nodes = append(o.Nodes, n.Node)
		}
	}
	for i, n := range o.Nodes {
		if err := names.Check("node", n); err != nil {
			return err
		}
		if slices.Contains(o.Nodes[:i], n) {
			return fmt.Errorf("%w: node %s twice", db.ErrInvalid, n)
		}
	}
	if o.Replicas < 1 || o.Replicas > len(o.Nodes) {
		return fmt.Errorf("%w: %d replicas on %d nodes: start more nodes, or name them", db.ErrInvalid, o.Replicas, len(o.Nodes))
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	c := names.Cluster(cluster)
	if p, err := plan.Open(ctx, js, c); err == nil {
		p.Close()
		return fmt.Errorf("%w: cluster %s", db.ErrExists, cluster)
	} else if !errors.Is(err, db.ErrNotFound) {
		return err
	}
	placed, err := begin(ctx, o.From, layout)
	if err != nil {
		return err
	}
	for shard := range o.Shards {
		log := journal.Config{Replicas: o.Servers, MaxBytes: o.LogBytes, FirstSeq: placed[shard].Origin + 1}
		if err := journal.New(js, c, layout.Number(shard)).Create(ctx, log); err != nil {
			return err
		}
	}
	if err := (objects{js, c}).make(ctx, o.Servers); err != nil {
		return err
	}
	for shard := range placed {
		for i := range o.Replicas {
			placed[shard].Nodes = append(placed[shard].Nodes, o.Nodes[(shard+i)%len(o.Nodes)])
		}
	}
	return plan.Make(ctx, js, c, plan.Settings{ID: wire.NewID().String(), First: layout.First, Shards: o.Shards, Replicas: o.Replicas, Servers: o.Servers, Made: time.Now().UTC()}, placed)
}

// begin returns what the shards begin with: nothing, or backups.
func begin(ctx context.Context, place string, l plan.Layout) ([]plan.Placement, error) {
	placed := make([]plan.Placement, l.Shards)
	if place == "" {
		return placed, nil
	}
	from := vault.At(place)
	for i := range placed {
		shard := l.Number(i)
		e, err := from.Entry(ctx, shard)
		if err != nil {
			return nil, err
		}
		repository, err := from.Repository(ctx, shard)
		if err != nil {
			return nil, err
		}
		if _, err := backup.Find(ctx, repository, backup.Choice{ID: e.Backup}); err != nil {
			return nil, fmt.Errorf("shard %d: %w", shard, err)
		}
		placed[i].Base, placed[i].Origin = e.Backup, e.Position
	}
	return placed, nil
}
