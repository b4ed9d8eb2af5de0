package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// do appends an operation to the log of a shard and waits for its outcome: nil, or the error of a refusal.
// After an *UnknownError the operation may have been applied, or may yet be; after any other error it has not
// been and will not be.
//
// A message may get into the log several times, because a server that is lost may have stored it without
// acknowledging it. It is applied once.
func (c *Client) do(ctx context.Context, shard int, op *wire.Op) error {
	return c.doBefore(ctx, time.Time{}, shard, op)
}

// doBefore is do, with an error if the operation cannot be appended before a time: the object that it names
// may be removed some time later.
func (c *Client) doBefore(ctx context.Context, late time.Time, shard int, op *wire.Op) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	select {
	case c.pending <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("%d writes are under way: %w", cap(c.pending), context.Cause(ctx))
	}
	defer func() { <-c.pending }()
	for {
		err := c.base(ctx, shard)
		if err == nil {
			op.ID, op.Base = wire.NewID(), c.sees(shard)
			err = c.once(ctx, shard, op, late)
		}
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// errAgain says that an operation was certainly not applied, and may be made again.
var errAgain = errors.New("the operation is made anew")

// base reads the length of a log that the client does not know yet. An operation that comes much later than
// its base is refused.
func (c *Client) base(ctx context.Context, shard int) error {
	if c.sees(shard) > 0 {
		return nil
	}
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		try, cancel := context.WithTimeout(ctx, 2*time.Second)
		info, err := c.logs[shard].Info(try)
		cancel()
		if err == nil {
			c.saw(shard, info.Last)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
	}
}

// once appends an operation that has an ID, or gives up, see doBefore.
func (c *Client) once(ctx context.Context, shard int, op *wire.Op, late time.Time) error {
	data, err := op.Encode()
	if err != nil {
		return err
	}
	if _, err := wire.DecodeOp(data); err != nil { // for example invalid UTF-8, which no replica would read
		return fmt.Errorf("%w: %w", db.ErrInvalid, err)
	}
	if len(data) > journal.MaxMessage {
		late = time.Now().Add(lateAfter)
		if data, err = c.large(ctx, op); err != nil {
			return err
		}
	}
	heard := c.heard.wait(op.ID)
	defer c.heard.forget(op.ID)
	seq, tries, err := c.logs[shard].Append(ctx, op.ID.String(), data, c.heard.subject, late)
	if err != nil && tries > 0 {
		return &UnknownError{op.ID, shard, err}
	}
	if err != nil {
		return err
	}
	o, err := c.outcome(ctx, shard, op.ID, seq, heard)
	switch {
	case err != nil:
		return &UnknownError{op.ID, shard, fmt.Errorf("it is message %d of the log: %w", seq, err)}
	// the only try, and too late
	case errors.Is(o.Err(), wire.ErrExpired) && tries == 1 && op.Base+wire.Memory <= seq:
		c.saw(shard, seq)
		return errAgain
	// this message, or an earlier one of the same ID, may have been applied and forgotten
	case errors.Is(o.Err(), wire.ErrExpired):
		return &UnknownError{op.ID, shard, o.Err()}
	}
	c.saw(shard, max(seq, o.Seq))
	return o.Err()
}

// large stores the changes of an operation as an object, and returns the operation that names it.
func (c *Client) large(ctx context.Context, op *wire.Op) ([]byte, error) {
	b, err := wire.EncodeChanges(op.Changes)
	if err != nil {
		return nil, err
	}
	small := *op
	small.Object, small.Changes = changesObject+op.ID.String(), nil
	sum := sha256.Sum256(b)
	small.Size, small.Sum = int64(len(b)), sum[:]
	if err := (objects{c.js, c.cluster}).put(ctx, small.Object, b); err != nil {
		return nil, err
	}
	return small.Encode()
}

// A Batch collects changes that are made together: all or none. All its items belong to the shard of the
// first key; Commit refuses an item of another shard. Package shard tells which keys share a shard. A Batch
// is for one goroutine.
type Batch struct {
	c       *Collection
	changes []wire.Change
	err     error
	done    bool
}

// NewBatch returns an empty batch.
func (c *Collection) NewBatch() *Batch { return &Batch{c: c} }

// Put adds an item to store. Put does not copy the item: leave it unchanged until Commit returns.
func (b *Batch) Put(item *db.Item) { b.change(wire.Put, item) }

// Merge adds an item to merge.
func (b *Batch) Merge(item *db.Item) { b.change(wire.Merge, item) }

// Delete adds the deletion of an item. A missing item is no error.
func (b *Batch) Delete(key string) { b.change(wire.Delete, &db.Item{Key: key}) }

// PutIf adds an item to store, with the condition of Collection.PutIf, which applies to the whole batch.
func (b *Batch) PutIf(item, old *db.Item) {
	if item != nil {
		b.Expect(item.Key, old)
	}
	b.change(wire.Put, item)
}

// Expect adds a condition: the stored item with the key equals old, or, if old is nil, there is none. All
// conditions are checked before any change of the batch is made.
func (b *Batch) Expect(key string, old *db.Item) {
	b.change(wire.Expect, &db.Item{Key: key})
	if b.err == nil {
		b.changes[len(b.changes)-1].Old = wire.ItemOf(old)
	}
}

// change adds a change. The first error stays, and Commit returns it.
func (b *Batch) change(kind wire.ChangeKind, item *db.Item) {
	switch {
	case b.err != nil:
		return
	case b.done:
		b.err = fmt.Errorf("%w: the batch has been committed", db.ErrInvalid)
		return
	case item == nil:
		b.err = fmt.Errorf("%w: no item", db.ErrInvalid)
		return
	}
	it := wire.ItemOf(item)
	if it.Key == "" && kind == wire.Put && len(b.changes) == 0 {
		it.Key = wire.NewID().String()
	}
	if it.Key == "" {
		b.err = fmt.Errorf("%w: an item without a key", db.ErrInvalid)
		return
	}
	b.changes = append(b.changes, wire.Change{Collection: b.c.name, Kind: kind, Item: it})
	b.err = b.c.client.together(b.changes[0].Item.Key, it.Key)
}

// together refuses a key that does not belong to the shard of the batch's first key.
func (c *Client) together(first, key string) error {
	if of, is := c.of(key), c.of(first); of != is {
		return fmt.Errorf("%w: item %.80q is of shard %d, and the batch of shard %d: only items of one shard are written together", db.ErrInvalid, key, of, is)
	}
	return nil
}

// Commit makes the changes, see Collection.Put. The batch cannot be used again.
func (b *Batch) Commit(ctx context.Context) error {
	if b.err == nil && b.done {
		b.err = fmt.Errorf("%w: the batch has been committed", db.ErrInvalid)
	}
	if b.err != nil {
		return b.err
	}
	b.done = true
	if len(b.changes) == 0 {
		return ctx.Err()
	}
	return b.c.client.do(ctx, b.c.client.of(b.changes[0].Item.Key),
		&wire.Op{Kind: wire.Write, Changes: b.changes})
}

// callFor bounds one call of the servers; then the call is repeated. A lost call never gets an answer.
const callFor = 5 * time.Second

// again calls f, which asks the servers, until f succeeds or fails with a permanent error. The effect of f
// may have happened even if f failed.
func again(ctx context.Context, f func(ctx context.Context) error) error {
	for wait, most := 50*time.Millisecond, callFor/8; ; {
		try, cancel := context.WithTimeout(ctx, most)
		err := f(try)
		cancel()
		if err == nil || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(wait):
		}
		wait, most = min(2*wait, time.Second), min(2*most, callFor)
	}
}

// Codes of JetStream's errors.
const (
	errNoStorage jetstream.ErrorCode = 10047 // no server has storage for a stream
	errNoPeers   jetstream.ErrorCode = 10005 // too few servers for a stream: one is gone or has no room
)

// passes reports whether an error of the servers is transient, as when a server is lost.
func passes(err error) bool {
	var refused *jetstream.APIError
	if errors.As(err, &refused) {
		switch refused.ErrorCode {
		case errNoStorage:
			return false
		case errNoPeers:
			return !strings.Contains(refused.Description, "insufficient storage")
		}
		return refused.Code >= 500
	}
	for _, e := range []error{context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders,
		jetstream.ErrNoStreamResponse, nats.ErrDisconnected, nats.ErrReconnectBufExceeded} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// An order asks a node for an action: a backup, a sweep, or a step of a training or an update.
type order struct {
	Do    string `json:"do"`
	ID    string `json:"id,omitempty"` // lets status say whether the order is being carried out
	Shard int    `json:"shard"`
	Trim  bool   `json:"trim,omitempty"`
	Keep  uint64 `json:"keep,omitempty"`

	// For a training: see internal/replica. Large data goes by objects.
	Session    string   `json:"session,omitempty"`
	Collection string   `json:"collection,omitempty"`
	From       uint64   `json:"from,omitempty"`
	Space      db.Space `json:"space,omitempty"`
	Into       string   `json:"into,omitempty"` // object for the survey, the sum, or the model
	Sum        string   `json:"sum,omitempty"`  // object with a replica.SumOrder
}

// A done is the answer to an order.
type done struct {
	Fault  *wire.Fault  `json:"fault,omitempty"`
	Backed *vault.Entry `json:"backed,omitempty"`
	Status *NodeStatus  `json:"status,omitempty"`
	Going  bool         `json:"going,omitempty"` // for status: the order with the ID is being carried out
}

// admin carries out an order, in a new goroutine.
func (n *Node) admin(m micro.Request) {
	var o order
	if err := json.Unmarshal(m.Data(), &o); err != nil {
		_ = m.RespondJSON(done{Fault: wire.FaultOf(fmt.Errorf("%w: %w", db.ErrInvalid, err))})
		return
	}
	if o.Do == "status" {
		s := n.Status()
		n.mu.Lock()
		going := n.orders[o.ID]
		n.mu.Unlock()
		_ = m.RespondJSON(done{Status: &s, Going: going})
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed { // no client waits for new work
		return
	}
	n.orders[o.ID] = true
	n.done.Go(func() {
		defer func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			delete(n.orders, o.ID)
		}()
		var d done
		var err error
		defer func() {
			if p := recover(); p != nil {
				n.opts.Log.Error("panic in an order", "panic", p)
				_ = m.RespondJSON(done{Fault: wire.FaultOf(fmt.Errorf("%w: panic: %v", wire.ErrAnswer, p))})
			}
		}()
		d.Backed, err = n.carryOut(o)
		d.Fault = wire.FaultOf(err)
		if err := m.RespondJSON(d); err != nil {
			n.opts.Log.Debug("an answer was not sent", "error", err)
		}
	})
}

// carryOut carries out an order on the replica of its shard. Only a backup has a result.
func (n *Node) carryOut(o order) (*vault.Entry, error) {
	n.mu.RLock()
	r := n.replicas[o.Shard]
	n.mu.RUnlock()
	if r == nil {
		return nil, fmt.Errorf("%w: shard %d, node %s", wire.ErrNotHere, o.Shard, n.opts.Node)
	}
	switch o.Do {
	case "backup":
		b, err := r.Backup(n.ctx)
		if err == nil && o.Trim && b.Least > o.Keep {
			err = r.Journal.Trim(n.ctx, b.Least+1-o.Keep)
		}
		return b, err
	case "sweep":
		removed, err := n.sweep(n.ctx, r.Shards)
		if err != nil {
			n.opts.Log.Warn("objects that no log names stay for now", "removed", removed, "error", err)
		} else if removed > 0 {
			n.opts.Log.Info("removed objects that no log names any more", "objects", removed)
		}
		return nil, err
	case "survey", "sum", "model":
		b, err := n.trainingStep(r, o)
		if err != nil {
			return nil, err
		}
		return nil, objects{n.js, n.cluster}.put(n.ctx, o.Into, b)
	case "end":
		r.EndSession(o.Session)
		return nil, nil
	}
	return nil, fmt.Errorf("%w: order %.80q: the node is of another version", db.ErrInvalid, o.Do)
}

// order sends an order to a node and waits until the node has carried it out.
func (c *Client) order(ctx context.Context, node string, o order) (d done, err error) {
	o.ID = wire.NewID().String()
	b, err := json.Marshal(o)
	if err != nil {
		return d, err
	}
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 24*time.Hour)
		defer cancel()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	subject := c.cluster.Admin(node)
	go c.watch(ctx, cancel, subject, o.ID)
	m, err := c.nc.RequestWithContext(ctx, subject, b)
	if err != nil {
		return d, cmp.Or(context.Cause(ctx), err)
	}
	if err := json.Unmarshal(m.Data, &d); err != nil {
		return d, err
	}
	if d.Fault != nil {
		return d, d.Fault
	}
	return d, nil
}

// orderShard sends an order for a shard to its nodes, one after the other, until one has carried it out, or
// has an error that every node would have (wire.Final). It returns that node.
func (c *Client) orderShard(ctx context.Context, o order) (node string, err error) {
	err = fmt.Errorf("%w: no node has it", db.ErrNotFound)
	for _, node = range c.plan.Nodes(o.Shard) {
		if _, err = c.order(ctx, node, o); err == nil || wire.Final(err) {
			break
		}
	}
	return node, err
}

// Limits after which watch gives up an order.
const (
	watchEvery  = 50 * time.Millisecond // between checks whether the servers have refused the order
	watchTicks  = 60                    // checks between questions to the node for its status
	watchFor    = 2 * time.Second       // time for the node to answer
	watchLost   = 2                     // answers in a row that do not know the order
	watchSilent = 3                     // questions in a row without an answer
)

// watch ends an order that will get no answer. The servers ignore a request that the connection may not make.
// The node may have ended in the middle, and the order or the answer may have been lost.
func (c *Client) watch(ctx context.Context, cancel context.CancelCauseFunc, subject, id string) {
	before := c.nc.LastError()
	ask, _ := json.Marshal(order{Do: "status", ID: id})
	silent, lost := 0, 0
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(watchEvery):
		}
		if err := c.nc.LastError(); err != before && journal.Forbidden(c.nc, subject) {
			cancel(fmt.Errorf("%w: publish to %s", nats.ErrPermissionViolation, subject))
			return
		}
		if n%watchTicks != 0 {
			continue
		}
		try, done := context.WithTimeout(ctx, watchFor)
		m, err := c.nc.RequestWithContext(try, subject, ask)
		done()
		if silent++; err == nil {
			silent = 0
			if lost++; going(m.Data) {
				lost = 0
			}
		}
		if lost == watchLost {
			cancel(fmt.Errorf("%w: the node does not carry out the order: it, or the answer, has been lost",
				wire.ErrAnswer))
			return
		}
		if silent == watchSilent {
			cancel(fmt.Errorf("%w: the node has not answered for some seconds", wire.ErrAnswer))
			return
		}
	}
}

// going reports whether a node's answer says that it is carrying out the order.
func going(answer []byte) bool {
	var d done
	return json.Unmarshal(answer, &d) == nil && d.Going
}
