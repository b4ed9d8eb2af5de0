package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/db"
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
}

// Train learns a model from the items of all shards, and installs it on every shard, as ImportModel does. One
// training or update of a collection runs at a time; another one is db.ErrBusy.
//
// Nodes send sums over the items of their shards, and samples: items stay on the shards. Sums add up, so the
// model equals that of one database with all items, in the order of nodes and shards, up to rounding (a
// relative error of some 1e-12). Each shard is read at one moment after the call, on one of its nodes. If
// that node is lost, the training begins again with the others, some times. Searches and writes go on.
//
// The calling process needs the memory of fit.TrainOver, a node the memory of sum.Pass.Sum. Possible methods
// are labels and the label-free ones.
func (c *Collection) Train(ctx context.Context, opt db.TrainOptions) (*Training, error) {
	l, err := c.lease(ctx, "training")
	if err != nil {
		return nil, err
	}
	defer l.end(c.client)
	if err := c.settle(l.ctx, l); err != nil {
		return nil, err
	}
	var out *Training
	var file []byte
	err = c.over(l.ctx, nil, func(ctx context.Context, t *training) (err error) {
		out, file, err = t.train(ctx, opt)
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Space, err = c.createSpace(l, file, opt.Activate)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// train learns a model, and returns its file.
func (t *training) train(ctx context.Context, opt db.TrainOptions) (*Training, []byte, error) {
	labelled := t.choose(opt)
	modalities, places, leftOut, shared := db.TrainingModalities(t.schema, t.any)
	if t.n == 0 || len(modalities) == 0 {
		return nil, nil, fmt.Errorf("%w: %w: none of collection %q has a vector, and labels where these are to be learned", db.ErrInvalid, fit.ErrNoItems, t.c.name)
	}
	t.places = places
	for _, m := range modalities {
		t.names = append(t.names, m.Name)
	}
	if opt.Shared == nil {
		opt.Shared = shared
	}
	t.labelled = labelled
	result, err := fit.TrainOver(ctx, modalities, t, opt.Options)
	if err != nil {
		return nil, nil, err
	}
	var names []string
	for _, id := range result.Model.Labels() {
		names = append(names, t.labels[id])
	}
	file, err := fit.NewFile(result.Model, names, &result.Report)
	if err != nil {
		return nil, nil, err
	}
	b, err := file.MarshalBinary()
	return &Training{Report: result.Report, Items: t.n, LeftOut: leftOut}, b, err
}

// lease takes the lease of the collection for a training or an update; kind names it in errors.
func (c *Collection) lease(ctx context.Context, kind string) (*lease, error) {
	l, err := c.client.take(ctx, "lease.train."+wireName(c.name))
	if err != nil {
		return nil, fmt.Errorf("%s of collection %q: %w", kind, c.name, err)
	}
	return l, nil
}

// mostTries bounds how often a training begins.
const mostTries = 5

// over calls f with a training that has a session on a node of each shard. If a node is lost, over calls f
// again, with other nodes where a shard has others.
func (c *Collection) over(ctx context.Context, progress event.Progress,
	f func(ctx context.Context, t *training) error) error {
	lost := map[string]bool{}
	for try := 1; ; try++ {
		t := &training{c: c, id: wire.NewID(), progress: progress}
		err := t.survey(ctx, lost)
		once := wire.Final(err)
		if err == nil {
			err = f(ctx, t)
			var node *lostError
			if once = !errors.As(err, &node); !once {
				lost[node.node] = true
			}
		}
		t.end()
		if err == nil || once || try == mostTries {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(time.Duration(try) * time.Second):
		}
	}
}

// A lostError says that a node with a session has been lost, or the session there.
type lostError struct {
	node string
	err  error
}

func (e *lostError) Error() string { return fmt.Sprintf("node %s: %v", e.node, e.err) }
func (e *lostError) Unwrap() error { return e.err }

// A training is a sum.Engine over shards.
type training struct {
	c  *Collection
	id wire.ID // of the session on each shard

	schema   db.Schema
	labels   []string  // of all shards, by their ids in the training
	shards   []trained // by node, so that a node sums over items that follow one another
	labelled bool
	n        int      // number of training items
	places   []int    // of the modalities in the schema
	names    []string // of the modalities
	// an update leaves out items without one of the first known labels, see wire.SumOrder
	known    int
	progress event.Progress // of a pass, in shards; may be nil
}

// trained is a shard with training items.
type trained struct {
	shard    int
	node     string
	labelled *roaring.Bitmap
	has      []*roaring.Bitmap // by modality of the schema
	rows     *roaring.Bitmap   // training items
	first    int               // number of the first training item
}

// end ends the sessions. One that it cannot end expires.
func (t *training) end() {
	ctx, cancel := context.WithTimeout(context.Background(), t.c.client.opts.Timeout)
	defer cancel()
	_ = each(ctx, len(t.shards), func(ctx context.Context, i int) error {
		if s := t.shards[i]; s.node != "" {
			_, _ = t.c.client.order(ctx, s.node, wire.Order{Do: wire.End, Shard: s.shard, Session: t.id})
		}
		return nil
	})
}

// survey begins a session on a node of each shard, one that is not lost if there is any, and collects schema,
// labels and items.
func (t *training) survey(ctx context.Context, lost map[string]bool) error {
	t.shards = make([]trained, t.c.client.Shards())
	surveys := make([]*wire.Training, len(t.shards))
	err := each(ctx, len(t.shards), func(ctx context.Context, shard int) error {
		a, node, err := t.c.client.orderShard(ctx, wire.Order{Do: wire.Survey, Shard: shard,
			Session: t.id, Collection: t.c.name, From: t.c.client.sees(shard)}, lost)
		if err == nil && a.Survey == nil {
			err = wire.ErrAnswer
		}
		if err != nil {
			return fmt.Errorf("shard %d: %w", shard, err)
		}
		t.shards[shard].shard, t.shards[shard].node, surveys[shard] = shard, node, a.Survey
		return nil
	})
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for shard, s := range surveys {
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
	slices.SortStableFunc(t.shards, func(a, b trained) int { return cmp.Compare(a.node, b.node) })
	return nil
}

// each calls f for every number below n, in parallel. The first error ends the others, and is returned.
func each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if err := f(ctx, i); err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
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

// Sum implements sum.Engine: each node sums over the items of its shards.
func (t *training) Sum(ctx context.Context, p *sum.Pass) ([]byte, error) {
	pass, err := p.MarshalBinary()
	if err != nil {
		return nil, err
	}
	of := map[string][]wire.Stretch{}
	for _, s := range t.shards {
		if s.rows.IsEmpty() {
			continue
		}
		items, err := s.rows.ToBytes()
		if err != nil {
			return nil, err
		}
		of[s.node] = append(of[s.node], wire.Stretch{Shard: s.shard, First: s.first, Items: items})
	}
	nodes := slices.Sorted(maps.Keys(of))
	sums := make([][]byte, len(nodes))
	var mu sync.Mutex
	done := 0
	err = each(ctx, len(nodes), func(ctx context.Context, i int) error {
		a, err := t.ask(ctx, nodes[i], wire.Order{Do: wire.Sum, Session: t.id, Sum: &wire.SumOrder{
			Pass: pass, Of: of[nodes[i]], Modalities: t.names, Labels: t.labels, Known: t.known}})
		if err != nil {
			return err
		}
		sums[i] = a.Data
		mu.Lock()
		defer mu.Unlock()
		if done += len(of[nodes[i]]); t.progress != nil {
			t.progress("learn", int64(done), int64(len(t.shards)))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.Merge(func(yield func([]byte, error) bool) {
		for _, b := range sums {
			if !yield(b, nil) {
				return
			}
		}
	})
}

// mostAsks bounds how often a node is asked for a sum: the order, or the answer, may be lost with a server.
const mostAsks = 3

// ask sends an order of a session to a node. A node that does not carry it out is a lostError.
func (t *training) ask(ctx context.Context, node string, o wire.Order) (a *wire.Answer, err error) {
	for range mostAsks {
		if a, err = t.c.client.order(ctx, node, o); err == nil || ctx.Err() != nil || wire.Final(err) {
			return a, err
		}
		if errors.Is(err, wire.ErrNotHere) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second): // the node may be connecting to another server
		}
	}
	return nil, &lostError{node, err}
}

// sum sums over items of several shards of the node.
func (n *Node) sum(o *wire.Order) ([]byte, error) {
	if o.Sum == nil {
		return nil, fmt.Errorf("%w: a sum of nothing", db.ErrInvalid)
	}
	p, err := sum.UnmarshalPass(o.Sum.Pass)
	if err != nil {
		return nil, err
	}
	return p.Merge(func(yield func([]byte, error) bool) {
		for _, of := range o.Sum.Of {
			r, err := n.replica(of.Shard)
			var b []byte
			if err == nil {
				b, err = r.Sum(n.ctx, o.Session, p, o.Sum, of)
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	})
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
}

// Update makes a new revision of a space on every shard. Its projections learn from the current items with
// labels that the model knows. Stored codes stay as they are, and comparable; queries and later items are
// encoded by the new projections. The result equals db.Collection.Update with db.TeacherLabels, up to
// rounding. The method differs: shards send sums over all of their items, not only the new ones. That takes
// one pass over the items, and needs no record of earlier learning.
//
// As with Train, one training or update of a collection runs at a time; another one is db.ErrBusy. If an
// earlier update has reached only some shards, this one brings all shards to the same revision.
//
// A space learned without labels, or by another method than labels, is db.ErrInvalid: train again. A
// collection without a space is db.ErrNoModel.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*Update, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress) // it is called from a goroutine for each shard
	defer ended()
	l, err := c.lease(ctx, "update")
	if err != nil {
		return nil, err
	}
	defer l.end(c.client)
	// Operations of an earlier update are applied before this one, or refused. So the revisions are known,
	// and no revision gets the number of another.
	err = c.client.onAll(l.ctx, func() *wire.Op {
		return &wire.Op{Kind: wire.TakeOver, Collection: c.name, Fence: l.number}
	}, nil)
	if err != nil {
		return nil, err
	}
	var out *Update
	var revised []byte // nil: there is nothing to learn
	err = c.over(l.ctx, opt.Progress, func(ctx context.Context, t *training) (err error) {
		out, revised, err = t.update(ctx, opt)
		return err
	})
	if err != nil || revised == nil {
		return out, err
	}
	out.Revision++
	err = c.install(l.ctx, revised, wire.Op{Kind: wire.ReviseSpace, Space: out.Space, Revision: out.Revision,
		Fence: l.number})
	if err != nil {
		return nil, err
	}
	out.Revised = true
	return out, nil
}

// update learns the next revision, and returns its file, or nil if there is nothing to learn from.
func (t *training) update(ctx context.Context, opt UpdateOptions) (*Update, []byte, error) {
	out, file, least, err := t.c.newest(ctx, opt.Space)
	if err != nil {
		return nil, nil, err
	}
	names := file.Labels()
	ids := make([]uint32, len(names))
	for i := range ids {
		ids[i] = uint32(i)
	}
	m, err := file.Model(ids)
	if err != nil {
		return nil, nil, err
	}
	if opt.GrowLabels {
		if m, names, err = t.grow(m, names, out); err != nil {
			return nil, nil, err
		}
	}
	if err := t.teach(m, names); err != nil {
		return nil, nil, err
	}
	next, s := m, model.NewStatistics(m)
	if t.n > 0 {
		next, s, err = fit.UpdateOver(ctx, m, t)
	}
	if errors.Is(err, model.ErrMismatch) {
		err = fmt.Errorf("%w: space %d of collection %q: %w", db.ErrInvalid, out.Space, t.c.name, err)
	}
	if err != nil {
		return nil, nil, err
	}
	taught := 0
	for i, mod := range m.Modalities() {
		out.Items[mod.Name] = s.Items(i)
		taught += s.Items(i)
	}
	if taught == 0 && len(out.Grown) == 0 && least == out.Revision {
		return out, nil, nil
	}
	revised, err := fit.NewFile(next, names, file.Report())
	if err != nil {
		return nil, nil, err
	}
	b, err := revised.MarshalBinary()
	return out, b, err
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
