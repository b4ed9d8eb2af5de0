package metamorphic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// options returns a training as the database takes it.
func trainOptions(t *program.Training, s *program.Schema) db.TrainOptions {
	if t.Free {
		method := model.MethodITQ
		for i := range s.Modalities {
			if firstOfSpace(s.Modalities[i]) != firstOfSpace(s.Modalities[0]) {
				method = model.MethodCCAITQ
			}
		}
		return db.TrainOptions{Rows: t.Rows, Activate: t.Activate,
			Options: fit.Options{Bits: t.Bits, Seed: t.Seed, Method: method}}
	}
	o := db.TrainOptions{Rows: t.Rows, Activate: t.Activate, Options: fit.Options{
		Bits: t.Bits, Anchors: t.Anchors, Seed: t.Seed, Sweeps: 1, Map: map[string]model.MapKind{},
	}}
	for _, m := range s.Modalities {
		if o.Map[m.Name] = model.MapRBF; t.Linear {
			o.Map[m.Name] = model.MapLinear
		}
	}
	if t.Joint {
		o.Method = model.MethodJoint
	}
	if !t.Choose {
		o.Fusion = fit.Fusion{Rule: fit.FusionSum}
	}
	return o
}

func (h *history) train(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	opt := trainOptions(op.Train, &c.schema)
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	calls := 0
	opt.Progress = func(string, int64, int64) {
		if calls++; calls == op.Train.Cancel {
			cancel()
		}
	}
	t, err := handle.Train(ctx, opt)
	switch {
	case c.codesOnly():
		return expect(err, db.ErrInvalid)
	case errors.Is(err, db.ErrInvalid), ctx.Err() != nil && errors.Is(err, context.Canceled):
		return errPassed // there is too little to learn from, or it was stopped: nothing has changed
	case h.learns() && errors.Is(err, db.ErrBusy):
		return errPassed
	case err != nil:
		return err
	}
	return h.trained(op, t, true)
}

// trained takes over the space that a training has made. With settled it was made from
// the present items; otherwise other lanes wrote meanwhile.
func (h *history) trained(op *program.Op, t *report.Training, settled bool) error {
	next := h.now.fork()
	c := next.edit(op.In)
	sp := &space{
		number: t.Space, name: op.Name, bits: op.Train.Bits, revision: 1, settled: settled,
		labelFree: op.Train.Free,
		known:     map[string]bool{}, labelCodes: map[string]string{},
		codes: map[string]*coded{},
	}
	n := 0
	for _, key := range c.order {
		if it := c.items[key]; len(it.labels) > 0 && !op.Train.Free {
			if n++; op.Train.Rows > 0 && n > op.Train.Rows {
				break
			}
			for _, l := range it.labels {
				sp.known[l] = true
			}
		}
	}
	for _, m := range c.schema.Modalities {
		if !slices.Contains(t.LeftOut, m.Name) {
			sp.modalities = append(sp.modalities, m.Name)
		}
	}
	if t.Revision != 1 {
		return fmt.Errorf("a training made revision %d", t.Revision)
	}
	return h.installed(next, c, sp, op.Train.Activate || c.active == 0, t.Active)
}

// installed takes over a new space.
func (h *history) installed(next *world, c *collection, sp *space, activate, active bool) error {
	if sp.number <= c.last || active != activate {
		return fmt.Errorf("space %d, active: %v; want one above %d, active: %v", sp.number, active, c.last,
			activate)
	}
	c.last = sp.number
	c.spaces = append(c.spaces, sp)
	if active {
		c.previous, c.active = c.active, sp.number
	}
	handle, err := h.d.Collection(c.name)
	if err == nil {
		err = h.settleIn(c, sp, handle, c.order)
	}
	if err != nil {
		return err
	}
	return h.commit(next, true)
}

func (h *history) reindex(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	re, err := handle.Reindex(h.ctx, db.ReindexOptions{Space: number, Activate: op.Pinned})
	switch {
	case c.codesOnly():
		return expect(err, db.ErrInvalid)
	case c.active == 0:
		return expect(err, db.ErrNoModel)
	case c.space(number) == nil:
		return expect(err, db.ErrNotFound)
	case h.learns() && errors.Is(err, db.ErrBusy):
		return errPassed
	case err != nil:
		return err
	}
	return h.reindexed(op, re)
}

// reindexed takes over the space that Reindex has made.
func (h *history) reindexed(op *program.Op, re *report.Reindexing) error {
	next := h.now.fork()
	c := next.edit(op.In)
	parent := c.space(c.numberOf(op.Space))
	sp := parent.clone()
	sp.number, sp.name, sp.revision = re.Space, op.Name, 1
	sp.codes = map[string]*coded{}
	if re.Parent != parent.number || re.Revision != 1 {
		return fmt.Errorf("%+v, of space %d", re, parent.number)
	}
	return h.installed(next, c, sp, op.Pinned, re.Active)
}

var teachers = map[string]db.Teacher{
	"": db.TeacherAuto, "labels": db.TeacherLabels, "modality": db.TeacherModality, "self": db.TeacherSelf,
}

func (h *history) update(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	number := c.numberOf(op.Space)
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	opt := db.UpdateOptions{Space: number, Teacher: teachers[op.Teacher], GrowLabels: op.Grow}
	calls := 0
	opt.Progress = func(string, int64, int64) {
		if calls++; calls == op.N {
			cancel()
		}
	}
	u, err := handle.Update(ctx, opt)
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return errPassed
	case c.codesOnly():
		return expect(err, db.ErrInvalid)
	case number == noSpace:
		return expect(err, db.ErrNotFound)
	case c.active == 0 && number == 0:
		return expect(err, db.ErrNoModel)
	case c.space(number).labelFree:
		return expect(err, db.ErrInvalid)
	case h.learns() && errors.Is(err, db.ErrBusy):
		return errPassed
	case err != nil:
		return err
	}
	return h.updated(op, u)
}

// updated takes over what an update has done.
func (h *history) updated(op *program.Op, u *report.Update) error {
	next := h.now.fork()
	c := next.edit(op.In)
	sp := c.space(c.numberOf(op.Space))
	if u.Space != sp.number || u.Revision < sp.revision ||
		u.Revised != (u.Revision > sp.revision) && !h.learns() {
		return fmt.Errorf("%+v, before it was revision %d", u, sp.revision)
	}
	sp.revision = u.Revision
	return h.grown(next, op.In, sp, u)
}

// grown takes over that labels have got codes. The items with these labels get other
// codes.
func (h *history) grown(next *world, name string, sp *space, u *report.Update) error {
	c := next.collections[name]
	var keys []string
	for _, l := range u.Grown {
		if sp.settled && sp.known[l] ||
			!slices.ContainsFunc(c.order,
				func(key string) bool { return slices.Contains(c.items[key].labels, l) }) {
			return fmt.Errorf("label %q has got a code, and had one, or nobody has it", l)
		}
		sp.known[l] = true
	}
	for _, key := range c.order {
		if slices.ContainsFunc(c.items[key].labels,
			func(l string) bool { return slices.Contains(u.Grown, l) }) {
			keys = append(keys, key)
		}
	}
	handle, err := h.d.Collection(name)
	if err == nil {
		err = h.settleIn(c, sp, handle, keys)
	}
	if err != nil {
		return err
	}
	return h.commit(next, u.Revised)
}

// An index of vectors changes no answer but in what it leaves out. So the model knows which indexes
// there are, and nothing of their cells: an answer by one has hits of the exact answer, in their order
// and with their similarities, and as many as are asked for, where there are so many. How many of the
// nearest are missing is added up over the history, and has a limit.

// A vectorIndex is an index of vectors in the model. It does not change.
type vectorIndex struct {
	modality string
	metric   db.Metric // of the modality when the index was made
	recall   float64
}

// indexedModality returns the modality with a name, or for an empty one the only modality that there is.
func (c *collection) indexedModality(name string) (db.Modality, error) {
	if name == "" && len(c.schema.Modalities) == 1 {
		name = c.schema.Modalities[0].Name
	}
	if !c.schema.Has(name) {
		return db.Modality{}, db.ErrInvalid
	}
	return c.modality(name), nil
}

// indexable returns the error with which the database must refuse to make an index, or nil.
func (c *collection) indexable(x *program.Index) error {
	m, err := c.indexedModality(x.Modality)
	if err != nil {
		return err
	}
	for _, it := range c.items {
		if !m.Sparse && it.vectors[m.Name] != nil {
			return nil
		}
	}
	return db.ErrInvalid
}

// withoutIndex returns the indexes but for that of a modality. The list of c stays as it is, as worlds
// share it.
func (c *collection) withoutIndex(modality string) []vectorIndex {
	return slices.DeleteFunc(slices.Clone(c.indexes),
		func(x vectorIndex) bool { return x.modality == modality })
}

// mayLack reports whether an index may find the answer to a query by vectors, so that items are missing.
func (c *collection) mayLack(q *program.Query) bool {
	from := cmp.Or(q.From, c.schema.Modalities[0].Name)
	for _, x := range c.indexes {
		if slices.Contains(comparedWith(&c.schema, from, q.To), x.modality) &&
			x.metric == c.modality(from).Metric && cmp.Or(q.Recall, x.recall) < 1 {
			return true
		}
	}
	return false
}

// options returns the index as the database takes it.
func indexOptions(x *program.Index) db.IndexOptions {
	return db.IndexOptions{Modality: x.Modality, Recall: x.Recall, Cells: x.Cells, Seed: x.Seed}
}

func (h *history) indexVectors(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	opt, calls := indexOptions(op.Index), 0
	opt.Progress = func(string, int64, int64) {
		if calls++; calls == op.Index.Cancel {
			cancel()
		}
	}
	made, err := handle.IndexVectors(ctx, opt)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return errPassed // nothing has changed
	}
	if err := expect(err, c.indexable(op.Index)); err != nil {
		return err
	}
	return h.indexed(op, made)
}

// indexed takes over that an index was made.
func (h *history) indexed(op *program.Op, made *report.VectorIndex) error {
	next := h.now.fork()
	c := next.edit(op.In)
	m, err := c.indexedModality(op.Index.Modality)
	if err != nil {
		return err
	}
	c.indexes = append(c.withoutIndex(m.Name), vectorIndex{m.Name, m.Metric, cmp.Or(op.Index.Recall, .99)})
	if made.Modality != m.Name || !made.Complete || made.Queries == 0 || len(made.Measured) == 0 {
		return fmt.Errorf("the index is %+v", made)
	}
	return h.commit(next, true)
}

func (h *history) dropIndex(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	m, want := c.indexedModality(op.Index.Modality)
	left := c.withoutIndex(m.Name)
	if want == nil && len(left) == len(c.indexes) {
		want = db.ErrNotFound
	}
	if err := expect(handle.DropVectorIndex(h.ctx, op.Index.Modality), want); err != nil {
		return err
	}
	next := h.now.fork()
	next.edit(op.In).indexes = left
	return h.commit(next, true)
}

// laneIndexes makes an index while other lanes write.
func (h *history) laneIndexes(op *program.Op) (func() error, error) {
	c := h.now.collections[op.In]
	if c == nil {
		return nil, nil
	}
	handle, err := h.d.Collection(op.In)
	if err != nil {
		return nil, err
	}
	made, err := handle.IndexVectors(h.ctx, indexOptions(op.Index))
	if errors.Is(err, db.ErrInvalid) {
		return nil, nil // the items with such vectors may have gone, or not have come yet
	}
	if err != nil {
		return nil, err
	}
	return func() error { return h.indexed(op, made) }, nil
}

// lookByVectors compares what indexes of vectors find with an exact answer, and that with the items.
func (h *history) lookByVectors(op *program.Op, handle *db.Collection) error {
	stats, err := handle.Stats(h.ctx)
	if err != nil || len(stats.VectorIndexes) == 0 {
		return err
	}
	all := stats.VectorIndexes
	schema, err := handle.Schema()
	if err != nil {
		return err
	}
	for _, m := range schema.Modalities {
		if !slices.ContainsFunc(all, func(x report.VectorIndex) bool { return x.Modality == m.Name }) {
			continue
		}
		n := 0
		for it, err := range handle.Items(h.ctx, "") {
			if err != nil {
				return err
			}
			if it.Vectors[m.Name] != nil {
				n++
			}
		}
		q := db.Query{From: m.Name, To: m.Name, Vector: program.VectorOf(m, 1+op.Seed), K: n + 1, Recall: 1}
		every, err := handle.Search(h.ctx, q)
		if err != nil || every.Approximate || len(every.Hits) != n {
			return wrong(err, "%d hits of %d items, approximate: %v", len(every.Hits), n, every.Approximate)
		}
		q.K, q.Recall = 3, .8
		some, err := handle.Search(h.ctx, q)
		if err != nil || len(some.Hits) != min(q.K, n) {
			return wrong(err, "%d hits of %d items", len(some.Hits), n)
		}
		if _, err := follow(some.Hits, every.Hits, 0, some.Approximate, false); err != nil {
			return err
		}
	}
	return nil
}

// checkIndexes compares the indexes of vectors that a collection has. One may have been made again, or is
// being made again.
func (c *collection) checkIndexes(handle *db.Collection) error {
	stats, err := handle.Stats(context.Background())
	if err != nil {
		return err
	}
	all := slices.DeleteFunc(stats.VectorIndexes, func(x report.VectorIndex) bool { return !x.Complete })
	if len(all) != len(c.indexes) {
		return fmt.Errorf("%d indexes of vectors, want %d: %+v", len(all), len(c.indexes), all)
	}
	for _, want := range c.indexes {
		i := slices.IndexFunc(all, func(x report.VectorIndex) bool { return x.Modality == want.modality })
		if i < 0 || all[i].Recall != want.recall {
			return fmt.Errorf("indexes %+v, want %+v", all, want)
		}
		x := all[i]
		n := 0
		for _, it := range c.items {
			if it.vectors[x.Modality] != nil {
				n++
			}
		}
		if x.Cells > 0 && x.Entries+x.Unknown < n { // without cells it is not loaded yet
			return fmt.Errorf("index of %q with %d entries, %d rows are unknown, of %d", x.Modality,
				x.Entries, x.Unknown, n)
		}
	}
	return nil
}

// follow checks the next hits of an answer by vectors. want is the exact answer, and what has come
// before ends at at. The result is where these hits end. An answer that is approximate may leave out
// hits between them. Rows are compared unless the answer is loose.
func follow(hits, want []db.Hit, at int, approximate, loose bool) (int, error) {
	for i, h := range hits {
		for approximate && at < len(want) && want[at].Key != h.Key {
			at++
		}
		if at == len(want) {
			return at, fmt.Errorf("hit %d is %+v, and none of those that follow is", i, h)
		}
		if w := want[at]; h.Key != w.Key || h.Similarity != w.Similarity || !loose && h.Row != w.Row ||
			h.Distance != -1 || !math.IsNaN(h.Score) {
			return at, fmt.Errorf("hit %d is %+v, want %+v", i, h, w)
		}
		at++
	}
	return at, nil
}

// A recallSum adds up what approximate answers have of the nearest items.
type recallSum struct {
	answers    int
	asked, had float64 // sums of parts
}

// add adds an answer, of which there are more items than hits.
func (r *recallSum) add(hits, want []db.Hit, asked float64) {
	had := 0
	for _, h := range hits {
		if h.Similarity >= want[len(hits)-1].Similarity { // of those at the end, which is as good as which
			had++
		}
	}
	r.answers++
	r.asked, r.had = r.asked+asked, r.had+float64(had)/float64(len(hits))
}

// enough returns an error if answers have less than half of what was asked for. Indexes are measured
// by some tens of items and asked by others, so the mean differs from what was asked for. In hundreds
// of histories it was never below .9 of it, where there were ten answers; fewer tell nothing. Seeds
// are fixed, and what catches up in the background changes little.
func (r *recallSum) enough() error {
	if r.answers >= 10 && r.had < r.asked/2 {
		return fmt.Errorf("%d approximate answers had %.3f of the nearest, and were asked for %.3f",
			r.answers, r.had/float64(r.answers), r.asked/float64(r.answers))
	}
	return nil
}

// recallOf returns the recall that a query asks for, itself or by an index.
func (c *collection) recallOf(q *program.Query) float64 {
	asked := q.Recall
	compared := comparedWith(&c.schema, cmp.Or(q.From, c.schema.Modalities[0].Name), q.To)
	for _, x := range c.indexes {
		if q.Recall == 0 && slices.Contains(compared, x.modality) {
			asked = max(asked, x.recall)
		}
	}
	return asked
}

// recall asks a query that an index may answer. It is passed over if none has.
func (h *history) recall(op *program.Op) error {
	before := h.recalled.answers
	s, err := h.ask(op, op.Query)
	if err == nil { // codes answer
		err = errors.Join(s.search(op.Seed), s.done(), errPassed)
	}
	if errors.Is(err, errPassed) && h.recalled.answers > before {
		return nil
	}
	return err
}
