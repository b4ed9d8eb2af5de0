package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// NodeOptions are the options of Open.
type NodeOptions struct {
	Cluster string     // name of the cluster, which may be created later
	Node    string     // name of the node, unique in the cluster, and the same at each Open
	Dir     string     // folder for its shards; Open creates it
	Conn    *nats.Conn // the caller's, see ConnectNATS; close it after the node

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
	busy    atomic.Int64 // requests in progress
	began   time.Time
	parts   parts

	ctx  context.Context // ends with Close
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.RWMutex
	replicas map[int]*replica.Replica
	retired  map[int]*replica.Replica // being closed
	orders   map[wire.ID]bool         // in progress
	gone     chan struct{}            // hears of each retired replica that has been closed
	closed   bool
	turns    chan struct{} // of its replicas at what needs a processor for long
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
		replicas: map[int]*replica.Replica{}, retired: map[int]*replica.Replica{}, orders: map[wire.ID]bool{},
		gone: make(chan struct{}, 1), turns: make(chan struct{}, 1),
	}
	n.ctx, n.stop = context.WithCancel(context.Background())
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
	for shard, r := range n.replicas {
		if !slices.Contains(shards, shard) {
			delete(n.replicas, shard)
			n.retire(shard, r)
		}
	}
	for _, shard := range shards {
		if n.replicas[shard] == nil && n.retired[shard] == nil {
			n.replicas[shard] = replica.Start(replica.Config{
				Cluster: p.Settings.ID, Shard: shard, Shards: p.Settings.Shards,
				Dir:     filepath.Join(n.opts.Dir, fmt.Sprintf("shard-%04d", shard)),
				Options: db.ShareCaches(n.opts.DB, len(shards)),
				Journal: journal.New(n.js, n.cluster, shard), Conn: n.opts.Conn,
				Log: n.opts.Log, Vault: vault.At(n.opts.Backups),
				Base:  func() plan.Placement { return p.Placement(shard) },
				Turns: n.turns,
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
	err := n.service.Stop()
	n.stop()
	n.done.Wait()
	return err
}

// mostRequests bounds the requests that are being answered, or wait for the log.
const mostRequests = 1024

// answerFor bounds the time of one request.
const answerFor = time.Minute

// read answers a request, in a new goroutine.
func (n *Node) read(m micro.Request) {
	respond := func(a *wire.Answer) { n.respond(m, a) }
	q, err := wire.DecodeRequest(m.Data())
	if err != nil {
		respond(&wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %w", db.ErrInvalid, err))})
		return
	}
	requests := int64(max(1, len(q.Requests)))
	// a single message may have any number
	if busy := n.busy.Add(requests); busy > mostRequests && busy != requests {
		n.busy.Add(-requests)
		respond(&wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %d requests are waiting", wire.ErrAnswer,
			busy-requests))})
		return
	}
	go func() {
		defer n.busy.Add(-requests)
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		respond(n.answer(ctx, q))
	}()
}

// here is a node as clients in its program see it. Only the caller's context bounds a request.
type here struct{ *Node }

func (n here) Name() string { return n.opts.Node }

func (n here) Ask(ctx context.Context, q *wire.Request, answered func(*wire.Answer)) {
	go func() { answered(n.answer(ctx, q)) }()
}

// answer answers a request. It turns a panic into an answer.
func (n *Node) answer(ctx context.Context, q *wire.Request) (a *wire.Answer) {
	defer func() {
		if p := recover(); p != nil {
			n.opts.Log.Error("panic in a request", "panic", p)
			a = &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: panic: %v", wire.ErrAnswer, p))}
		}
	}()
	switch q.Verb {
	case wire.Rest:
		return n.parts.part(q.ID, q.Offset, int(n.opts.Conn.MaxPayload()))
	case wire.Several:
		if len(q.Requests) > maxShards {
			return &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: %d requests at a time", db.ErrInvalid,
				len(q.Requests)))}
		}
		return n.several(ctx, q.Each())
	}
	r, err := n.replica(q.Shard)
	if err != nil {
		return &wire.Answer{Fault: wire.FaultOf(err)}
	}
	return r.Answer(ctx, q)
}

// several answers requests to several shards in parallel.
func (n *Node) several(ctx context.Context, requests []*wire.Request) *wire.Answer {
	a := &wire.Answer{Answers: make([]*wire.Answer, len(requests))}
	var all sync.WaitGroup
	for i, q := range requests {
		all.Go(func() {
			if q == nil || q.Verb == wire.Several {
				a.Answers[i] = &wire.Answer{Fault: wire.FaultOf(fmt.Errorf("%w: a request within requests",
					db.ErrInvalid))}
			} else {
				a.Answers[i] = n.answer(ctx, q)
			}
		})
	}
	all.Wait()
	return a
}

// serve starts answering requests.
func (n *Node) serve() (err error) {
	n.service, err = micro.AddService(n.opts.Conn, micro.Config{
		Name: "fddhdb-node", Version: "0.1.0", Description: "shards of a cluster of fddhdb",
		Metadata: map[string]string{"cluster": n.opts.Cluster, "node": n.opts.Node}, QueueGroupDisabled: true,
	})
	if err != nil {
		return err
	}
	err = errors.Join(
		n.service.AddEndpoint("nodes", micro.HandlerFunc(n.say),
			micro.WithEndpointSubject(n.cluster.Nodes())),
		n.service.AddEndpoint("admin", micro.HandlerFunc(n.admin),
			micro.WithEndpointSubject(n.cluster.Admin(n.opts.Node))),
		n.service.AddEndpoint("read", micro.HandlerFunc(n.read),
			micro.WithEndpointSubject(n.cluster.Read(n.opts.Node))),
	)
	if err != nil {
		return errors.Join(err, n.service.Stop())
	}
	return nil
}

// NodeStatus is the state of a node.
type NodeStatus struct {
	Node   string          `json:"node"`
	Since  time.Time       `json:"since"`
	Shards []ReplicaStatus `json:"shards"`
}

// A ReplicaStatus is the state of a replica.
type ReplicaStatus struct {
	Shard   int    `json:"shard"`
	Applied uint64 `json:"applied"` // sequence of the last applied message
	// a hash of the applied messages: equal for replicas at the same sequence
	Chain      uint64 `json:"chain"`
	Behind     uint64 `json:"behind"`            // known messages that are not yet applied
	Items      int    `json:"items"`             // in all collections
	Problem    string `json:"problem,omitempty"` // why it cannot follow the log
	Operations uint64 `json:"operations"`        // applied since the start
	// messages of the log, since the start, that were no operations, and changed nothing
	Unread uint64 `json:"unread,omitempty"`
	// the message that cannot be applied, as Problem says; 0: none
	Stopped uint64 `json:"stopped,omitempty"`
	// the last message of a day (UTC) for which all that the replica had was read; 0: none so far
	Checked uint64 `json:"checked,omitempty"`
	Sum     uint64 `json:"sum,omitempty"` // a digest of it: equal for replicas at the same Checked
}

// Status returns the state of the node.
func (n *Node) Status() NodeStatus {
	s := NodeStatus{Node: n.opts.Node, Since: n.began, Shards: []ReplicaStatus{}}
	n.mu.RLock()
	all := maps.Clone(n.replicas)
	n.mu.RUnlock()
	for _, shard := range slices.Sorted(maps.Keys(all)) {
		s.Shards = append(s.Shards, ReplicaStatus(all[shard].Status()))
	}
	return s
}

// say answers a status request to all nodes.
func (n *Node) say(m micro.Request) {
	b, err := json.Marshal(n.Status())
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		n.opts.Log.Debug("an answer was not sent", "error", err)
	}
}

// Nodes returns the state of the nodes of a cluster that answer within a time, by name.
func Nodes(ctx context.Context, nc *nats.Conn, cluster string, within time.Duration) ([]NodeStatus, error) {
	return ask(ctx, nc, cluster, within, nil)
}

// Nodes returns the state of the nodes that answer within a second, with or without shards.
func (c *Client) Nodes(ctx context.Context) ([]NodeStatus, error) {
	return ask(ctx, c.nc, string(c.cluster), time.Second, c.plan.All())
}

// grace is how long ask waits for further nodes once all known ones have answered.
const grace = 100 * time.Millisecond

// ask asks all nodes for their status, and waits for answers until within is over. If known is not empty it
// stops earlier: grace after all known nodes have answered.
func ask(ctx context.Context, nc *nats.Conn, cluster string, within time.Duration,
	known []string) ([]NodeStatus, error) {
	if err := names.Check("cluster", cluster); err != nil {
		return nil, err
	}
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := nc.PublishRequest(names.Cluster(cluster).Nodes(), inbox, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var all []NodeStatus
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break // no more answers in time, or no node listens
		}
		var s NodeStatus
		if json.Unmarshal(m.Data, &s) != nil {
			continue
		}
		all = append(all, s)
		if i := slices.Index(known, s.Node); i >= 0 {
			if known = slices.Delete(known, i, i+1); len(known) == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, grace)
				defer cancel()
			}
		}
	}
	slices.SortFunc(all, func(a, b NodeStatus) int { return cmp.Compare(a.Node, b.Node) })
	return all, nil
}
