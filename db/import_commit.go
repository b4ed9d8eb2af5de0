package db

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
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
	return im.items.CommitOneByOne(ctx, bulk.OneByOne{
		Bytes: im.Bytes(), Most: im.oneCommit, InParts: im.opt.InParts, Promise: im.spool.Promise, Progress: im.opt.Progress,
	})
}
