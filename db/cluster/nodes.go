package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db/cluster/internal/names"
)

// NodeStatus says how a node is.
type NodeStatus struct {
	Node   string          `json:"node"`
	Since  time.Time       `json:"since"`
	Shards []ReplicaStatus `json:"shards"`
}

// A ReplicaStatus says how a replica is.
type ReplicaStatus struct {
	Shard      int    `json:"shard"`
	Applied    uint64 `json:"applied"`           // the sequence of the log that it has come to
	Chain      uint64 `json:"chain"`             // a hash of what it has applied: replicas at one sequence have one
	Behind     uint64 `json:"behind"`            // messages that it knows of and has not applied
	Items      int    `json:"items"`             // of all collections
	Problem    string `json:"problem,omitempty"` // what keeps it from following the log
	Operations uint64 `json:"operations"`        // that it has applied since it was started
}

// Status returns how the node is.
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

// say answers a request to all nodes with the status of this one.
func (n *Node) say(m micro.Request) {
	b, err := json.Marshal(n.Status())
	if err == nil {
		err = m.Respond(b)
	}
	if err != nil {
		n.opts.Log.Debug("an answer was not sent", "error", err)
	}
}

// Nodes returns the nodes of a cluster that answer within a time, by name, and how they are.
func Nodes(ctx context.Context, nc *nats.Conn, cluster string, within time.Duration) ([]NodeStatus, error) {
	return ask(ctx, nc, cluster, within, nil)
}

// Nodes returns how the nodes are that answer within a second: those with shards, and others that were
// opened for the cluster.
func (c *Client) Nodes(ctx context.Context) ([]NodeStatus, error) {
	return ask(ctx, c.nc, string(c.cluster), time.Second, c.plan.All())
}

// grace is how long ask waits for further nodes once all known ones have answered.
const grace = 100 * time.Millisecond

// ask asks all nodes for their status, and waits for answers until within is over. If known is not empty it
// stops earlier: grace after all known nodes have answered.
func ask(ctx context.Context, nc *nats.Conn, cluster string, within time.Duration, known []string) ([]NodeStatus, error) {
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
			break // nobody else answers in time, or nobody listens
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
