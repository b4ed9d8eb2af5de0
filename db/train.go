package db

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// TrainOptions say how to train. Zero values mean the defaults of the model.
type TrainOptions struct {
	model.Options

	// Rows, if positive, trains on the first so many labelled items only. All
	// items get codes.
	Rows int
}

// A Training is what Train did.
type Training struct {
	Space    uint32 `json:"space"`
	Revision uint32 `json:"revision"`
	Items    int    `json:"items"` // that have a code now
	// LeftOut names modalities that no labelled item has, of which the model
	// therefore knows nothing.
	LeftOut []string `json:"left_out,omitempty"`
	model.Report
}

// Train learns a model from the labelled items of the collection, gives every
// item its code, or with model.ViewsTarget its code for each modality that it has
// and the model knows, and makes it the model that searches use, replacing the one
// before with its codes. All of that takes effect at once, when everything is
// durable; a failure or a cancelled context leaves everything as it was.
//
// Readers and writers go on while it runs; what is written meanwhile is coded at
// the end, and only for that and the commit writers wait. Memory: some 175 +
// bits bytes an item, for each view but the first 70 + bits/4 more, and what
// model.Train takes. A second training of the
// collection at the same time gives ErrBusy; one that cannot work with what is
// stored gives an ErrInvalid that also wraps the error of model.Train.
func (c *Collection) Train(ctx context.Context, opt TrainOptions) (*Training, error) {
	if !c.db.guard.enter() {
		return nil, ErrClosed
	}
	defer c.db.guard.leave()
	if opt.Rows < 0 {
		return nil, invalid("train on %d rows", opt.Rows)
	}
	if err := c.writable(); err != nil {
		return nil, err
	}
	if err := c.loaded(ctx); err != nil {
		return nil, err
	}
	v, err := c.beginTraining(ctx)
	if err != nil {
		return nil, err
	}
	defer v.release()
	installed := false
	defer func() {
		if !installed {
			// The committer has to forget the training, whatever became of the
			// context, and if a callback has panicked, too. There is nothing to
			// be done about a database that has failed.
			_ = c.exclusive(context.WithoutCancel(ctx), true, func(_ *group, s *collectionState) error {
				s.changed = nil
				return nil
			})
		}
	}()
	t, err := c.train(ctx, v, opt)
	installed = err == nil
	return t, err
}

// exclusive runs f in the committer, alone. With quiet, f stores nothing and there
// is nothing to commit.
func (c *Collection) exclusive(ctx context.Context, quiet bool, f func(g *group, s *collectionState) error) error {
	return c.db.committer.submit(ctx, &request{quiet: quiet, exclusive: func(g *group) error {
		s := g.c.states[c.id]
		if s == nil {
			return notFound("collection %q", c.name)
		}
		return f(g, s)
	}})
}

// beginTraining returns the view to train on; from then on the committer
// records the rows that change.
func (c *Collection) beginTraining(ctx context.Context) (*view, error) {
	var v *view
	err := c.exclusive(ctx, true, func(_ *group, s *collectionState) error {
		switch {
		case s.codesOnly():
			return invalid("collection %q cannot be trained: its items bring their codes", s.Name)
		case s.changed != nil:
			return fmt.Errorf("%w: collection %q: wait for the other training to end", ErrBusy, s.Name)
		}
		s.changed = roaring.New()
		v = c.db.current.Load() // only the committer replaces it
		v.acquire()
		return nil
	})
	return v, err
}

func (c *Collection) train(ctx context.Context, v *view, opt TrainOptions) (*Training, error) {
	cv, err := v.collection(c.id, c.name)
	if err != nil {
		return nil, err
	}
	result, coded, leftOut, err := learn(ctx, v, cv, opt)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	var t *Training
	bulk := len(coded.rows) >= bulkItems
	err = c.exclusive(ctx, bulk, func(g *group, s *collectionState) error {
		var err error
		if bulk {
			err = g.installTables(ctx, c.db, s, result, coded)
		} else {
			err = g.install(s, result, coded)
		}
		if err != nil {
			return err
		}
		t = &Training{Space: s.space.ID, Revision: s.space.Revision, Items: int(s.counters.Coded)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	result.Report.Seconds["commit"] = time.Since(start).Seconds()
	result.Report.Seconds["total"] += result.Report.Seconds["commit"]
	t.Report, t.LeftOut = result.Report, leftOut
	return t, nil
}

// learn trains on the labelled items of a view and makes the codes of all of them.
func learn(ctx context.Context, v *view, cv *collectionView, opt TrainOptions) (result *model.Result, all *coded, leftOut []string, err error) {
	src := &trainingSet{v: v, cv: cv, limit: opt.Rows}
	if leftOut, err = src.choose(); err != nil {
		return nil, nil, nil, err
	}
	if opt.Views == model.ViewsTarget {
		if _, err := targetViews(src.modalities); err != nil {
			return nil, nil, nil, err
		}
	}
	modalities := make([]model.Modality, len(src.modalities))
	for i, t := range src.modalities {
		modalities[i] = model.Modality(cv.Modalities[t])
	}
	result, err = model.Train(ctx, modalities, src, opt.Options)
	switch {
	case src.err != nil:
		return nil, nil, nil, src.err // of the store, not of what is stored
	case ctx.Err() != nil:
		return nil, nil, nil, ctx.Err()
	case err != nil:
		return nil, nil, nil, invalid("collection %q: %w", cv.Name, err)
	}
	start := time.Now()
	if all, err = encodeAll(ctx, v, cv, result, src.modalities, opt.Progress); err != nil {
		return nil, nil, nil, err
	}
	seconds := result.Report.Seconds
	seconds["encode"] = time.Since(start).Seconds()
	seconds["total"] += seconds["encode"]
	return result, all, leftOut, nil
}

// trainingSet is the model.Source of the labelled items of a view.
type trainingSet struct {
	v          *view
	cv         *collectionView
	limit      int
	modalities []int // of the collection, that some labelled item has; see choose
	err        error // that ended the last pass, if the store is to blame
}

// choose decides on the modalities to train with and returns the names of the
// others. Where no item is labelled all are kept, and training says what is
// wrong.
func (s *trainingSet) choose() (leftOut []string, err error) {
	labelled := roaring.New()
	err = forEach(s.v.snap, codec.CollectionKey(codec.KindItem, s.cv.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return corrupt(err, "item in row %d", row)
		}
		if len(rec.Labels) > 0 {
			labelled.Add(row)
		}
		if s.limit > 0 && labelled.GetCardinality() == uint64(s.limit) {
			return errStopped
		}
		return nil
	})
	if err != nil && !errors.Is(err, errStopped) {
		return nil, err
	}
	for t, m := range s.cv.Modalities {
		if labelled.IsEmpty() || s.cv.presence[t].Intersects(labelled) {
			s.modalities = append(s.modalities, t)
		} else {
			leftOut = append(leftOut, m.Name)
		}
	}
	if len(s.modalities) == 0 {
		return nil, invalid("train collection %q: no labelled item has a vector of any modality", s.cv.Name)
	}
	return leftOut, nil
}

// errStopped ends a walk whose caller has had enough.
var errStopped = errors.New("stopped")

func (s *trainingSet) Examples(ctx context.Context) iter.Seq2[model.Example, error] {
	return func(yield func(model.Example, error) bool) {
		n := 0
		chosen := make([]model.Vector, len(s.modalities))
		err := s.cv.forEachItem(s.v.snap, func(_ uint32, rec *codec.ItemRecord, vectors []model.Vector) error {
			if len(rec.Labels) == 0 {
				return nil
			}
			for i, t := range s.modalities {
				chosen[i] = vectors[t]
			}
			if !yield(model.Example{Vectors: chosen, Labels: rec.Labels}, nil) {
				return errStopped
			}
			if n++; n == s.limit {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			s.err = err
			yield(model.Example{}, err)
		}
	}
}

// featureReader reads the features of rows in ascending order, in one pass over
// the store.
type featureReader struct {
	it         *pebble.Iterator
	valid      bool
	modalities []Modality
	buffers    []model.Vector
}

func newFeatureReader(r pebble.Reader, cv *collectionView) (*featureReader, error) {
	prefix := codec.CollectionKey(codec.KindFeatures, cv.ID)
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, readError(err, "features")
	}
	return &featureReader{
		it: it, valid: it.First(),
		modalities: cv.Modalities, buffers: make([]model.Vector, len(cv.Modalities)),
	}, nil
}

func (f *featureReader) close() error { return f.it.Close() }

// read fills vectors with the features of the row, the zero Vector where it lacks one.
// They are valid until the next call.
func (f *featureReader) read(vectors []model.Vector, row uint32) error {
	clear(vectors)
	for ; f.valid; f.valid = f.it.Next() {
		if err := codec.CheckKey(f.it.Key()); err != nil {
			return corrupt(err, "key")
		}
		at, t := codec.FeatureKeyParts(f.it.Key())
		if at > row {
			break
		}
		if at < row {
			continue
		}
		value, err := f.it.ValueAndErr()
		if err != nil {
			return readError(err, "features %d of row %d", t, row)
		}
		if int(t) >= len(vectors) {
			return corrupt(fmt.Errorf("modality %d of %d", t, len(vectors)), "features of row %d", row)
		}
		if err := f.modalities[t].decodeVector(&f.buffers[t], value); err != nil {
			return corrupt(err, "features %d of row %d", t, row)
		}
		vectors[t] = f.buffers[t]
	}
	return readError(f.it.Error(), "features of row %d", row)
}

// forEachItem calls f with every item, in order of rows; its vectors are valid
// until f returns.
func (cv *collectionView) forEachItem(r pebble.Reader, f func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error) error {
	features, err := newFeatureReader(r, cv)
	if err != nil {
		return err
	}
	defer features.close()
	vectors := make([]model.Vector, len(cv.Modalities))
	return forEach(r, codec.CollectionKey(codec.KindItem, cv.ID), func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return corrupt(err, "item in row %d", row)
		}
		if err := features.read(vectors, row); err != nil {
			return err
		}
		return f(row, rec, vectors)
	})
}

// coded holds the codes of many rows in one space, ascending by row.
type coded struct {
	space *space
	rows  []uint32
	encs  []encoding
}

// encodeAll makes the codes of all items of a view; while all cores encode a block
// of them, the next one is read.
func encodeAll(ctx context.Context, v *view, cv *collectionView, result *model.Result, modalities []int, progress func(string, int, int)) (*coded, error) {
	// The space has no number before the committer gives it one.
	sp, err := newSpace(spaceDescriptor{Bits: result.Model.Bits()}, result.Model, modalities)
	if err != nil {
		return nil, err
	}
	out := &coded{space: sp}
	const block = 1024
	var rows []uint32
	var vectors [][]model.Vector
	var labels [][]uint32
	var working chan error // of the block that is being encoded, nil for none
	finish := func() (err error) {
		if working != nil {
			err = <-working
			working = nil
			if err == nil && progress != nil {
				progress("encode", len(out.rows), cv.items)
			}
		}
		return err
	}
	defer func() {
		if working != nil { // the store has failed
			<-working
		}
	}()
	flush := func() error {
		if err := finish(); err != nil {
			return err
		}
		from := len(out.encs)
		out.rows = append(out.rows, rows...)
		out.encs = append(out.encs, make([]encoding, len(rows))...)
		encs, rowsNow, vectorsNow, labelsNow := out.encs[from:], rows, vectors, labels
		result := make(chan error, 1)
		working = result
		go func() {
			result <- out.space.encodeAll(ctx, encs,
				func(i int) ([]model.Vector, []uint32) { return vectorsNow[i], labelsNow[i] },
				func(i int, err error) error { return fmt.Errorf("fddhdb: encode row %d: %w", rowsNow[i], err) })
		}()
		rows, vectors, labels = nil, nil, nil
		return nil
	}
	err = cv.forEachItem(v.snap, func(row uint32, rec *codec.ItemRecord, x []model.Vector) error {
		own := make([]model.Vector, len(x))
		for t := range x {
			own[t] = cloneVector(x[t])
		}
		rows, vectors, labels = append(rows, row), append(vectors, own), append(labels, rec.Labels)
		if len(rows) == block {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = finish()
	}
	return out, err
}

// maxInstallBytes keeps the batch of an installation below the 4 GB at which
// Pebble gives up.
const maxInstallBytes = 3 << 30

// install makes a trained model the active space of its collection: the model,
// its statistics and the codes of all rows, all in one batch. Where the rows are many
// installTables does. Rows that have
// changed since they were coded are coded here.
func (g *group) install(s *collectionState, result *model.Result, all *coded) error {
	sp := all.space
	modelBytes, statistics, err := s.numberSpace(sp, result)
	if err != nil {
		return err
	}
	rowBytes := len(sp.views)*(codec.RowCodeBytes+codec.Bytes(sp.Bits)+3) + sp.projectionBytes()
	if size := len(modelBytes) + len(statistics) + rowBytes*int(s.counters.Items); size > maxInstallBytes {
		return invalid("%d items are too many to be coded in one commit (%d bytes of at most %d): use fewer bits",
			s.counters.Items, size, maxInstallBytes)
	}
	if sp.Model, err = writeChunks(g.batch, codec.KindModel, s.ID, sp.ID, modelBytes); err != nil {
		return err
	}
	if sp.Statistics, err = writeChunks(g.batch, codec.KindStatistics, s.ID, sp.ID, statistics); err != nil {
		return err
	}
	if err := g.writeSpace(s.ID, sp, &result.Report); err != nil {
		return err
	}
	if err := g.dropSpace(s); err != nil {
		return err
	}

	changed, err := g.encodeChanged(s, sp)
	if err != nil {
		return err
	}
	// From here on the state changes. An error could only be that of a batch or
	// a table that is too large, which is ruled out above.
	touched := s.changed
	s.setSpace(sp)
	for i, row := range all.rows {
		if !touched.Contains(row) {
			if err := g.setCodes(s, row, all.encs[i]); err != nil {
				return err
			}
		}
	}
	for i, row := range changed.rows {
		if err := g.setCodes(s, row, changed.encs[i]); err != nil {
			return err
		}
	}
	s.changed = nil
	return nil
}

// numberSpace makes sp the next space of the collection, without telling anybody,
// and returns its model and statistics as they are stored.
func (s *collectionState) numberSpace(sp *space, result *model.Result) (modelBytes, statistics []byte, err error) {
	if s.counters.NextSpace == maxRows {
		return nil, nil, fmt.Errorf("%w: spaces of collection %q", ErrFull, s.Name)
	}
	if modelBytes, err = result.Model.MarshalBinary(); err != nil {
		return nil, nil, err
	}
	if statistics, err = result.Statistics.MarshalBinary(); err != nil {
		return nil, nil, err
	}
	sp.ID, sp.Revision = uint32(s.counters.NextSpace), 1
	sp.Created = time.Now().UTC()
	return modelBytes, statistics, nil
}

// encodeChanged makes the codes of the rows that were put since the training began.
func (g *group) encodeChanged(s *collectionState, sp *space) (*coded, error) {
	out := &coded{space: sp, rows: roaring.And(s.changed, s.live.b).ToArray()}
	for _, row := range out.rows {
		it, err := g.stored(s, row)
		if err != nil {
			return nil, err
		}
		enc, err := sp.encode(it.vectors, s.labels.lookup(it.labels), nil)
		if err != nil {
			return nil, fmt.Errorf("fddhdb: encode row %d: %w", row, err)
		}
		out.encs = append(out.encs, enc)
	}
	return out, nil
}

// dropSpace deletes what is stored of the active space, if there is one.
// Readers that hold an older view go on seeing it.
func (g *group) dropSpace(s *collectionState) error {
	if s.space == nil {
		return nil
	}
	for _, kind := range []byte{
		codec.KindSpace, codec.KindModel, codec.KindStatistics,
		codec.KindRowCodes, codec.KindCodes, codec.KindProjection, codec.KindCodeRows, codec.KindSubstring,
	} {
		prefix := codec.NumberKey(kind, s.ID, s.space.ID)
		if err := g.batch.DeleteRange(prefix, codec.PrefixEnd(prefix), nil); err != nil {
			return err
		}
	}
	g.c.forgetEdits(s)
	return nil
}

// forgetEdits forgets the edits of the active space of a collection, which goes.
func (c *committer) forgetEdits(s *collectionState) {
	for _, kind := range []byte{codec.KindRowCodes, codec.KindCodes, codec.KindProjection} {
		prefix := string(codec.NumberKey(kind, s.ID, s.space.ID))
		maps.DeleteFunc(c.edits, func(key string, _ int) bool { return strings.HasPrefix(key, prefix) })
	}
}
