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
	if !im.pledged {
		err := im.settle()
		if err == nil {
			err = im.commit(ctx)
		}
		if err != nil {
			return fault.Annotate(d.state.Engine.FullDisk(err), "import into collection %q", im.c.name)
		}
		im.pledged = true
	}
	im.ended = true
	im.shut()
	d.imports.leave(im.name)
	if err := removeImport(d.opts.FS, d.importDir(im.name)); err != nil {
		d.importLeft(d.importDir(im.name), err)
	}
	d.imports.changed.Add(1)
	return nil
}

// settle makes what has been put durable, and lets it be read.
func (im *Import) settle() error {
	if im.err != nil {
		return im.err
	}
	if im.w == nil {
		return nil
	}
	im.flush()
	if im.err = im.w.sync(); im.err != nil {
		return im.err
	}
	for _, ref := range im.w.written() {
		im.spool.chunks = append(im.spool.chunks, ref)
		im.spool.extras = im.spool.extras || ref.lens[chunkRecords]+ref.lens[chunkVectors] > 0
	}
	return nil
}

func (im *Import) commit(ctx context.Context) error {
	d, k := im.c.db, im.k
	pledge := &pledge{log: d.state.Engine.Log, fs: d.opts.FS, dir: im.spool.dir, pledged: pledged{rows: im.rows, items: uint64(k.Len())}}
	err := im.c.read(func(_ *state.View, cv *state.CollectionView) error {
		im.spool.descriptor = cv.Descriptor // what it may have grown by is in later items
		return nil
	})
	if err != nil {
		return err
	}
	if k.Len() > 0 {
		var extras bulk.Extras
		if im.spool.extras {
			extras = im.spool
		}
		k.ReadFrom(extras, d.opts.FS, im.spool.dir)
		err := k.Commit(ctx, bulk.Options{Bytes: im.Bytes(), Promise: pledge.give, Withdraw: pledge.takeBack, Progress: im.opt.Progress})
		if !errors.Is(err, bulk.ErrNotBulk) {
			return err
		}
	}
	return im.oneByOne(ctx, pledge)
}

// partBytes is about how much is stored in one of several commits.
const partBytes = 64 << 20

// oneByOne stores the items as a batch does that is no bulk load.
func (im *Import) oneByOne(ctx context.Context, pledge *pledge) error {
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
	if names := im.k.Labels.All(); len(names) > 0 {
		if err := b.RegisterLabels(im.c, names); err != nil {
			return err
		}
	}
	k := im.k
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
	b.pledge = pledge
	return b.Commit(ctx)
}
