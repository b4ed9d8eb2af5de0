package db

import (
	"context"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// ReindexOptions say what to reindex and how. Zero values are the defaults given here.
type ReindexOptions struct {
	// Space is the space whose projections make the codes of the new one. Where a space
	// of the collection is being built, ActiveSpace and its own number stand for that one,
	// which is completed.
	Space Space

	// Activate makes the new space the active one as soon as it is complete.
	Activate bool

	// Rate, if positive, is how many items a second get their codes at most.
	Rate int

	// Progress hears how many of all items have been looked at, in the stage "encode",
	// from Reindex's goroutine.
	Progress event.Progress
}

// Reindex makes a new space with the projections that a space has by now, from the
// stored features of all items: online updates change the codes of later items only, and
// in the new space all unlabelled items get those that the present projections make
// (the P of eq. 24 of Liu, Wang and Cheung 2021). Labelled items keep the
// codes of their labels. The new space goes on learning where the other one stands. It
// stands by, for searches that name it (Query.Space) and for Activate, unless
// ReindexOptions.Activate says otherwise.
//
// Readers and writers go on. What is written meanwhile gets its codes in the new space,
// too; writers wait for each block of codes that is stored, of some tens of
// milliseconds. It works on half of GOMAXPROCS. Memory: some 20 MB for a block, and
// bits/8 + 32 bytes for each item that has taught. Disk: the codes of all items once
// more; DropSpace gives them back.
//
// Progress is durable. When the context ends, or the process, or Close comes, which
// gives ErrClosed, the space stays as far as it has got, and every write keeps it
// current: Reindex goes on with it, or the next Open does, in the background. Reindex
// then waits for whoever builds it, and a Rate that is given holds for that one. DropSpace
// gives it up; Reindex then returns ErrNotFound. The error is ErrNoModel for a collection
// without a trained space, ErrBusy while another training begins or another space than
// the one named is being built, ErrInvalid for a codes-only collection.
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
