package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/retry"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"
)

// CreateCollection creates a collection on every shard, see db.DB.CreateCollection. An existing collection
// with the same schema is no error; with another schema it is db.ErrExists. If a shard cannot be reached,
// only some shards may have the collection: call it again.
func (c *Client) CreateCollection(ctx context.Context, name string, schema db.Schema) (*Collection, error) {
	err := c.onAll(ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.CreateCollection, Collection: name,
			Schema: &schema}
	}, nil)
	if err != nil {
		return nil, err
	}
	return c.Collection(name), nil
}

// DropCollection drops a collection on every shard that has it. If no shard has it, that is db.ErrNotFound.
func (c *Client) DropCollection(ctx context.Context, name string) error {
	return c.dropAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.DropCollection, Collection: name} },
		fmt.Errorf("%w: collection %q", db.ErrNotFound, name))
}

// dropAll applies an operation that drops something on every shard that has it. If none has it, that is the
// error none.
func (c *Client) dropAll(ctx context.Context, op func() *wire.Op, none error) error {
	var dropped atomic.Bool
	err := c.onAll(ctx, op, func(err error) error {
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		dropped.Store(true)
		return err
	})
	if err == nil && !dropped.Load() {
		return none
	}
	return err
}

// A Collection is a handle on a collection of a cluster; it holds no resources. All methods are safe for
// concurrent use.
type Collection struct {
	client *Client
	name   string
}

// Collection returns a handle on a collection, which need not exist.
func (c *Client) Collection(name string) *Collection { return &Collection{c, name} }

// Name returns the name of the collection.
func (c *Collection) Name() string { return c.name }

// Put stores an item, see db.Collection.Put. An item without a key gets a random one; Put returns the key.
// Once Put returns nil the item is durable, and all later reads of this client see it.
func (c *Collection) Put(ctx context.Context, item *db.Item) (key string, err error) {
	return c.write(ctx, wire.Put, item)
}

// Merge merges an item into the stored item with its key, see db.Collection.Merge.
func (c *Collection) Merge(ctx context.Context, item *db.Item) (key string, err error) {
	return c.write(ctx, wire.Merge, item)
}

func (c *Collection) write(ctx context.Context, kind wire.ChangeKind, item *db.Item) (key string, err error) {
	b := c.NewBatch()
	b.change(kind, item)
	if err := b.Commit(ctx); err != nil {
		return "", err
	}
	return b.changes[0].Item.Key, nil
}

// PutIf stores an item if the stored item with its key still equals old, or, if old is nil, there is none.
// Otherwise it changes nothing and returns db.ErrConflict. The condition is decided at the write's position
// in the log.
func (c *Collection) PutIf(ctx context.Context, item, old *db.Item) error {
	b := c.NewBatch()
	b.PutIf(item, old)
	return b.Commit(ctx)
}

// Delete deletes the item with a key. A missing item is no error.
func (c *Collection) Delete(ctx context.Context, key string) error {
	b := c.NewBatch()
	b.Delete(key)
	return b.Commit(ctx)
}

// Get returns the item with a key, or db.ErrNotFound.
func (c *Collection) Get(ctx context.Context, key string) (*db.Item, error) {
	return c.get(ctx, key, nil)
}

// get returns the item with a key, with its code in the space of a query; nil is the active one.
func (c *Collection) get(ctx context.Context, key string, in *wire.Query) (*db.Item, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	a, err := c.client.ask(ctx, c.client.of(key), wire.Request{Verb: wire.Get, Collection: c.name, Key: key,
		Query: in})
	if err != nil {
		return nil, err
	}
	return a.Item.Item(), nil
}

// Collections returns the names of the collections, in order. While a collection is being created or dropped,
// it counts as long as any shard has it.
func (c *Client) Collections(ctx context.Context) ([]string, error) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	answers, err := c.Collection("").all(ctx,
		func(int) wire.Request { return wire.Request{Verb: wire.Collections} })
	if err != nil {
		return nil, err
	}
	return namesIn(answers), nil
}

// Schema returns the schema of the collection. It asks the first shard: all shards have the same schema.
func (c *Collection) Schema(ctx context.Context) (db.Schema, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	a, err := c.client.ask(ctx, 0, wire.Request{Verb: wire.Describe, Collection: c.name})
	if err != nil {
		return db.Schema{}, err
	}
	if a.About == nil {
		return db.Schema{}, wire.ErrAnswer
	}
	return a.About.Schema, nil
}

// A Space is a space of codes of a collection, summed over all shards.
type Space struct {
	Space    db.Space          `json:"space"`
	State    report.SpaceState `json:"state"` // the earliest of all shards: building, standby, active
	Bits     int               `json:"bits"`
	Revision uint32            `json:"revision"` // the lowest in use of all shards
	Items    int               `json:"items"`    // items with a code in it
	// shards that have it: fewer than all while it is created or dropped
	Shards int `json:"shards"`
}

// Spaces returns the spaces of codes of the collection, by number.
func (c *Collection) Spaces(ctx context.Context) ([]Space, error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, err := c.all(ctx, describe)
	if err != nil {
		return nil, err
	}
	return spacesIn(answers)
}

// describe asks a shard to describe the collection.
func describe(int) wire.Request { return wire.Request{Verb: wire.Describe} }

// spacesIn returns the spaces that descriptions have; those of missing shards are nil.
func spacesIn(answers []*wire.Answer) (all []Space, err error) {
	for _, a := range answers {
		if a == nil {
			continue
		}
		if a.About == nil {
			return nil, wire.ErrAnswer
		}
		for _, s := range a.About.Spaces {
			i := slices.IndexFunc(all, func(o Space) bool { return o.Space == s.Space })
			if i < 0 {
				all = append(all, Space{Space: s.Space, State: s.State, Bits: s.Bits, Revision: s.Revision,
					Items: s.Items, Shards: 1})
				continue
			}
			o := &all[i]
			o.Items, o.Shards, o.Revision = o.Items+s.Items, o.Shards+1, min(o.Revision, s.Revision)
			if progress(s.State) < progress(o.State) {
				o.State = s.State
			}
		}
	}
	slices.SortFunc(all, func(a, b Space) int { return cmp.Compare(a.Space, b.Space) })
	return all, nil
}

// progress orders the states of a space.
func progress(s report.SpaceState) int {
	return slices.Index([]report.SpaceState{report.SpaceBuilding, report.SpaceStandby, report.SpaceActive}, s)
}

// ImportModel gives every shard a new space with a model written by db.Collection.ExportModel, and encodes
// the items for it. Searches go on meanwhile, in the space that is active, and so do writes, which wait some
// tens of milliseconds for codes of other items. With activate the new space becomes active when it is
// complete on all shards; the first space of a collection does so in any case, shard by shard. ImportModel
// returns the number of the space. After an error a space without all codes is dropped, or completed if a
// shard uses it, at the latest by the next ImportModel or Train; one with all codes stands by for Activate.
// While another model is learned or installed, it is db.ErrBusy.
func (c *Collection) ImportModel(ctx context.Context, r io.Reader, activate bool) (db.Space, error) {
	if r == nil {
		return 0, fmt.Errorf("%w: no model file", db.ErrInvalid)
	}
	b, err := io.ReadAll(io.LimitReader(r, wire.MaxOp+1))
	if err != nil {
		return 0, err
	}
	if len(b) > wire.MaxOp {
		return 0, fmt.Errorf("%w: a model of more than %d bytes", db.ErrInvalid, wire.MaxOp)
	}
	if _, err := fit.UnmarshalFile(b); err != nil { // before a number is taken for it
		return 0, fmt.Errorf("%w: no model file, or one that this program does not read: %w", db.ErrInvalid,
			err)
	}
	l, err := c.lease(ctx, "import of a model")
	if err != nil {
		return 0, err
	}
	defer l.end(c.client)
	return c.createSpace(l, b, activate)
}

// createSpace gives every shard a space with the model of a file, under a lease.
func (c *Collection) createSpace(l *lease, file []byte, activate bool) (db.Space, error) {
	ctx, cancel := installing(l.ctx)
	defer cancel()
	if err := c.settle(ctx, l); err != nil {
		return 0, err
	}
	space, err := c.number(ctx)
	if err != nil {
		return 0, err
	}
	err = c.install(ctx, file, wire.Op{Kind: wire.ImportModel, Space: space, Fence: l.number})
	if err == nil {
		all := make([]int, c.client.Shards())
		for shard := range all {
			all[shard] = shard
		}
		err = c.build(ctx, l, space, all)
	}
	if err == nil && activate {
		err = c.client.onAll(ctx, func() *wire.Op {
			return &wire.Op{Kind: wire.ActivateSpace, Collection: c.name, Space: space, Fence: l.number}
		}, nil)
		if err == nil {
			err = c.settle(ctx, l) // one that was in use
		}
	}
	if err != nil {
		rest, cancel := c.client.within(context.WithoutCancel(ctx))
		defer cancel()
		_ = c.settle(rest, l) // otherwise the next one does it
		return 0, err
	}
	return space, nil
}

// settle ends what killed trainers have left: a space that not all shards have, or have built. It is dropped,
// unless a shard uses it, as it does the first space of a collection: then the shards that have begun
// complete it.
func (c *Collection) settle(ctx context.Context, l *lease) error {
	answers, err := c.all(ctx, describe)
	if err != nil {
		return err
	}
	building, active, complete := map[db.Space][]int{}, map[db.Space]bool{}, map[db.Space]int{}
	for shard, a := range answers {
		if a.About == nil {
			return wire.ErrAnswer
		}
		for _, s := range a.About.Spaces {
			if complete[s.Space]++; s.State == report.SpaceBuilding {
				complete[s.Space]--
				building[s.Space] = append(building[s.Space], shard)
			}
			active[s.Space] = active[s.Space] || s.State == report.SpaceActive
		}
	}
	for space, n := range complete {
		switch {
		case n == len(answers):
		case active[space]:
			err = c.build(ctx, l, space, building[space])
		default:
			err = c.drop(ctx, l, space)
		}
		if err != nil {
			return fmt.Errorf("space %d, which another training has left: %w", space, err)
		}
	}
	return nil
}

// build has shards complete a space.
func (c *Collection) build(ctx context.Context, l *lease, space db.Space, shards []int) error {
	return each(ctx, len(shards), func(ctx context.Context, i int) error {
		return c.buildOne(ctx, shards[i], wire.Op{Kind: wire.BuildSpace, Collection: c.name, Space: space,
			Fence: l.number})
	})
}

// drop drops a space on the shards that have it.
func (c *Collection) drop(ctx context.Context, l *lease, space db.Space) error {
	return c.client.onAll(ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.DropSpace, Collection: c.name, Space: space, Fence: l.number}
	}, func(err error) error {
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		return err
	})
}

// Writes to a shard wait while it makes the codes of one operation: about buildFor.
const (
	buildFor  = 20 * time.Millisecond
	leastRows = 256
)

// buildOne has a shard make the codes of a space, some rows at a time, until it is complete.
func (c *Collection) buildOne(ctx context.Context, shard int, op wire.Op) error {
	for rows := uint64(leastRows); ; {
		op.Rows += rows
		begin, some := time.Now(), op
		if err := c.client.do(ctx, shard, &some); err != nil {
			return err
		}
		took := time.Since(begin)
		a, err := c.client.ask(ctx, shard, wire.Request{Verb: wire.Describe, Collection: c.name})
		if err != nil {
			return err
		}
		if a.About == nil {
			return wire.ErrAnswer
		}
		i := slices.IndexFunc(a.About.Spaces, func(s wire.Space) bool { return s.Space == op.Space })
		if i < 0 {
			return fmt.Errorf("%w: space %d of collection %q: it has been dropped", db.ErrNotFound, op.Space,
				c.name)
		}
		if a.About.Spaces[i].State != report.SpaceBuilding {
			return nil
		}
		if took < buildFor {
			rows *= 2
		} else {
			rows = max(rows/2, leastRows)
		}
	}
}

// installFor bounds installing a model, which encodes all items, if the context has no deadline.
const installFor = 6 * time.Hour

func installing(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, installFor)
}

// install applies an operation with the file of a model on every shard.
func (c *Collection) install(ctx context.Context, file []byte, with wire.Op) error {
	ctx, cancel := installing(ctx)
	defer cancel()
	with.File, with.Collection = file, c.name
	return c.client.onAll(ctx, func() *wire.Op { own := with; return &own }, nil)
}

// number takes the next number for a space of the collection. No other model has it on any shard.
func (c *Collection) number(ctx context.Context) (n db.Space, err error) {
	err = retry.Do(ctx, func(ctx context.Context) error {
		n, err = c.tryNumber(ctx)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("number of a space of collection %q: %w", c.name, err)
	}
	return n, nil
}

func (c *Collection) tryNumber(ctx context.Context) (db.Space, error) {
	kv, err := c.client.js.KeyValue(ctx, c.client.cluster.Bucket())
	if err != nil {
		return 0, err
	}
	key := "space." + wireName(c.name)
	for {
		e, err := kv.Get(ctx, key)
		n := uint64(1)
		switch {
		case errors.Is(err, jetstream.ErrKeyNotFound):
			// Shards that started from databases may have spaces already.
			var there []Space
			if there, err = c.Spaces(ctx); err == nil {
				for _, s := range there {
					n = max(n, uint64(s.Space)+1)
				}
				_, err = kv.Create(ctx, key, strconv.AppendUint(nil, n, 10))
			}
		case err == nil:
			if n, err = strconv.ParseUint(string(e.Value()), 10, 32); err == nil {
				n++
				_, err = kv.Update(ctx, key, strconv.AppendUint(nil, n, 10), e.Revision())
			}
		}
		if err == nil {
			return db.Space(n), nil
		}
		if !errors.Is(err, jetstream.ErrKeyExists) { // otherwise another client has taken it: take the next
			return 0, err
		}
	}
}

// Activate makes a space the active one on every shard, see db.Collection.Activate.
func (c *Collection) Activate(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx,
		func() *wire.Op { return &wire.Op{Kind: wire.ActivateSpace, Collection: c.name, Space: space} }, nil)
}

// DropSpace drops a space on every shard, see db.Collection.DropSpace.
func (c *Collection) DropSpace(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx,
		func() *wire.Op { return &wire.Op{Kind: wire.DropSpace, Collection: c.name, Space: space} }, nil)
}

// ExportModel writes the file of the model of a space, with all updates so far; 0 is the active space. The
// file is for ImportModel of a database or of another cluster, or for a program that encodes with the model.
// See db.Collection.ExportModel.
func (c *Collection) ExportModel(ctx context.Context, w io.Writer, space db.Space) error {
	if w == nil {
		return fmt.Errorf("%w: nothing to write the model to", db.ErrInvalid)
	}
	of, err := c.revisions(ctx, space)
	if err != nil {
		return err
	}
	b, err := c.modelOf(ctx, of)
	if err != nil {
		return err
	}
	_, err = w.Write(b)
	return err
}

// revisions are the revisions of a space on the shards. They differ only while a revision is being installed,
// or after an update that has not reached all shards.
type revisions struct {
	space          db.Space
	least, highest uint32
	shard          int // that has the highest revision
}

// revisions returns the revisions of a space; 0 is the active one.
func (c *Collection) revisions(ctx context.Context, space db.Space) (r revisions, err error) {
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	answers, err := c.all(ctx, describe)
	if err != nil {
		return r, err
	}
	r.space = space
	for shard, a := range answers {
		if a.About == nil {
			return r, wire.ErrAnswer
		}
		if a.About.Schema.Bits > 0 {
			return r, fmt.Errorf("%w: collection %q has no model: its items bring their codes", db.ErrInvalid,
				c.name)
		}
		i := slices.IndexFunc(a.About.Spaces, func(s wire.Space) bool {
			return s.Space == r.space || r.space == 0 && s.State == report.SpaceActive
		})
		if i < 0 && space == 0 {
			return r, fmt.Errorf("%w: collection %q: train it first", db.ErrNoModel, c.name)
		} else if i < 0 {
			return r, fmt.Errorf("%w: space %d of collection %q", db.ErrNotFound, space, c.name)
		}
		s := a.About.Spaces[i]
		r.space = s.Space // the same space on all shards, even if another one is activated meanwhile
		if shard == 0 || s.Revision < r.least {
			r.least = s.Revision
		}
		if s.Revision > r.highest {
			r.highest, r.shard = s.Revision, shard
		}
	}
	return r, nil
}

// modelOf fetches the file of the model of a space, from a node of the shard with the highest revision.
func (c *Collection) modelOf(ctx context.Context, of revisions) ([]byte, error) {
	a, _, err := c.client.orderShard(ctx, wire.Order{Do: wire.Model, Shard: of.shard, Collection: c.name,
		Space: of.space, From: c.client.sees(of.shard)}, nil)
	if err != nil {
		return nil, fmt.Errorf("model of space %d of collection %q: shard %d: %w", of.space, c.name, of.shard,
			err)
	}
	return a.Data, nil
}
