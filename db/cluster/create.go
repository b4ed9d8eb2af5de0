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

// CreateOptions are the options of Create.
type CreateOptions struct {
	Shards   int      // many more than nodes: adding nodes does not change it, only Grow doubles it
	Replicas int      // nodes that have each shard; 0 means 2
	Nodes    []string // nodes that get the shards; nil: the nodes that answer now

	// Servers is the number of NATS servers that keep each log; 0 means 3. With 1, losing that server loses
	// acknowledged writes.
	Servers int

	// From, if not empty, is a place of backups, see NodeOptions.Backups: each shard starts from its newest
	// backup there. The backups come from another cluster, whose logs are lost, or from fddhdb-beam. If that
	// cluster has grown, Create takes its latest growth for which every shard has a backup. Shards is 0 or
	// their number. The nodes must use this place for their backups, or at least be able to read it.
	From string

	// LogBytes bounds each log; 0 means 1 GiB. A full log takes no writes. The servers reserve as much for
	// each shard (max_file_store).
	LogBytes int64
}

// maxShards bounds the shards of a cluster. Each has a key in the plan, and servers list at most 1,024 of its
// keys in an answer.
const maxShards = 1000

// Create makes a cluster: its logs, its plan, and the placement of its shards. The nodes may be running, or
// are opened later. An existing cluster of that name is db.ErrExists. After an interruption call Create
// again.
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
			return fmt.Errorf("%w: %d shards: %s has backups of %d", db.ErrInvalid, o.Shards, o.From,
				layout.Shards)
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
		return fmt.Errorf("%w: %d replicas on %d nodes: start more nodes, or name them", db.ErrInvalid,
			o.Replicas, len(o.Nodes))
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
	return plan.Make(ctx, js, c, plan.Settings{ID: wire.NewID().String(), First: layout.First,
		Shards: o.Shards, Replicas: o.Replicas, Servers: o.Servers, Made: time.Now().UTC()}, placed)
}

// begin returns the start of each shard: empty, or a backup.
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
