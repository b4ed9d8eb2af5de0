package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
)

// NodeOptions are the options of Open.
type NodeOptions struct {
	Cluster string     // name of the cluster, which may be created later
	Node    string     // name of the node, unique in the cluster, and the same at each Open
	Dir     string     // folder for its shards; Open creates it
	Conn    *nats.Conn // the caller's, see ConnectNATS; close it after the node

	// Conns are further connections of the caller, best one to each server, see ConnectEach. Requests then
	// pass only the client's server, not two.
	Conns []*nats.Conn

	// Backups is the place for backups of shards, the same for all nodes: the path of a shared folder, or
	// s3://BUCKET[/PREFIX], see s3.ParseURL. If it is "" there are no backups, and no replica can join a
	// trimmed log.
	Backups string

	// DB are the options of its databases. They share the caches equally, by the number of shards at the time
	// a database is opened (db.ShareCaches). NoSync is set, because the log is durable. UpdateItems and
	// UpdateInterval are 0, because no replica learns by itself.
	DB db.Options

	Log *slog.Logger // nil: slog.Default()
}

// A Node has some shards of a cluster, applies their logs, and answers requests. Its methods are safe for
// concurrent use.
type Node struct {
	opts    NodeOptions
	cluster names.Cluster
	js      jetstream.JetStream
	service micro.Service
	reads   *nats.Subscription
	busy    atomic.Int64 // requests in progress
	crew    crew
	began   time.Time
	parts   parts
	sweeps  sweeper

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.RWMutex
	replicas map[int]*replica.Replica
	retired  map[int]*replica.Replica // being closed
	orders   map[string]bool          // in progress, by ID
	gone     chan struct{}            // hears of each retired replica that has been closed
	closed   bool
}

// Open makes the program a node of a cluster, until Close. Open returns early: the shards are opened and
// catch up with their logs in the background. Status shows the progress.
func Open(ctx context.Context, o NodeOptions) (*Node, error) {
	if err := errors.Join(names.Check("cluster", o.Cluster), names.Check("node", o.Node)); err != nil {
		return nil, err
	}
	if o.Conn == nil || o.Dir == "" {
		return nil, fmt.Errorf("%w: a node needs a connection and a folder", db.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Log = o.Log.With("cluster", o.Cluster, "node", o.Node)
	o.DB.UpdateItems, o.DB.UpdateInterval, o.DB.ReadOnly = 0, 0, false
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, err
	}
	js, err := jetstream.New(o.Conn)
	if err != nil {
		return nil, err
	}
	n := &Node{
		opts: o, cluster: names.Cluster(o.Cluster), js: js, began: time.Now(),
		replicas: map[int]*replica.Replica{}, retired: map[int]*replica.Replica{}, orders: map[string]bool{}, gone: make(chan struct{}, 1),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
	n.crew = crew{work: make(chan func()), end: n.ctx.Done()}
	if err := n.serve(); err != nil {
		n.stop()
		return nil, err
	}
	n.done.Go(n.follow)
	return n, nil
}

// follow opens and closes replicas as the plan says, until Close.
func (n *Node) follow() {
	p := n.plan()
	if p == nil {
		return
	}
	defer p.Close()
	for {
		shards, changed := p.Of(n.opts.Node)
		n.have(p, shards)
		select {
		case <-changed:
		case <-n.gone: // the plan may give its shard to the node again
		case <-n.ctx.Done():
			return
		}
	}
}

// plan waits for the plan of the cluster. It returns nil if the node is closed first.
func (n *Node) plan() *plan.Plan {
	for said := false; ; said = true {
		ctx, cancel := context.WithTimeout(n.ctx, 5*time.Second)
		p, err := plan.Open(ctx, n.js, n.cluster)
		cancel()
		if err == nil {
			return p
		}
		if !said {
			n.opts.Log.Info("waiting for the cluster", "error", err)
		}
		select {
		case <-n.ctx.Done():
			return nil
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// have opens the missing replicas of the shards, and closes replicas of all other shards. It keeps their
// folders: a mistake in the plan must not delete data.
func (n *Node) have(p *plan.Plan, shards []int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return
	}
	split := func(shard int) string {
		if is := p.Placement(shard); is.Split {
			return is.Base
		}
		return ""
	}
	for shard, r := range n.replicas {
		if !slices.Contains(shards, shard) || r.Split != split(shard) { // or the shard has been split again
			delete(n.replicas, shard)
			n.retire(shard, r)
		}
	}
	for _, shard := range shards {
		if n.replicas[shard] == nil && n.retired[shard] == nil {
			layout, _ := p.Settings.Of(shard)
			n.replicas[shard] = replica.Start(replica.Config{
				Cluster: p.Settings.ID, Shard: shard, Layout: layout, Parent: p.Settings.Parent(shard), Split: split(shard), Dir: filepath.Join(n.opts.Dir, fmt.Sprintf("shard-%04d", shard)), Options: db.ShareCaches(n.opts.DB, len(shards)),
				Journal: journal.New(n.js, n.cluster, shard), Conn: n.opts.Conn, Fetch: objects{n.js, n.cluster}.fetch, Log: n.opts.Log,
				Vault: vault.At(n.opts.Backups), Base: func() plan.Placement { return p.Placement(shard) },
			})
		}
	}
}

func (n *Node) retire(shard int, r *replica.Replica) {
	n.retired[shard] = r
	n.done.Go(func() {
		if err := r.Close(); err != nil {
			n.opts.Log.Warn("closing a shard", "shard", shard, "error", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.retired, shard)
		select {
		case n.gone <- struct{}{}:
		default:
		}
	})
}

// Close ends the node. It takes no more requests, answers those in progress, and closes the databases.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return db.ErrClosed
	}
	n.closed = true
	for shard, r := range n.replicas {
		delete(n.replicas, shard)
		n.retire(shard, r)
	}
	n.mu.Unlock()
	err := errors.Join(n.reads.Unsubscribe(), n.service.Stop())
	n.stop()
	n.done.Wait()
	return err
}
