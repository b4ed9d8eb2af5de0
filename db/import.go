package db

import (
	"context"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/bulk"
	"github.com/fddhdb/fddhdb/db/internal/bulk/spool"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
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
	name  string       // of its folder in openImports
	spool *spool.Spool // the staged items
	items *bulk.Items  // the columns of the spool, which Commit stores
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
	c = c.orNone()
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
	origin := spool.Origin{UUID: d.UUID(), Collection: c.id, Source: opt.Source}
	im := &Import{c: c, opt: opt, name: origin.Name(), items: bulk.New(c.inside()), oneCommit: record.MaxBatchBytes}
	if !d.imports.take(im.name, im) {
		return nil, fmt.Errorf("%w: an import into collection %q from the same source goes on", fault.ErrBusy, c.name)
	}
	_, err := d.RemoveStagedImports(ctx, time.Now().Add(-keptImports))
	if err == nil {
		err = im.open(ctx, origin)
	}
	if err != nil {
		d.imports.leave(im.name)
		return nil, fault.Annotate(d.state.Engine.FullDisk(err), "import into collection %q", c.name)
	}
	d.imports.changed.Add(1) // figures that were made since take may lack the folder
	return im, nil
}

// open begins or continues the spool of the import, for the descriptor that the collection has
// now.
func (im *Import) open(ctx context.Context, origin spool.Origin) error {
	desc, err := im.descriptor()
	if err != nil {
		return err
	}
	d := im.c.db
	im.spool, err = d.importFolder().Open(ctx, origin, spool.Options{
		Engine: d.state.Engine, Descriptor: desc, Items: im.items,
		Bytes: im.opt.Bytes, Restart: im.opt.Restart, Skipped: im.opt.Skipped,
	})
	return err
}

// descriptor returns the descriptor of the collection, as it is now.
func (im *Import) descriptor() (d *record.Descriptor, err error) {
	err = im.c.read(func(_ *state.View, cv *state.CollectionView) error {
		d = cv.Descriptor
		return nil
	})
	return d, err
}

// Rows returns how many rows have been put or skipped, those before an interruption
// included: after NewImport it is how many there are to leave out.
func (im *Import) Rows() int { return im.orNone().spool.Rows() }

// Items returns how many items have been put, those before an interruption included.
func (im *Import) Items() int { return im.orNone().spool.Items() }

// Bytes estimates what the items take, as Batch.Bytes does.
func (im *Import) Bytes() int64 { return im.orNone().spool.Bytes() }

// Put checks an item and stages a copy of it. One that cannot be stored gives ErrInvalid,
// and is no part of the import, which may go on without it. After any other error nothing
// can be put any more; what is staged is kept.
//
// Commit makes the keys of items without one, in the order in which they were put, and does
// not return them, as there may be more than fit into memory: they are read afterwards, by
// Items, which yields new items in that order. To know a key before, give it.
func (im *Import) Put(item *Item) error {
	im = im.orNone()
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
	im = im.orNone()
	return im.stage(func(*state.CollectionView) error { return im.failure(im.spool.Skip(why)) })
}

// RegisterLabels is Batch.RegisterLabels; it comes before the first Put, also where the
// import goes on.
func (im *Import) RegisterLabels(labels []string) error {
	im = im.orNone()
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

// Close ends the import, and keeps what it has staged for another of the same source to go
// on with. After Commit or Discard it does nothing. A database that is closed first does
// this, and gives ErrClosed from then on.
func (im *Import) Close() error {
	im = im.orNone()
	if im.ended {
		return nil
	}
	im.ended = true
	d := im.c.db
	if err := d.state.Guard.Enter(); err != nil {
		return err // which has closed it
	}
	defer d.state.Guard.Leave()
	return im.failure(im.close())
}

func (im *Import) close() error {
	err := im.spool.Close()
	im.c.db.imports.leave(im.name)
	return err
}

// Discard ends the import, and forgets what it has staged.
func (im *Import) Discard() error {
	im = im.orNone()
	if im.ended {
		return nil
	}
	d := im.c.db
	if err := d.state.Guard.Enter(); err != nil {
		return err
	}
	defer d.state.Guard.Leave()
	return fault.Annotate(im.remove(), "discard an import into collection %q", im.c.name)
}

// remove ends the import and removes what is staged.
func (im *Import) remove() error {
	im.ended = true
	err := im.spool.Remove()
	im.c.db.imports.leave(im.name)
	return err
}
