package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
)

// UpdateOptions are the options of Collection.Update. The zero value updates the active space.
type UpdateOptions struct {
	Space db.Space // 0: the active space

	// GrowLabels first gives labels unknown to the model a direction, and their items new codes; see
	// db.UpdateOptions.
	GrowLabels bool

	Progress event.Progress // stage "learn", in shards
}

// An Update is the result of Collection.Update.
type Update struct {
	Space    db.Space `json:"space"`
	Revision uint32   `json:"revision"` // in use on every shard
	Revised  bool     `json:"revised"`  // the update has made it

	Items       map[string]int `json:"items"`                  // training items of the projections, by modality
	Grown       []string       `json:"grown,omitempty"`        // labels with a new direction
	NoDirection []string       `json:"no_direction,omitempty"` // labels without a direction, as none was left
	Model       string         `json:"model,omitempty"`        // name of the object of its file
}

// Update makes a new revision of a space on every shard. Its projections learn from the current items with
// labels that the model knows. Stored codes stay as they are, and comparable; queries and later items are
// encoded by the new projections. The result equals db.Collection.Update with db.TeacherLabels, up to
// rounding. The method differs: shards send sums over all of their items, not only the new ones. That takes
// one pass over the items, and needs no record of earlier learning.
//
// As with Train, one training or update of a collection runs at a time; another one is db.ErrBusy. If the
// node of a shard ends meanwhile, Update fails: call it again. If an earlier update has reached only some
// shards, this one brings all shards to the same revision.
//
// A space learned without labels, or by another method than labels, is db.ErrInvalid: train again. A
// collection without a space is db.ErrNoModel.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress) // it is called from a goroutine for each shard
	defer ended()
	t, in, err := c.beginTraining(ctx, "update")
	if err != nil {
		return nil, err
	}
	defer t.end()
	// Operations of an earlier update are applied before this one, or refused. So the revisions are known,
	// and no revision gets the number of another.
	err = c.client.onAll(in, func() *wire.Op { return &wire.Op{Kind: wire.TakeOver, Collection: c.name, Fence: t.lease.number} }, nil)
	if err != nil {
		return nil, t.grown(err)
	}
	out, file, least, err := c.newest(in, t.view, opt.Space)
	if err != nil {
		return nil, t.grown(err)
	}
	if err := t.survey(in); err != nil {
		return nil, t.grown(err)
	}
	names := file.Labels()
	ids := make([]uint32, len(names))
	for i := range ids {
		ids[i] = uint32(i)
	}
	m, err := file.Model(ids)
	if err != nil {
		return nil, err
	}
	if opt.GrowLabels {
		if m, names, err = t.grow(m, names, out); err != nil {
			return nil, err
		}
	}
	if err := t.teach(m, names); err != nil {
		return nil, err
	}
	t.progress = opt.Progress
	next, s := m, model.NewStatistics(m)
	if t.n > 0 {
		next, s, err = fit.UpdateOver(in, m, t)
	}
	if errors.Is(err, model.ErrMismatch) {
		err = fmt.Errorf("%w: space %d of collection %q: %w", db.ErrInvalid, out.Space, c.name, err)
	}
	if err != nil {
		return nil, t.grown(err)
	}
	taught := 0
	for i, mod := range m.Modalities() {
		out.Items[mod.Name] = s.Items(i)
		taught += s.Items(i)
	}
	if taught == 0 && len(out.Grown) == 0 && least == out.Revision {
		return out, nil // no training items
	}
	revised, err := fit.NewFile(next, names, file.Report())
	if err != nil {
		return nil, err
	}
	b, err := revised.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if err := t.lease.ctx.Err(); err != nil {
		return nil, err
	}
	out.Revision++
	out.Model, err = c.install(t.lease.ctx, b, wire.Op{Kind: wire.ReviseSpace, Space: out.Space, Revision: out.Revision, Fence: t.lease.number})
	if err != nil {
		return nil, err
	}
	out.Revised = true
	return out, nil
}

// newest finds the space to update, and its model from a shard with the highest revision, which has the grown
// labels. least is the lowest revision of a shard.
func (c *Collection) newest(ctx context.Context, v *view, space db.Space) (out *Update, file *fit.File, least uint32, err error) {
	of, err := c.revisions(ctx, v, space)
	if err != nil {
		return nil, nil, 0, err
	}
	b, err := c.modelOf(ctx, v, of)
	if err != nil {
		return nil, nil, 0, err
	}
	file, err = fit.UnmarshalFile(b)
	return &Update{Space: of.space, Revision: of.highest, Items: map[string]int{}}, file, of.least, err
}

// grow gives directions to labels of items that the model does not know, as long as any are left.
func (t *training) grow(m *model.Model, names []string, out *Update) (*model.Model, []string, error) {
	s := model.NewStatistics(m)
	for _, label := range t.labels {
		if slices.Contains(names, label) {
			continue
		}
		if len(out.NoDirection) > 0 { // none is left for this label either
			out.NoDirection = append(out.NoDirection, label)
			continue
		}
		grown, of, err := m.Grow(s, uint32(len(names)))
		switch {
		case errors.Is(err, model.ErrNoDirection):
			out.NoDirection = append(out.NoDirection, label)
		case errors.Is(err, model.ErrMismatch):
			return nil, nil, fmt.Errorf("%w: space %d of collection %q: %w", db.ErrInvalid, out.Space, t.c.name, err)
		case err != nil:
			return nil, nil, err
		default:
			m, s, names = grown, of, append(names, label)
			out.Grown = append(out.Grown, label)
		}
	}
	return m, names, nil
}

// teach chooses the items with a label known to the model as training items. names are the model's labels.
func (t *training) teach(m *model.Model, names []string) error {
	t.choose(db.TrainOptions{Options: fit.Options{Method: model.MethodLabels}})
	for _, mod := range m.Modalities() {
		if !slices.ContainsFunc(t.schema.Modalities, func(s db.Modality) bool { return s.Name == mod.Name }) {
			return fmt.Errorf("%w: the model has a modality %q, and collection %q has none", db.ErrInvalid, mod.Name, t.c.name)
		}
		t.names = append(t.names, mod.Name)
	}
	known := make(map[string]bool, len(names))
	for _, label := range names {
		known[label] = true
	}
	all := slices.Clone(names)
	for _, label := range t.labels {
		if !known[label] {
			all = append(all, label)
		}
	}
	t.labels, t.known = all, len(names)
	return nil
}
