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

// NodeStatus is the state of a node.
type NodeStatus struct {
	Node   string          `json:"node"`
	Since  time.Time       `json:"since"`
	Shards []ReplicaStatus `json:"shards"`
}

// A ReplicaStatus is the state of a replica.
type ReplicaStatus struct {
	Shard      int    `json:"shard"`
	Applied    uint64 `json:"applied"`           // sequence of the last applied message
	Chain      uint64 `json:"chain"`             // a hash of the applied messages: equal for replicas at the same sequence
	Behind     uint64 `json:"behind"`            // known messages that are not yet applied
	Items      int    `json:"items"`             // in all collections
	Problem    string `json:"problem,omitempty"` // why it cannot follow the log
	Operations uint64 `json:"operations"`        // applied since the start
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
