package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// ReindexOptions are the options of Reindex. The zero value will do.
type ReindexOptions struct {
	// Space is the space whose projections make the codes of the new one; 0 is the active space. While a space is
	// being built, 0 and the number of that space mean to complete it.
	Space Space

	// Activate makes the new space the active one when it is complete.
	Activate bool

	// Rate, if positive, is the number of items a second that get codes, at most.
	Rate int

	// Progress hears the number of items done, and of all items, in the stage "encode", from the goroutine of
	// Reindex.
	Progress event.Progress
}

// Reindex makes a new space from the present projections of a space and the stored vectors of all items. Online
// updates change the codes of later items only; in the new space every item without labels gets the code of the
// present projections (the P of eq. 24 of Liu, Wang and Cheung 2021), and labelled items keep the codes of their
// labels. The new space goes on learning where the other one stands. It stands by, for Query.Space and
// Activate, unless ReindexOptions.Activate is set.
//
// Reads and writes go on. New items get codes in the new space, too; writers wait some tens of milliseconds for
// each block of codes. Reindex uses half of GOMAXPROCS. Memory: some 20 MB for a block, and bits/8 + 32 bytes
// for each item that has taught. Disk: the codes of all items once more; DropSpace frees them.
//
// Progress is durable. If the context or the process ends, or the database is closed (ErrClosed), the space stays
// as far as it is, and every write keeps it current. Reindex goes on with it, or the next Open does, in the
// background; Reindex then waits for that goroutine, which takes over its Rate. DropSpace gives the space up;
// Reindex then returns ErrNotFound. Errors: ErrNoModel without a trained space; ErrBusy while another training
// begins, or while another space than Space is being built; ErrInvalid for a codes-only collection.
func (c *Collection) Reindex(ctx context.Context, opt ReindexOptions) (*Reindexing, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if opt.Rate < 0 {
		return nil, fault.Invalid("reindex %d items a second", opt.Rate)
	}
	ctx, op := in.DB.Signals.Begin(ctx, event.OpReindex, in.Name)
	defer op.Abandon()
	space, r, err := in.Reindex(ctx, learn.ReindexOptions{
		Space: c.spaceOr(opt.Space), Activate: opt.Activate, Rate: opt.Rate, Progress: op.Telling(opt.Progress),
	})
	e := in.Unbuilt(space)
	if err == nil {
		e = learn.ReindexEvent(r)
	}
	op.End(err, e)
	return r, err
}
