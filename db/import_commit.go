package db

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// Commit stores the items that have been put, in one commit, as Batch.Commit does where
// all are new, and as it would item by item otherwise: then they may take MaxBatchBytes, or
// see ImportOptions.InParts. When it returns nil everything is durable and visible, and
// what was staged is gone. With another error than ErrFailed nothing is visible, what is
// staged stays, and Commit can be called again.
//
// Where an earlier process was interrupted after it had committed the import, Rows and
// Items are those of all of it, and Commit only says so: nothing is stored twice.
func (im *Import) Commit(ctx context.Context) error {
	im = im.orNone()
	if err := im.usable(); err != nil {
		return err
	}
	d := im.c.db
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	if err := d.state.Engine.Log.Err(); err != nil {
		return err
	}
	if !im.spool.Committed() {
		err := im.settle()
		if err == nil {
			err = im.commit(ctx)
		}
		if err != nil {
			return fault.Annotate(d.state.Engine.FullDisk(err), "import into collection %q", im.c.name)
		}
	}
	if err := im.remove(); err != nil {
		d.importLeft(im.spool.Dir(), err)
	}
	return nil
}

// settle makes the staged items durable and readable.
func (im *Import) settle() error {
	desc, err := im.descriptor()
	if err != nil {
		return err
	}
	return im.spool.Settle(desc)
}

// commit stores the items, in one commit if that is possible.
func (im *Import) commit(ctx context.Context) error {
	if im.items.Len() > 0 {
		err := im.items.Commit(ctx, bulk.Options{
			Bytes: im.Bytes(), Promise: im.spool.Promise, Withdraw: im.spool.Withdraw, Progress: im.opt.Progress,
		})
		if !errors.Is(err, bulk.ErrNotBulk) {
			return err
		}
	}
	return im.oneByOne(ctx)
}

// partBytes is about the size of one of several commits.
const partBytes = 64 << 20

// oneByOne stores the items by an ordinary batch, or by several of them. The last is promised.
func (im *Import) oneByOne(ctx context.Context) error {
	most := im.oneCommit
	inParts := im.Bytes() > most
	if inParts {
		if !im.opt.InParts {
			return fault.Invalid("%d bytes of items of which some replace others, or have the same key: at most %d bytes of such can be stored in one commit: split them, or import only new items",
				im.Bytes(), most)
		}
		most = min(most, partBytes)
	}
	b := im.c.db.NewBatch()
	b.single = true
	if names := im.items.Labels.All(); len(names) > 0 {
		if err := b.RegisterLabels(im.c, names); err != nil {
			return err
		}
	}
	k := im.items
	err := k.Each(ctx, bulk.RecordPart|bulk.VectorPart, 0, k.Len(), func(i int, it *record.Item) error {
		if inParts && int64(b.bytes) >= most {
			if err := b.Commit(ctx); err != nil {
				return err
			}
			b = im.c.db.NewBatch()
			b.single = true
			if im.opt.Progress != nil {
				im.opt.Progress("storing", int64(i), int64(k.Len()))
			}
		}
		own := it.Clone()
		k.SetKeyAndCode(i, own)
		b.changes = append(b.changes, &state.Change{Collection: im.c.id, Kind: state.PutItem, Item: own})
		b.bytes += own.Bytes()
		return nil
	})
	if err != nil {
		return err
	}
	b.staged = im.spool
	return b.Commit(ctx)
}
