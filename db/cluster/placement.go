package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A Placement names the nodes that have a shard.
type Placement struct {
	Shard int // its number
	Nodes []string
}

// Placement returns the nodes of each shard.
func (c *Client) Placement() []Placement {
	all := make([]Placement, c.Shards())
	for shard := range all {
		all[shard] = Placement{shard, slices.Clone(c.plan.Nodes(shard))}
	}
	return all
}

// Move moves a replica of a shard from one node to another. The new node joins by a backup or by the log, and
// serves only when it has caught up; then the old node leaves, as soon as enough others have caught up, too.
// Requests are answered all the time. If the context ends early, both nodes have the shard: call Move again.
// waits, unless nil, hears why Move waits.
func (c *Client) Move(ctx context.Context, shard int, from, to string, waits func(why string)) error {
	if err := c.check(shard); err != nil {
		return err
	}
	if from == to {
		return fmt.Errorf("%w: from node %s to itself", db.ErrInvalid, from)
	}
	if _, err := c.status(ctx, to); err != nil {
		return err
	}
	replicas, added := 0, false // replicas that stay
	err := c.place(ctx, shard, func(nodes []string) ([]string, error) {
		if !slices.Contains(nodes, from) {
			return nil, fmt.Errorf("%w: shard %d on node %s", db.ErrNotFound, shard, from)
		}
		if added && slices.Contains(nodes, to) { // the answer was lost
			return nodes, nil
		}
		replicas = min(c.plan.Settings.Replicas, len(nodes))
		if !slices.Contains(nodes, to) {
			added = true
			return append(nodes, to), nil
		}
		if len(nodes) <= replicas {
			return nil, fmt.Errorf("%w: node %s has shard %d already: too few would stay of %q", db.ErrInvalid, to,
				shard, nodes)
		}
		return nodes, nil
	})
	if err != nil {
		return err
	}
	if err := c.caughtUp(ctx, shard, to, waits); err != nil {
		return err
	}
	for {
		good, need, err := c.enough(ctx, shard, from, replicas, waits)
		if err != nil {
			return err
		}
		err = c.place(ctx, shard, func(nodes []string) ([]string, error) {
			if !slices.Contains(nodes, to) { // another client moves it
				return nil, fmt.Errorf("%w: shard %d has left node %s meanwhile", db.ErrConflict, shard, to)
			}
			stay := slices.DeleteFunc(slices.Clone(good),
				func(n string) bool { return !slices.Contains(nodes, n) })
			if len(stay) < need {
				return nil, errLeft
			}
			return slices.DeleteFunc(nodes, func(n string) bool { return n == from }), nil
		})
		if !errors.Is(err, errLeft) {
			return err
		}
	}
}

// place changes the nodes of a shard. While servers elect a leader it waits, as long as a request may take.
func (c *Client) place(ctx context.Context, shard int, f func(nodes []string) ([]string, error)) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	return c.plan.Change(ctx, shard, f)
}

// errLeft says that a node that had a shard has left it meanwhile.
var errLeft = errors.New("fddhdb: a node has left the shard")

// caughtUp waits until a node has applied all messages that the log of a shard has now.
func (c *Client) caughtUp(ctx context.Context, shard int, node string, waits func(why string)) error {
	info, err := c.logs[shard].Info(ctx)
	if err != nil {
		return err
	}
	return until(ctx, waits, func() error {
		if why := c.lacks(ctx, shard, node, info.Last); why != "" {
			return fmt.Errorf("shard %d on node %s: %s", shard, node, why)
		}
		return nil
	})
}

// enough waits until so many nodes have caught up with a shard, without a node that is to leave: others may
// be lost, or not complete after a move that was given up. It returns these nodes, and how many of them have
// to stay. If the node that is to leave has not caught up, nothing is lost with it, and one is enough.
func (c *Client) enough(ctx context.Context, shard int, without string, replicas int,
	waits func(why string)) (good []string, need int, err error) {
	info, err := c.logs[shard].Info(ctx)
	if err != nil {
		return nil, 0, err
	}
	err = until(ctx, waits, func() (why error) {
		good, need = nil, replicas
		for _, node := range c.plan.Nodes(shard) {
			lacks := c.lacks(ctx, shard, node, info.Last)
			switch {
			case node == without && lacks != "":
				need = 1
			case node == without:
			case lacks == "":
				good = append(good, node)
			default:
				why = errors.Join(why, fmt.Errorf("shard %d on node %s: %s", shard, node, lacks))
			}
		}
		if len(good) >= need {
			return nil
		}
		return fmt.Errorf("node %s stays, as too few others have the shard: %w", without, why)
	})
	return good, need, err
}

// lacks says what a node lacks of a shard, whose log goes to a sequence; "" is nothing.
func (c *Client) lacks(ctx context.Context, shard int, node string, last uint64) string {
	n, err := c.status(ctx, node)
	if err != nil {
		return err.Error()
	}
	for _, s := range n.Shards {
		switch {
		case s.Shard != shard:
		case s.Problem != "":
			return s.Problem
		case s.Applied < last:
			return fmt.Sprintf("it is at %d of %d", s.Applied, last)
		default:
			return ""
		}
	}
	return "it does not have it yet"
}

// until waits until a check succeeds. waits hears every few seconds why it does not.
func until(ctx context.Context, waits func(why string), check func() error) error {
	for told := time.Now(); ; {
		why := check()
		if why == nil {
			return nil
		}
		if waits != nil && time.Since(told) > 5*time.Second {
			told = time.Now()
			waits(why.Error())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), why)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// status asks one node for its status.
func (c *Client) status(ctx context.Context, node string) (NodeStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	a, err := c.call(ctx, c.cluster.Admin(node), (&wire.Order{Do: wire.Status}).Encode)
	var s NodeStatus
	if err == nil {
		err = json.Unmarshal(a.Data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("node %s does not answer: %w", node, err)
	}
	return s, nil
}

// Drain moves all shards of a node to other nodes, those with the fewest shards first, so that you can shut
// the node down. waits, unless nil, hears why Drain waits.
func (c *Client) Drain(ctx context.Context, node string, waits func(why string)) error {
	all, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	for shard := range c.Shards() {
		nodes := c.plan.Nodes(shard)
		if !slices.Contains(nodes, node) {
			continue
		}
		loads := map[string]int{}
		for s := range c.Shards() {
			for _, n := range c.plan.Nodes(s) {
				loads[n]++
			}
		}
		to := ""
		for _, n := range all {
			// A shard with a node too many is left from a move that was interrupted.
			has, spare := slices.Contains(nodes, n.Node), len(nodes) > c.plan.Settings.Replicas
			if n.Node != node && has == spare && (to == "" || loads[n.Node] < loads[to]) {
				to = n.Node
			}
		}
		if to == "" {
			return fmt.Errorf("%w: no node can take shard %d: those that answer have it already",
				db.ErrInvalid, shard)
		}
		if err := c.Move(ctx, shard, node, to, waits); err != nil {
			return err
		}
	}
	return nil
}

// A lease is an exclusive right. It expires if its holder is silent. A holder that was stopped and resumes
// may believe that it still has the lease. So operations under a lease carry its number, and replicas refuse
// a number lower than one they have seen.
type lease struct {
	js      jetstream.JetStream
	subject string
	name    string
	id      string // of the holder, in the value of the key
	number  uint64 // of the bucket, when it was taken
	stop    context.CancelFunc
	ctx     context.Context // ends when the lease does
	done    chan struct{}
	at      uint64 // revision of the key at the last renewal; end reads it once done is closed
}

const (
	leaseFor   = 20 * time.Second // expiry after the last renewal
	leaseEvery = 4 * time.Second  // between renewals
)

// lagging is how often taking a lease is tried, 0.1 s apart. nats.go asks any server whether the key has been
// deleted, and a server that lags has not seen the deletion.
const lagging = 10

// take takes a lease. If another holder has it, take fails with db.ErrBusy after a second.
func (c *Client) take(ctx context.Context, name string) (*lease, error) {
	var number uint64
	id := wire.NewID().String()
	own := holding(id)
	var kv jetstream.KeyValue
	l := &lease{js: c.js, subject: "$KV." + c.cluster.Bucket() + "." + name, name: name, id: id,
		done: make(chan struct{})}
	soon, cancel := c.within(ctx)
	defer cancel()
	sent := false
	err := retry.Do(soon, func(ctx context.Context) (err error) {
		if kv, err = c.js.KeyValue(ctx, c.cluster.Bucket()); err != nil {
			return err
		}
		for range lagging {
			sent = true
			number, err = kv.Create(ctx, name, own, jetstream.KeyTTL(leaseFor))
			if !errors.Is(err, jetstream.ErrKeyExists) {
				return err
			}
			// from a try whose answer was lost
			if e, gerr := kv.Get(ctx, name); gerr == nil && bytes.Equal(e.Value(), own) {
				number, err = e.Revision(), nil
				return err
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		return err
	})
	if errors.Is(err, jetstream.ErrKeyExists) {
		return nil, fmt.Errorf("%w: %s is going on, or has ended less than %v ago", db.ErrBusy, name,
			leaseFor)
	} else if err != nil {
		if sent { // the key may be there, or come
			l.forget(c, kv)
		}
		return nil, err
	}
	l.number, l.at = number, number
	l.ctx, l.stop = context.WithCancel(ctx)
	go l.keep(kv)
	return l, nil
}

// holding returns the value of a lease's key for the holder with that id.
func holding(id string) []byte {
	return fmt.Appendf(nil, "%s %s", time.Now().UTC().Format(time.RFC3339), id)
}

// keep renews the lease until it ends. If it cannot, it ends the context before another holder can take it.
func (l *lease) keep(kv jetstream.KeyValue) {
	defer close(l.done)
	defer l.stop()
	for heard := time.Now(); ; {
		select {
		case <-l.ctx.Done():
			return
		case <-time.After(leaseEvery):
		}
		begin := time.Now()
		ctx, cancel := context.WithTimeout(l.ctx, leaseEvery)
		err := l.renew(ctx)
		if refused(err) && l.look(ctx, kv) {
			err = l.renew(ctx)
		}
		cancel()
		switch {
		case err == nil:
			heard = begin
		case refused(err): // another holder has it
			return
		case time.Since(heard) > leaseFor-2*leaseEvery:
			return
		}
	}
}

func (l *lease) renew(ctx context.Context) error {
	ack, err := l.js.PublishMsg(ctx, &nats.Msg{Subject: l.subject, Data: holding(l.id)},
		jetstream.WithMsgTTL(leaseFor), jetstream.WithExpectLastSequencePerSubject(l.at))
	if err == nil {
		l.at = ack.Sequence
	}
	return err
}

// refused reports whether an error says that the key has another revision than the holder expects.
func refused(err error) bool {
	var api *jetstream.APIError
	return errors.Is(err, jetstream.ErrKeyExists) || errors.As(err, &api) && api.Code == 400
}

// look reports whether the key has a value of this holder whose acknowledgement was lost, and notes its
// revision.
func (l *lease) look(ctx context.Context, kv jetstream.KeyValue) bool {
	e, err := kv.Get(ctx, l.name)
	if err != nil || e.Revision() <= l.at || !bytes.HasSuffix(e.Value(), []byte(" "+l.id)) {
		return false
	}
	l.at = e.Revision()
	return true
}

// end ends a lease.
func (l *lease) end(c *Client) {
	l.stop()
	<-l.done
	l.release(c)
}

// endFor bounds how long release tries to give the lease back.
const endFor = 5 * time.Second

func (l *lease) release(c *Client) {
	ctx, cancel := context.WithTimeout(context.Background(), endFor)
	defer cancel()
	kv, err := c.js.KeyValue(ctx, c.cluster.Bucket())
	if err != nil {
		return // it expires by itself
	}
	_ = retry.Do(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, endFor/2)
		defer cancel()
		err := kv.Purge(ctx, l.name, jetstream.LastRevision(l.at))
		if refused(err) && l.look(ctx, kv) { // otherwise it has expired, or another holder has it
			err = kv.Purge(ctx, l.name, jetstream.LastRevision(l.at))
		}
		return err
	})
}

// forget ends a lease whose taking had no answer: the servers may have it, or get it in a moment.
func (l *lease) forget(c *Client, kv jetstream.KeyValue) {
	ctx, cancel := context.WithTimeout(context.Background(), endFor)
	defer cancel()
	for range lagging {
		if l.look(ctx, kv) {
			l.release(c)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// wireName returns a name as a part of a bucket key, where few characters are allowed.
func wireName(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:8])
}
