package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model"
)

// options returns a training as the database takes it.
func (t *Training) options(s *Schema) db.TrainOptions {
	if t.Free {
		method := model.MethodITQ
		for i := range s.Modalities {
			if firstOfSpace(s.Modalities[i]) != firstOfSpace(s.Modalities[0]) {
				method = model.MethodCCAITQ
			}
		}
		return db.TrainOptions{Rows: t.Rows, Activate: t.Activate, Options: fit.Options{Bits: t.Bits, Seed: t.Seed, Method: method}}
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

func (h *history) train(op *Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	opt := op.Train.options(&c.schema)
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
func (h *history) trained(op *Op, t *db.Training, settled bool) error {
	next := h.now.fork()
	c := next.edit(op.In)
	sp := &space{
		number: t.Space, name: op.Name, bits: op.Train.Bits, revision: 1, settled: settled, labelFree: op.Train.Free,
		kept: map[uint32]bool{1: false}, known: map[string]bool{}, labelCodes: map[string]string{}, codes: map[string]*coded{},
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
	return h.founded(next, c, sp, op.Train.Activate || c.active == 0, t.Active)
}

// founded takes over a new space.
func (h *history) founded(next *world, c *collection, sp *space, activate, active bool) error {
	if sp.number <= c.last || active != activate {
		return fmt.Errorf("space %d, active: %v; want one above %d, active: %v", sp.number, active, c.last, activate)
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

func (h *history) reindex(op *Op) error {
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
func (h *history) reindexed(op *Op, re *db.Reindexing) error {
	next := h.now.fork()
	c := next.edit(op.In)
	parent := c.space(c.numberOf(op.Space))
	sp := parent.clone()
	sp.number, sp.name, sp.revision = re.Space, op.Name, 1
	sp.kept, sp.codes = map[uint32]bool{1: false}, map[string]*coded{}
	if re.Parent != parent.number || re.Revision != 1 {
		return fmt.Errorf("%+v, of space %d", re, parent.number)
	}
	return h.founded(next, c, sp, op.Pinned, re.Active)
}

var teachers = map[string]db.Teacher{
	"": db.TeacherAuto, "labels": db.TeacherLabels, "modality": db.TeacherModality, "self": db.TeacherSelf,
}

func (h *history) update(op *Op) error {
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
func (h *history) updated(op *Op, u *db.Update) error {
	next := h.now.fork()
	c := next.edit(op.In)
	sp := c.space(c.numberOf(op.Space))
	if u.Space != sp.number || u.Revision < sp.revision || u.Revised != (u.Revision > sp.revision) && !h.learns() {
		return fmt.Errorf("%+v, before it was revision %d", u, sp.revision)
	}
	sp.revision = u.Revision
	return h.grown(next, op.In, sp, u)
}

// grown takes over that labels have got codes. The items with these labels get other
// codes.
func (h *history) grown(next *world, name string, sp *space, u *db.Update) error {
	c := next.collections[name]
	var keys []string
	for _, l := range u.Grown {
		if sp.settled && sp.known[l] || !slices.ContainsFunc(c.order, func(key string) bool { return slices.Contains(c.items[key].labels, l) }) {
			return fmt.Errorf("label %q has got a code, and had one, or nobody has it", l)
		}
		sp.known[l] = true
	}
	for _, key := range c.order {
		if slices.ContainsFunc(c.items[key].labels, func(l string) bool { return slices.Contains(u.Grown, l) }) {
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
