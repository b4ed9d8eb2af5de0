package db

import (
	"context"
	"log/slog"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// TrainOptions say how to train. Zero values mean the defaults of the model. The fields of
// fit.Options are its own, too: the bits of a code, anchors, maps, fusion, seed, memory and
// others.
//
//	opt := db.TrainOptions{
//		Options:  fit.Options{Bits: 64, Anchors: 500, Seed: 1, Progress: show},
//		Activate: true,
//	}
//
// Progress hears the stages "scan", "moments" where a map needs them, "statistics" and
// "encode", in items; and "choose", in steps, where maps or a fusion are chosen.
type TrainOptions struct {
	fit.Options // see package model

	// Rows, if positive, trains on the first so many labelled items only, or without
	// labels on the first so many items. All items get codes.
	Rows int

	// Activate makes the space of the new model the active one as soon as all items
	// have codes in it. The first training always does.
	Activate bool
}

// Train learns a model from the labelled items of the collection. Where none has labels, the error
// wraps model.ErrNoLabels: searches compare vectors without a training, fastest by an index of them
// (IndexVectors). By the methods model.MethodITQ and MethodCCAITQ it learns codes from the vectors of
// all items. Then nothing teaches later on (Update gives ErrInvalid), and Drift says when to train
// again. It makes a code
// space of its own, in which it gives every item its code. The first space of a
// collection becomes the active one, which searches use; later ones stand by, unless
// TrainOptions.Activate says otherwise: they can be searched by name (Query.Space), and
// Activate makes one of them the active one. A failure or a cancelled context leaves
// everything as it was; if the process ends after the model has been learned, the space
// is completed after the next Open, or replaced by the next Train if that comes first.
//
// Readers and writers go on while it runs; what is written meanwhile gets its code in
// the new space, too. Writers wait while the space begins, some 200 ms for 500,000
// labelled items, and for each block of codes that is stored, some tens of
// milliseconds. Memory: some 20 MB for a block, bits/8 + 32 bytes a labelled item, and
// what fit.Train takes; where that is more than there is, nothing begins, and the error
// also wraps a *fit.MemoryError. A second training of the collection at the same time,
// or one while another space is being built, gives ErrBusy; one that cannot work with
// what is stored gives an ErrInvalid that also wraps the error of fit.Train.
func (c *Collection) Train(ctx context.Context, opt TrainOptions) (*Training, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if opt.Rows < 0 {
		return nil, fault.Invalid("train on %d rows", opt.Rows)
	}
	if err := in.RoomToTrain(learn.TrainOptions(opt)); err != nil {
		return nil, err
	}
	ctx, op := in.DB.Signals.Begin(ctx, event.OpTrain, in.Name)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	space, t, err := in.Train(ctx, learn.TrainOptions(opt))
	e := in.Unbuilt(space)
	if err == nil {
		e = event.Event{Space: uint32(t.Space), Revision: t.Revision, Items: int64(t.Items), Attrs: []slog.Attr{
			slog.Int("bits", t.Bits), slog.Int("train_items", t.TrainItems), slog.Bool("active", t.Active),
		}}
	}
	op.End(err, e)
	return t, err
}

// learning returns the collection as one that may learn now: it can be written to, and its
// codes are in memory. leave must be called when that has ended.
func (c *Collection) learning(ctx context.Context) (in learn.Collection, leave func(), err error) {
	guard := &c.db.state.Guard
	if err := guard.Enter(); err != nil {
		return in, nil, err
	}
	err = c.changeable()
	if err == nil {
		err = c.inside().Loaded(ctx)
	}
	if err != nil {
		guard.Leave()
		return in, nil, err
	}
	return c.db.learning.Of(c.inside()), guard.Leave, nil
}
