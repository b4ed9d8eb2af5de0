package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// maxModel bounds the file of a model.
const maxModel = 3 << 30

// ImportModel gives every shard a space with a model that db.Collection.ExportModel has written, and its
// items their codes there, by their logs: each replica does so where the operation stands in its log.
// Searches go on meanwhile, by the space that was the active one; writes are taken, and applied when the
// codes are there. With activate the space becomes the active one. It returns when every shard has it.
func (c *Collection) ImportModel(ctx context.Context, r io.Reader, activate bool) error {
	b, err := io.ReadAll(io.LimitReader(r, maxModel+1))
	if err != nil {
		return err
	}
	if len(b) > maxModel {
		return fmt.Errorf("%w: a model of more than %d bytes", db.ErrInvalid, maxModel)
	}
	sum := sha256.Sum256(b)
	name := "model-" + hex.EncodeToString(sum[:])
	if err := (objects{c.client.js, c.client.cluster}).put(ctx, name, b); err != nil {
		return err
	}
	return c.client.onAll(ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.ImportModel, Collection: c.name, Object: name, Activate: activate}
	})
}

// Activate makes a space the active one on every shard, see db.Collection.Activate.
func (c *Collection) Activate(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.ActivateSpace, Collection: c.name, Space: space} })
}

// DropSpace drops a space on every shard, see db.Collection.DropSpace.
func (c *Collection) DropSpace(ctx context.Context, space db.Space) error {
	return c.client.onAll(ctx, func() *wire.Op { return &wire.Op{Kind: wire.DropSpace, Collection: c.name, Space: space} })
}
