package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// maxModel bounds the file of a model.
const maxModel = 3 << 30

// ImportModel gives every shard a new space with a model written by db.Collection.ExportModel, and encodes
// the items for it. The operation goes through the logs: each replica applies it at its position. Searches go
// on meanwhile, in the space that is active; writes are accepted, and applied when the codes are complete.
// With activate the new space becomes active. ImportModel returns the number of the space when every shard
// has it.
func (c *Collection) ImportModel(ctx context.Context, r io.Reader, activate bool) (db.Space, error) {
	if r == nil {
		return 0, fmt.Errorf("%w: no model file", db.ErrInvalid)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxModel+1))
	if err != nil {
		return 0, err
	}
	if len(b) > maxModel {
		return 0, fmt.Errorf("%w: a model of more than %d bytes", db.ErrInvalid, maxModel)
	}
	if _, err := fit.UnmarshalFile(b); err != nil { // before a number is taken for it
		return 0, fmt.Errorf("%w: no model file, or one that this program does not read: %w", db.ErrInvalid, err)
	}
	space, _, err := c.createSpace(ctx, b, activate, 0)
	return space, err
}

// createSpace has every shard make a space with the model of a file. fence is the number of the lease under
// which the model was learned; 0: there is none.
func (c *Collection) createSpace(ctx context.Context, file []byte, activate bool, fence uint64) (space db.Space, object string, err error) {
	if space, err = c.number(ctx); err != nil {
		return 0, "", err
	}
	object, err = c.install(ctx, file, wire.Op{Kind: wire.ImportModel, Space: space, Activate: activate, Fence: fence})
	return space, object, err
}

// installFor bounds installing a model, which encodes all items, if the context has no deadline.
const installFor = 6 * time.Hour

// install stores the file of a model as an object, named by its SHA-256, and applies an operation with it on
// every shard.
func (c *Collection) install(ctx context.Context, file []byte, with wire.Op) (name string, err error) {
	if _, has := ctx.Deadline(); !has {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, installFor)
		defer cancel()
	}
	sum := sha256.Sum256(file)
	name = modelObject + hex.EncodeToString(sum[:])
	late := time.Now().Add(lateAfter)
	if err := (objects{c.client.js, c.client.cluster}).put(ctx, name, file); err != nil {
		return name, err
	}
	with.Object, with.Size, with.Sum, with.Collection = name, int64(len(file)), sum[:], c.name
	return name, c.client.onAllBefore(ctx, late, func() *wire.Op { own := with; return &own }, nil)
}

// number takes the next number for a space of the collection. No other model has it on any shard.
func (c *Collection) number(ctx context.Context) (db.Space, error) {
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
			return 0, fmt.Errorf("number of a space of collection %q: %w", c.name, err)
		}
	}
}

// Activate makes a space the active one on every shard, see db.Collection.Activate.
func (c *Collection) Activate(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.ActivateSpace, Collection: c.name, Space: space} }, nil)
}

// DropSpace drops a space on every shard, see db.Collection.DropSpace.
func (c *Collection) DropSpace(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.DropSpace, Collection: c.name, Space: space} }, nil)
}
