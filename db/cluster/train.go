package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
	"github.com/fddhdb/fddhdb/model/sum"
)

// A Training is the result of Train.
type Training struct {
	Space   db.Space // the space with the model, on every shard
	Report  fit.Report
	Items   int      // number of training items
	LeftOut []string // modalities that no training item has
	Model   string   // name of the object of its file, which stays as long as a log names it
}

// Train learns a model from the items of all shards, and installs it on every shard, as ImportModel does. One
// training or update of a collection runs at a time; another one is db.ErrBusy.
//
// Shards send sums over their items, and samples: items stay on the shards. Sums add up, so the model equals
// that of one database with the items of all shards in order, up to rounding (a relative error of some
// 1e-12). Each shard is read at one moment after the call, on one of its nodes. If that node ends, the
// training fails: call Train again. Searches and writes go on.
//
// The calling process needs the memory of fit.TrainOver, a node the memory of sum.Pass.Sum. Possible methods
// are labels and the label-free ones.
func (c *Collection) Train(ctx context.Context, opt db.TrainOptions) (*Training, error) {
	t, err := c.beginTraining(ctx, "training")
	if err != nil {
		return nil, err
	}
	defer t.end()
	if err := t.survey(t.lease.ctx); err != nil {
		return nil, err
	}
	labelled := t.choose(opt)
	modalities, places, leftOut, shared := db.TrainingModalities(t.schema, t.any)
	if t.n == 0 || len(modalities) == 0 {
		return nil, fmt.Errorf("%w: %w: none of collection %q has a vector, and labels where these are to be learned", db.ErrInvalid, fit.ErrNoItems, c.name)
	}
	t.places = places
	for _, m := range modalities {
		t.names = append(t.names, m.Name)
	}
	if opt.Shared == nil {
		opt.Shared = shared
	}
	t.labelled = labelled
	result, err := fit.TrainOver(t.lease.ctx, modalities, t, opt.Options)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, id := range result.Model.Labels() {
		names = append(names, t.labels[id])
	}
	file, err := fit.NewFile(result.Model, names, &result.Report)
	if err != nil {
		return nil, err
	}
	b, err := file.MarshalBinary()
	if err != nil {
		return nil, err
	}
	if err := t.lease.ctx.Err(); err != nil {
		return nil, err
	}
	space, object, err := c.createSpace(t.lease.ctx, b, opt.Activate, t.lease.number)
	if err != nil {
		return nil, err
	}
	return &Training{Space: space, Report: result.Report, Items: t.n, LeftOut: leftOut, Model: object}, nil
}

// beginTraining takes the lease of the collection for a training or an update; kind names it in errors. end
// ends the training and gives the lease back.
func (c *Collection) beginTraining(ctx context.Context, kind string) (*training, error) {
	l, err := c.client.take(ctx, "lease.train."+wireName(c.name))
	if err != nil {
		return nil, fmt.Errorf("%s of collection %q: %w", kind, c.name, err)
	}
	return &training{c: c, lease: l, id: wire.NewID().String(),
		store: objects{c.client.js, c.client.cluster}}, nil
}

// A training is a sum.Engine over shards.
type training struct {
	c     *Collection
	lease *lease // one training or update of the collection at a time
	id    string // of the session on each shard
	store objects

	schema   db.Schema
	labels   []string // of all shards, by their ids in the training
	shards   []trained
	labelled bool
	n        int      // number of training items
	places   []int    // of the modalities in the schema
	names    []string // of the modalities
	// an update leaves out items without one of the first known labels, see replica.SumOrder
	known    int
	passes   int
	progress event.Progress // of a pass, in shards; may be nil

	mu   sync.Mutex
	made []string // objects to remove
	done int      // shards with a sum, in the latest pass
}

// trained is a shard with training items.
type trained struct {
	node     string
	labelled *roaring.Bitmap
	has      []*roaring.Bitmap // by modality of the schema
	rows     *roaring.Bitmap   // training items
	first    int               // number of the first training item
}

// object names an object of the training, and notes it for removal.
func (t *training) object(format string, args ...any) string {
	name := trainObject + t.id + "-" + fmt.Sprintf(format, args...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made = append(t.made, name)
	return name
}

// summed counts one more shard with a sum.
func (t *training) summed() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done++; t.progress != nil {
		t.progress("learn", int64(t.done), int64(len(t.shards)))
	}
}

// end ends the sessions, removes the temporary objects, and gives the lease back.
func (t *training) end() {
	defer t.lease.end(t.c.client)
	ctx, cancel := context.WithTimeout(context.Background(), t.c.client.opts.Timeout)
	defer cancel()
	for shard, s := range t.shards {
		if s.node != "" {
			// on failure the session expires
			_, _ = t.c.client.order(ctx, s.node, order{Do: "end", Shard: shard, Session: t.id})
		}
	}
	t.store.remove(ctx, t.made...)
}

// survey begins a session on a node of each shard, and collects schema, labels and items.
func (t *training) survey(ctx context.Context) error {
	t.shards = make([]trained, t.c.client.Shards())
	surveys := make([]replica.Survey, len(t.shards))
	err := t.each(ctx, func(ctx context.Context, shard int) error {
		into := t.object("survey-%d", shard)
		node, err := t.c.client.orderShard(ctx, order{Do: "survey", Shard: shard,
			Session: t.id, Collection: t.c.name, From: t.c.client.sees(shard), Into: into})
		if err != nil {
			return err
		}
		t.shards[shard].node = node
		b, err := t.store.fetch(ctx, into)
		if err != nil {
			return err
		}
		return json.Unmarshal(b, &surveys[shard])
	})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for shard := range surveys {
		s := &surveys[shard]
		if shard == 0 {
			t.schema = s.Schema
		} else if fmt.Sprint(s.Schema) != fmt.Sprint(t.schema) {
			return fmt.Errorf("%w: shard %d has another schema: %v", db.ErrInvalid, shard,
				s.Schema)
		}
		for _, l := range s.Labels {
			if !known[l] {
				known[l] = true
				t.labels = append(t.labels, l)
			}
		}
		of := &t.shards[shard]
		all := make([]*roaring.Bitmap, 1+len(s.Has))
		for i, b := range append([][]byte{s.Labelled}, s.Has...) {
			all[i] = roaring.New()
			if _, err := all[i].ReadFrom(bytes.NewReader(b)); err != nil {
				return fmt.Errorf("survey of shard %d: %w", shard, err)
			}
		}
		if of.labelled, of.has = all[0], all[1:]; len(of.has) != len(t.schema.Modalities) {
			return fmt.Errorf("survey of shard %d: %d modalities, not %d", shard, len(of.has),
				len(t.schema.Modalities))
		}
	}
	return nil
}

// each calls f for every shard, in parallel.
func (t *training) each(ctx context.Context, f func(ctx context.Context, shard int) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(t.shards))
	var all sync.WaitGroup
	for shard := range t.shards {
		all.Go(func() {
			if errs[shard] = f(ctx, shard); errs[shard] != nil {
				errs[shard] = fmt.Errorf("shard %d: %w", shard, errs[shard])
				cancel()
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) { // the error that canceled the others
			return err
		}
	}
	return errors.Join(errs...)
}

// choose chooses the training items, as db.Collection.Train does, and reports whether it took the labelled
// ones.
func (t *training) choose(opt db.TrainOptions) (labelled bool) {
	labelled = !opt.Method.LabelFree()
	left := cmp.Or(max(opt.Rows, 0), math.MaxInt)
	for i := range t.shards {
		s := &t.shards[i]
		if labelled {
			s.rows = s.labelled
		} else {
			s.rows = roaring.FastOr(s.has...)
		}
		if uint64(left) < s.rows.GetCardinality() {
			first := roaring.New()
			if left > 0 {
				last, _ := s.rows.Select(uint32(left - 1)) // the bitmap has more than left rows
				first.AddRange(0, uint64(last)+1)
				first.And(s.rows)
			}
			s.rows = first
		}
		s.first = t.n
		t.n += int(s.rows.GetCardinality())
		left -= int(s.rows.GetCardinality())
	}
	return labelled
}

// any reports whether a training item has a modality of the schema; without training items it is true.
func (t *training) any(modality int) bool {
	if t.n == 0 {
		return true
	}
	for _, s := range t.shards {
		if s.has[modality].Intersects(s.rows) {
			return true
		}
	}
	return false
}

// Survey implements sum.Engine.
func (t *training) Survey(context.Context) (*sum.Survey, error) {
	return &sum.Survey{Items: t.n, Labelled: t.labelled && t.n > 0, Has: func(m int) iter.Seq[int] {
		return func(yield func(int) bool) {
			for _, s := range t.shards {
				n, has := s.first, s.has[t.places[m]]
				for row := range roaring.Values(s.rows) {
					if has.Contains(row) && !yield(n) {
						return
					}
					n++
				}
			}
		}
	}}, nil
}

// Sum implements sum.Engine: each shard sums over its items. The sums are added in the order of the shards.
func (t *training) Sum(ctx context.Context, p *sum.Pass) ([]byte, error) {
	b, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	t.passes++
	pass := t.object("pass-%d", t.passes)
	if err := t.store.put(ctx, pass, b); err != nil {
		return nil, err
	}
	into := make([]string, len(t.shards))
	t.done = 0
	err = t.each(ctx, func(ctx context.Context, shard int) error {
		s := &t.shards[shard]
		if s.rows.IsEmpty() {
			return nil
		}
		items, err := s.rows.ToBytes()
		if err != nil {
			return err
		}
		into[shard] = t.object("sum-%d-%d", t.passes, shard)
		asked, err := json.Marshal(replica.SumOrder{Pass: pass, First: s.first, Items: items,
			Modalities: t.names, Labels: t.labels, Known: t.known})
		if err != nil {
			return err
		}
		sum := t.object("asked-%d-%d", t.passes, shard)
		if err := t.store.put(ctx, sum, asked); err != nil {
			return err
		}
		_, err = t.c.client.order(ctx, s.node, order{Do: "sum", Shard: shard, Session: t.id,
			Sum: sum, Into: into[shard]})
		if err != nil {
			return fmt.Errorf("node %s: %w", s.node, err)
		}
		t.summed()
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.Merge(func(yield func([]byte, error) bool) {
		for _, name := range into {
			if name == "" {
				continue
			}
			b, err := t.store.fetch(ctx, name)
			if !yield(b, err) || err != nil {
				return
			}
		}
	})
}

// trainingStep carries out a step of a training or an update on a replica: a survey, a sum or a model. It
// returns the bytes of the object order.Into.
func (n *Node) trainingStep(r *replica.Replica, o order) ([]byte, error) {
	switch o.Do {
	case "survey":
		s, err := r.Survey(n.ctx, o.Session, o.Collection, o.From)
		if err != nil {
			return nil, err
		}
		return s.Marshal()
	case "sum":
		asked, err := objects{n.js, n.cluster}.fetch(n.ctx, o.Sum)
		if err != nil {
			return nil, err
		}
		var sum replica.SumOrder
		if err := json.Unmarshal(asked, &sum); err != nil {
			return nil, fmt.Errorf("%w: %w", db.ErrInvalid, err)
		}
		return r.Sum(n.ctx, o.Session, sum)
	default: // model
		ctx, cancel := context.WithTimeout(n.ctx, answerFor)
		defer cancel()
		return r.Model(ctx, o.Collection, o.Space, o.From)
	}
}

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

	// training items of the projections, by modality
	Items       map[string]int `json:"items"`
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
	t, err := c.beginTraining(ctx, "update")
	if err != nil {
		return nil, err
	}
	defer t.end()
	// Operations of an earlier update are applied before this one, or refused. So the revisions are known,
	// and no revision gets the number of another.
	err = c.client.onAll(t.lease.ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.TakeOver, Collection: c.name,
			Fence: t.lease.number}
	}, nil)
	if err != nil {
		return nil, err
	}
	out, file, least, err := c.newest(t.lease.ctx, opt.Space)
	if err != nil {
		return nil, err
	}
	if err := t.survey(t.lease.ctx); err != nil {
		return nil, err
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
		next, s, err = fit.UpdateOver(t.lease.ctx, m, t)
	}
	if errors.Is(err, model.ErrMismatch) {
		err = fmt.Errorf("%w: space %d of collection %q: %w", db.ErrInvalid, out.Space, c.name, err)
	}
	if err != nil {
		return nil, err
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
	out.Model, err = c.install(t.lease.ctx, b, wire.Op{Kind: wire.ReviseSpace, Space: out.Space,
		Revision: out.Revision, Fence: t.lease.number})
	if err != nil {
		return nil, err
	}
	out.Revised = true
	return out, nil
}

// newest finds the space to update, and its model from a shard with the highest revision, which has the grown
// labels. least is the lowest revision of a shard.
func (c *Collection) newest(ctx context.Context,
	space db.Space) (out *Update, file *fit.File, least uint32, err error) {
	of, err := c.revisions(ctx, space)
	if err != nil {
		return nil, nil, 0, err
	}
	b, err := c.modelOf(ctx, of)
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
			return nil, nil, fmt.Errorf("%w: space %d of collection %q: %w", db.ErrInvalid, out.Space,
				t.c.name, err)
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
			return fmt.Errorf("%w: the model has a modality %q, and collection %q has none", db.ErrInvalid,
				mod.Name, t.c.name)
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
