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
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/event"
)

// CreateOptions are the options of Create.
type CreateOptions struct {
	Shards   int      // many more than nodes: it does not change when nodes are added
	Replicas int      // nodes that have each shard; 0 means 2
	Nodes    []string // nodes that get the shards; nil: the nodes that answer now

	// Servers is the number of NATS servers that keep each log; 0 means 3. With 1, losing that server loses
	// acknowledged writes.
	Servers int

	// From, if not empty, is a place of backups, see NodeOptions.Backups: the cluster starts from the newest
	// backup of each shard there. The backups come from another cluster, or from fddhdb-beam. If Shards is 0
	// or their number, the shards stay as they are, and the nodes must be able to read this place.
	//
	// With another number of Shards each item goes to the shard of its key. Create reads the backups in
	// From, and stores a backup of each new shard in Backups. Meanwhile a folder for temporary files
	// (os.TempDir) holds all items, and the database of one shard. Schemas, models, spaces and their numbers
	// stay. Items that learned projections encode get their codes by the latest revision of the model. The
	// cluster exists only when all is done: if Create was interrupted, call it again.
	From string

	// Backups is the NodeOptions.Backups of the nodes. Create needs it only if Shards differs from the
	// number of shards in From. The place must have no backups of another cluster (db.ErrExists).
	Backups string

	// Progress, unless nil, hears the stages of such a change, "read" and "load", in shards.
	Progress event.Progress

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
	was := 0 // shards of From, if they do not stay
	if o.From != "" {
		has, err := vault.At(o.From).Shards(ctx, maxShards)
		if err != nil {
			return err
		}
		if o.Shards = cmp.Or(o.Shards, has); o.Shards != has {
			was = has
		}
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
	if err := founding(ctx, func(ctx context.Context) error { return absent(ctx, js, c) }); err != nil {
		return err
	}
	if was > 0 {
		if err := reshard(ctx, o, was); err != nil {
			return err
		}
		o.From = o.Backups
	}
	placed, err := begin(ctx, o.From, o.Shards)
	if err != nil {
		return err
	}
	if err := founding(ctx, func(ctx context.Context) error { return clearLogs(ctx, js, c) }); err != nil {
		return err
	}
	for shard := range o.Shards {
		log := journal.Config{Replicas: o.Servers, MaxBytes: o.LogBytes, FirstSeq: placed[shard].Origin + 1}
		if err := founding(ctx, func(ctx context.Context) error {
			return journal.New(js, c, shard).Create(ctx, log)
		}); err != nil {
			return err
		}
	}
	for shard := range placed {
		for i := range o.Replicas {
			placed[shard].Nodes = append(placed[shard].Nodes, o.Nodes[(shard+i)%len(o.Nodes)])
		}
	}
	return founding(ctx, func(ctx context.Context) error {
		return plan.Make(ctx, js, c, plan.Settings{ID: wire.NewID().String(), Shards: o.Shards,
			Replicas: o.Replicas, Servers: o.Servers, Made: time.Now().UTC()}, placed)
	})
}

// foundFor bounds each step of Create: servers that have just started elect a leader for each log and for the
// plan, which takes seconds where they are busy.
const foundFor = time.Minute

func founding(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, foundFor,
		fmt.Errorf("%w: the servers did not agree within %v", context.DeadlineExceeded, foundFor))
	defer cancel()
	return f(ctx)
}

// absent checks that there is no cluster of that name.
func absent(ctx context.Context, js jetstream.JetStream, c names.Cluster) error {
	if _, err := js.AccountInfo(ctx); errors.Is(err, jetstream.ErrJetStreamNotEnabled) ||
		errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
		return fmt.Errorf("%w: start the servers with a store (jetstream)", err)
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		p, err := plan.Open(ctx, js, c)
		if err == nil {
			p.Close()
		}
		return err
	})
	switch {
	case errors.Is(err, db.ErrNotFound):
		return nil
	case err == nil:
		return fmt.Errorf("%w: cluster %s", db.ErrExists, string(c))
	}
	return err
}

// clearLogs removes empty logs that an earlier call has left: they have room set aside.
func clearLogs(ctx context.Context, js jetstream.JetStream, c names.Cluster) error {
	var empty []string
	err := retry.Do(ctx, func(ctx context.Context) error {
		empty = nil
		streams := js.ListStreams(ctx, jetstream.WithStreamListSubject(c.Logs()))
		for s := range streams.Info() {
			if s.State.Msgs == 0 { // journal.Create refuses the others
				empty = append(empty, s.Config.Name)
			}
		}
		return streams.Err()
	})
	if err != nil || len(empty) == 0 {
		return err
	}
	for _, name := range empty {
		err := retry.Do(ctx, func(ctx context.Context) error {
			if err := js.DeleteStream(ctx, name); !errors.Is(err, jetstream.ErrStreamNotFound) {
				return err
			}
			return nil // by a try whose answer was lost
		})
		if err != nil {
			return fmt.Errorf("log %s, which is empty: %w", name, err)
		}
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(2 * time.Second): // so long servers do not see that there is room
		return nil
	}
}

// begin returns the start of each shard: empty, or a backup.
func begin(ctx context.Context, place string, shards int) ([]plan.Placement, error) {
	placed := make([]plan.Placement, shards)
	if place == "" {
		return placed, nil
	}
	from := vault.At(place)
	for shard := range placed {
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
		placed[shard].Base, placed[shard].Origin = e.Backup, e.Position
	}
	return placed, nil
}
