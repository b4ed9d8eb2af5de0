package db

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// ImportOptions say what is imported. Only Source has to be set.
type ImportOptions struct {
	// Source says what the items come from, and what becomes of them: files with size and
	// time, say. An import that was interrupted goes on when one into the same collection
	// has the same source, and begins anew otherwise. It is UTF-8, at most 1 MiB.
	Source string

	// Bytes, if known, is about what the items take in memory. An import for which there
	// is no room is refused with ErrDiskFull before it begins.
	Bytes int64

	// Restart forgets what an interrupted import has staged.
	Restart bool

	// Skipped, if not nil, hears of the rows that the import that goes on had skipped, in
	// order; see Import.Skip. NewImport calls it.
	Skipped func(row int, why string)

	// InParts allows items that replace others to be stored in several commits, where they
	// are more than one can hold. Else Commit refuses these. A process that ends in between
	// leaves some of them stored; the import that goes on stores all, those without key again.
	InParts bool

	// Progress hears the stages of Commit, "encoding" and "storing", in items; 0 of 0 where
	// the number is not known.
	Progress event.Progress
}

// An Import brings many items into a collection in one commit, as a Batch does, but holds
// them in files meanwhile, in the folder of the database: there may be more of them than
// fit into memory, and an import that is interrupted, even as its process is killed, goes
// on where it was. Nothing of it is visible until Commit.
//
// Memory is some 20 megabytes, for each item the key that it brings and 16 bytes, or nothing
// where it brings none, and its code in a codes-only collection. Commit takes for each item
// the code, 3 bytes and 4 a target in each space, and where items bring keys 32 bytes and a key
// more; besides what the database keeps of the item anyway. Disk space is that of the items,
// and during Commit twice that. Not safe for concurrent use; but others may use the database
// and the collection.
type Import struct {
	c     *Collection
	opt   ImportOptions
	spool *spool.Spool // the staged items
	plain record.Item  // scratch memory of Put

	// ended is set by Commit, Close and Discard. Closing the database, which another goroutine
	// may do, leaves it alone: the goroutine of the user reads it without a lock.
	ended bool

	oneCommit int64 // MaxBatchBytes; tests set less
}

// NewImport begins an import into the collection, or goes on with one of the same source
// that was interrupted: Rows says how far it has come. Close or Discard it in the end.
//
// Going on reads what has been staged once. What is damaged of it, and what follows that,
// is forgotten and has to be put again. Staged imports that nothing has been written of
// for a week are removed, of any collection.
//
// An import of the same source that goes on already gives ErrBusy, too little space on disk
// ErrDiskFull, and where damage leaves it open whether the import was committed it is
// ErrStaged, unless Restart is set.
func (c *Collection) NewImport(ctx context.Context, opt ImportOptions) (*Import, error) {
	if err := c.changeable(); err != nil {
		return nil, err
	}
	if opt.Source == "" || len(opt.Source) > spool.MaxSourceBytes || !utf8.ValidString(opt.Source) {
		return nil, fault.Invalid("the source of an import has 1 to %d bytes of UTF-8", spool.MaxSourceBytes)
	}
	d := c.db
	if err := d.state.Guard.Enter(); err != nil {
		return nil, err
	}
	defer d.state.Guard.Leave()
	if err := d.state.Engine.Log.Err(); err != nil { // nobody knows what the last commit was
		return nil, err
	}
	im := &Import{c: c, opt: opt, oneCommit: record.MaxBatchBytes}
	desc, err := im.descriptor()
	if err != nil {
		return nil, err
	}
	im.spool, err = d.imports.Open(ctx, spool.Origin{UUID: d.UUID(), Collection: c.id, Source: opt.Source}, c.name, spool.Options{
		Engine: d.state.Engine, Descriptor: desc, Items: bulk.New(c.inside()),
		Bytes: opt.Bytes, Restart: opt.Restart, Skipped: opt.Skipped,
	})
	if err != nil {
		return nil, fault.Annotate(d.state.Engine.FullDisk(err), "import into collection %q", c.name)
	}
	return im, nil
}

// descriptor returns the descriptor of the collection, as it is now.
func (im *Import) descriptor() (*record.Descriptor, error) {
	return look(im.c, func(_ *state.View, cv *state.CollectionView) (*record.Descriptor, error) { return cv.Descriptor, nil })
}

// Rows returns how many rows have been put or skipped, those before an interruption
// included: after NewImport it is how many there are to leave out.
func (im *Import) Rows() int { return im.spool.Rows() }

// Items returns how many items have been put, those before an interruption included.
func (im *Import) Items() int { return im.spool.Items() }

// Bytes estimates what the items take, as Batch.Bytes does.
func (im *Import) Bytes() int64 { return im.spool.Bytes() }

// Put checks an item and stages a copy of it. One that cannot be stored gives ErrInvalid,
// and is no part of the import, which may go on without it. After any other error nothing
// can be put any more; what is staged is kept.
//
// Commit makes the keys of items without one, in the order in which they were put, and does
// not return them, as there may be more than fit into memory: they are read afterwards, by
// Items, which yields new items in that order. To know a key before, give it.
func (im *Import) Put(item *Item) error {
	if item == nil {
		return fault.Invalid("no item")
	}
	return im.stage(func(cv *state.CollectionView) error {
		it := &im.plain
		if isPlain(cv.Descriptor, item) {
			if it.Code == nil {
				it.Code = codec.NewCode(cv.Bits)
			}
			it.Key = item.Key
			it.Code.SetBytes(item.Code)
		} else {
			var err error
			if it, err = lookAt(cv.Descriptor, item, false); err != nil {
				return err
			}
		}
		return im.failure(im.spool.Put(it))
	})
}

// Skip counts a row of the source that is no item, so that Rows stays in step with it. Why
// is told to whoever goes on after an interruption, up to 1 KiB of it.
func (im *Import) Skip(why string) error {
	return im.stage(func(*state.CollectionView) error { return im.failure(im.spool.Skip(why)) })
}

// RegisterLabels is Batch.RegisterLabels; it comes before the first Put, also where the
// import goes on.
func (im *Import) RegisterLabels(labels []string) error {
	for _, l := range labels {
		if err := record.CheckLabel(l); err != nil {
			return err
		}
	}
	return im.stage(func(*state.CollectionView) error { return im.failure(im.spool.Register(labels)) })
}

// stage calls f, which adds to the spool, unless nothing can be added.
func (im *Import) stage(f func(*state.CollectionView) error) error {
	if err := im.usable(); err != nil {
		return err
	}
	if im.spool.Committed() {
		return fault.Invalid("the import has been committed, as an earlier process ended: Commit says so, Discard forgets it")
	}
	return im.c.read(func(_ *state.View, cv *state.CollectionView) error {
		if err := im.spool.Err(); err != nil {
			return im.failure(err)
		}
		return f(cv)
	})
}

func (im *Import) usable() error {
	if im.ended {
		return fault.Invalid("the import is closed")
	}
	return nil
}

// failure words an error of the spool; nil stays nil.
func (im *Import) failure(err error) error {
	if err == nil { // without the memory that the arguments below take
		return nil
	}
	return fault.Annotate(im.c.db.state.Engine.FullDisk(err), "stage items of collection %q", im.c.name)
}

// Commit stores the items that have been put, in one commit, as Batch.Commit does where
// all are new, and as it would item by item otherwise: then they may take MaxBatchBytes, or
// see ImportOptions.InParts. When it returns nil everything is durable and visible, and
// what was staged is gone. With another error than ErrFailed nothing is visible, what is
// staged stays, and Commit can be called again.
//
// Where an earlier process was interrupted after it had committed the import, Rows and
// Items are those of all of it, and Commit only says so: nothing is stored twice.
func (im *Import) Commit(ctx context.Context) error {
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
	im.ended = true
	d.imports.Forget(im.spool)
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
	progress := im.opt.Progress
	ctx, ended := work.Hearing(ctx, &progress)
	defer ended()
	return im.spool.Commit(ctx, bulk.OneByOne{Most: im.oneCommit, InParts: im.opt.InParts, Progress: progress})
}

// Close ends the import, and keeps what it has staged for another of the same source to go
// on with. After Commit or Discard it does nothing. A database that is closed first does
// this, and gives ErrClosed from then on.
func (im *Import) Close() error {
	if im.ended {
		return nil
	}
	im.ended = true
	d := im.c.db
	if err := d.state.Guard.Enter(); err != nil {
		return err // which has closed it
	}
	defer d.state.Guard.Leave()
	return im.failure(d.imports.Close(im.spool))
}

// Discard ends the import, and forgets what it has staged.
func (im *Import) Discard() error {
	if im.ended {
		return nil
	}
	d := im.c.db
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	im.ended = true
	return fault.Annotate(d.imports.Remove(im.spool), "discard an import into collection %q", im.c.name)
}

// StagedImports returns the imports that have something staged. It looks at the folder of
// the database only: at each file of each of them.
func (d *DB) StagedImports(ctx context.Context) ([]StagedImport, error) {
	all, err := d.imports.All(ctx)
	return all, fault.Annotate(err, "staged imports of %s", d.dir)
}

// RemoveStagedImports removes what imports have staged, but for those that go on in this
// process, and returns what it has removed. The imports begin anew then. What is young is
// kept: what something has been written of after a time. Of imports that are committed it
// is remembered for a week that they are, so that going on with one stores nothing twice.
func (d *DB) RemoveStagedImports(ctx context.Context, before time.Time) ([]StagedImport, error) {
	if err := d.writable(); err != nil {
		return nil, err
	}
	return d.imports.RemoveOld(ctx, before)
}
