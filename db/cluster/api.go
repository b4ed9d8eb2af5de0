package cluster

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"
)

// DatabaseOptions are the options of Client.Database. With the zero value a shard that does not answer is a
// *ShardError.
type DatabaseOptions struct {
	// AllowPartial, unless nil, accepts answers of searches, and Stats of collections, without shards that do
	// not answer. It is called with these shards before such an answer is returned, by any goroutine that
	// searches.
	AllowPartial func(missing []int)
}

// Database returns the cluster as a database of package api, for programs that work wherever their data is.
// Close does not close the client. What one database does and a cluster does not is an error that wraps
// errors.ErrUnsupported:
//
//   - Nothing lists the items: there is no Keys, Items, Sample or DeleteWhere, and no Pairs or Groups.
//   - There are no marks, and no counter for keys: items of a batch bring their keys.
//   - Schemas and labels do not change (Alter, RenameLabel).
//   - Spaces have no earlier revisions, and no space is made of another (Rollback, RestoreRevision,
//     Reindex).
//   - IncludeExplain, Evaluate, Encode, EncodeQuery, and the figures DiskSize and MeasuredDrift are for the
//     database of a shard.
//   - Compact, Verify and Backup are about folders; Client.Compare and Client.Backup are their counterparts.
//
// A batch is committed shard by shard: the changes of one shard are made together, all or none. Stats have
// what can be asked of all shards, and zeros for the rest.
func (c *Client) Database(o DatabaseOptions) api.Database { return &database{c, o} }

type database struct {
	client *Client
	opts   DatabaseOptions
}

// cannot returns the error for what a cluster does not do. instead says what to do in its place.
func cannot(what, instead string) error {
	return fmt.Errorf("fddhdb: a cluster does not %s: %s: %w", what, instead, errors.ErrUnsupported)
}

func (d *database) Collections(ctx context.Context) ([]string, error) {
	return d.client.Collections(ctx)
}

func (d *database) Collection(ctx context.Context, name string) (api.Collection, error) {
	c := &collection{Collection: d.client.Collection(name), d: d}
	var err error
	if c.schema, err = c.Schema(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// CreateCollection completes a collection that only some shards have, as after an interruption. One that all
// shards have is db.ErrExists.
func (d *database) CreateCollection(ctx context.Context, name string, schema db.Schema) (api.Collection,
	error) {
	asking, cancel := d.client.within(ctx)
	defer cancel()
	answers, err := d.client.Collection("").all(asking,
		func(int) wire.Request { return wire.Request{Verb: wire.Collections} })
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(answers, func(a *wire.Answer) bool { return !slices.Contains(a.Names, name) }) {
		return nil, fmt.Errorf("%w: collection %q", db.ErrExists, name)
	}
	if _, err := d.client.CreateCollection(ctx, name, schema); err != nil {
		return nil, err
	}
	return d.Collection(ctx, name)
}

func (d *database) DropCollection(ctx context.Context, name string) error {
	return d.client.DropCollection(ctx, name)
}

func (d *database) Mark(context.Context, string) ([]byte, error) { return nil, errMark }

var errMark = cannot("keep marks", "keep your position elsewhere")

func (d *database) Stats(ctx context.Context) (*db.Stats, error) {
	names, err := d.Collections(ctx)
	if err != nil {
		return nil, err
	}
	s := &db.Stats{Format: db.Format, Kernel: codec.KernelName(), Collections: []db.CollectionStats{}}
	for _, name := range names {
		of, err := (&collection{Collection: d.client.Collection(name), d: d}).Stats(ctx)
		if errors.Is(err, db.ErrNotFound) {
			continue // dropped meanwhile
		}
		if err != nil {
			return nil, err
		}
		s.Items += of.Items
		s.Collections = append(s.Collections, *of)
	}
	return s, nil
}

// WaitForIndex returns at once: nodes load their codes whether or not anybody waits.
func (d *database) WaitForIndex(ctx context.Context) error { return ctx.Err() }

func (d *database) Compact(context.Context) error {
	return cannot("compact", "each node does it in the background")
}

func (d *database) Verify(context.Context, db.VerifyOptions,
	func(report.Finding) error) (*report.Verification, error) {
	return nil, cannot("verify", "compare its replicas")
}

func (d *database) Backup(context.Context, string, db.BackupOptions) (*backup.Manifest, error) {
	return nil, cannot("make a backup at a place that a client names",
		"have its nodes make one of each shard, at the place that they were given")
}

func (d *database) Close() error { return nil }

// A collection is a handle on a collection that was there. The schema is of that time, to check items by.
type collection struct {
	*Collection
	d        *database
	schema   db.Schema
	space    db.Space // 0: the active one
	revision uint32   // 0: the one in use
}

func (c *collection) InSpace(ctx context.Context, space db.Space, revision uint32) (api.Collection, error) {
	in := *c
	in.space, in.revision = space, revision
	if space == db.ActiveSpace {
		return &in, nil
	}
	all, err := c.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s report.SpaceInfo) bool { return s.Space == space })
	switch {
	case i < 0:
		return nil, fault.NotFound("space %d of collection %q", space, c.name)
	case all[i].State == report.SpaceBuilding:
		return nil, fmt.Errorf("%w: space %d of collection %q is being built", db.ErrBusy, space, c.name)
	}
	return &in, nil
}

func (c *collection) Alter(context.Context, db.Alteration) error {
	return cannot("alter a collection", "make another one, and import the items")
}

func (c *collection) RenameLabel(context.Context, string, string) error {
	return cannot("rename labels", "put the items with the new one, and update with the growth of labels")
}

// Delete returns the number of the keys: whether they had items is not known.
func (c *collection) Delete(ctx context.Context, keys ...string) (int, error) {
	b, asked := c.d.NewBatch(), map[string]bool{}
	for _, key := range keys {
		if err := b.Delete(c, key); err != nil {
			return 0, err
		}
		asked[key] = true
	}
	if err := b.Commit(ctx); err != nil {
		return 0, err
	}
	return len(asked), nil
}

func (c *collection) DeleteWhere(context.Context, string, ...any) (int, error) {
	return 0, cannot("delete by a filter", "delete by keys")
}

func (c *collection) Get(ctx context.Context, key string) (*db.Item, error) {
	if c.space == db.ActiveSpace && c.revision == 0 {
		return c.Collection.Get(ctx, key)
	}
	return c.get(ctx, key, asked{space: c.space, revision: c.revision}.wire())
}

var errList = cannot("list items", "search and count them, or list those of a backup of each shard")

func (c *collection) Keys(context.Context, string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", errList) }
}

func (c *collection) Items(context.Context, string, ...any) iter.Seq2[*db.Item, error] {
	return func(yield func(*db.Item, error) bool) { yield(nil, errList) }
}

func (c *collection) Sample(context.Context, int, uint64, string, ...any) iter.Seq2[*db.Item, error] {
	return func(yield func(*db.Item, error) bool) { yield(nil, errList) }
}

var errAlike = cannot("look for pairs and groups", "restore a backup of each shard into one database")

func (c *collection) Pairs(context.Context, db.PairQuery) iter.Seq2[db.Pair, error] {
	return func(yield func(db.Pair, error) bool) { yield(db.Pair{}, errAlike) }
}

func (c *collection) Groups(context.Context, db.GroupQuery) iter.Seq2[db.Group, error] {
	return func(yield func(db.Group, error) bool) { yield(db.Group{}, errAlike) }
}

func (c *collection) Search(ctx context.Context, q db.Query) (*db.Result, error) {
	if q.Include&db.IncludeExplain != 0 {
		return nil, errExplain
	}
	return c.answer(c.Collection.Search(ctx, c.query(q)))
}

func (c *collection) SearchRadius(ctx context.Context, q db.Query, radius int) (*db.Result, error) {
	if q.Include&db.IncludeExplain != 0 {
		return nil, errExplain
	}
	return c.answer(c.Collection.SearchRadius(ctx, c.query(q), radius))
}

func (c *collection) query(q db.Query) Query {
	return Query{Query: q, Space: c.space, revision: c.revision, AllowPartial: c.d.opts.AllowPartial != nil}
}

var errExplain = cannot("explain searches", "explain them in one database")

func (c *collection) answer(r *Result, err error) (*db.Result, error) {
	if err != nil {
		return nil, err
	}
	if len(r.Missing) > 0 {
		c.d.opts.AllowPartial(r.Missing)
	}
	return &r.Result, nil
}

func (c *collection) Evaluate(context.Context, db.Evaluation) ([]report.Retrieval, error) {
	return nil, cannot("evaluate a model", "import the model into one database, and evaluate it there")
}

var errEncode = cannot("encode", "import the model into one database, and encode there")

func (c *collection) Encode(context.Context, *db.Item) ([]byte, error) { return nil, errEncode }

func (c *collection) EncodeQuery(context.Context, db.Query) ([]byte, error) { return nil, errEncode }

func (c *collection) ID() uint32 { return 0 }

// Stats counts items, labels and vectors, and tells of the space of the handle and of the indexes.
func (c *collection) Stats(ctx context.Context, also ...db.Figure) (*db.CollectionStats, error) {
	switch {
	case slices.Contains(also, db.DiskSize):
		return nil, cannot("know how many bytes a collection takes", "look at the folders of its nodes")
	case slices.Contains(also, db.MeasuredDrift):
		return nil, cannot("measure drift", "train again when much has changed")
	}
	ctx, cancel := c.client.within(ctx)
	defer cancel()
	schema, err := c.Schema(ctx)
	if err != nil {
		return nil, err
	}
	s := &db.CollectionStats{Name: c.name, IndexOnly: schema.IndexOnly, Fields: schema.Fields,
		Trained: schema.Bits > 0, Bits: schema.Bits}
	asked := []wire.Request{{Verb: wire.Describe}, {Verb: wire.Labels}, {Verb: wire.Count}}
	for _, m := range schema.Modalities {
		s.Modalities = append(s.Modalities, db.ModalityStats{Modality: m})
		asked = append(asked, wire.Request{Verb: wire.Count, Where: fmt.Sprintf("has(%q)", m.Name)})
	}
	answers := make([][]*wire.Answer, len(asked)) // by request, then by shard
	errs := make([]error, len(asked))
	var all sync.WaitGroup
	for i, q := range asked {
		all.Go(func() {
			answers[i], _, errs[i] = c.scatter(ctx, c.d.opts.AllowPartial != nil, nil,
				func(int) wire.Request { return q })
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	spaces, err := spacesIn(answers[0])
	if err != nil {
		return nil, err
	}
	indexes, err := indexesIn(answers[0])
	if err != nil {
		return nil, err
	}
	s.VectorIndexes, s.Labels, s.Items = c.indexes(indexes), len(namesIn(answers[1])), foundIn(answers[2])
	for i := range s.Modalities {
		s.Modalities[i].Items = foundIn(answers[3+i])
	}
	s.Spaces = len(spaces)
	for _, of := range spaces {
		if of.Space == c.space || c.space == db.ActiveSpace && of.State == report.SpaceActive {
			s.Trained, s.Space, s.Revision = true, of.Space, of.Revision
			s.Bits, s.CodedItems = of.Bits, of.Items
		}
	}
	return s, nil
}

func (c *collection) Train(ctx context.Context, opt db.TrainOptions) (*report.Training, error) {
	t, err := c.Collection.Train(ctx, opt)
	if err != nil {
		return nil, err
	}
	return c.training(ctx, &report.Training{Space: t.Space, LeftOut: t.LeftOut, Report: t.Report})
}

// training completes the report of a new space.
func (c *collection) training(ctx context.Context, t *report.Training) (*report.Training, error) {
	all, err := c.Spaces(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.Space == t.Space {
			t.Revision, t.Items, t.Active = s.Revision, s.Items, s.State == report.SpaceActive
			return t, nil
		}
	}
	return nil, fault.NotFound("space %d of collection %q: it has been dropped meanwhile", t.Space, c.name)
}

// Update lets labelled items teach, all of them each time. TeacherAuto is TeacherLabels: items without labels
// do not teach in a cluster.
func (c *collection) Update(ctx context.Context, opt db.UpdateOptions) (*report.Update, error) {
	if opt.Teacher != db.TeacherAuto && opt.Teacher != db.TeacherLabels {
		return nil, cannot("let items without labels teach", "let labels teach")
	}
	begin := time.Now()
	u, err := c.Collection.Update(ctx, UpdateOptions{Space: cmp.Or(opt.Space, c.space),
		GrowLabels: opt.GrowLabels, Progress: opt.Progress})
	if err != nil {
		return nil, err
	}
	out := &report.Update{Space: u.Space, Revision: u.Revision, Revised: u.Revised,
		Teacher: db.TeacherLabels.String(), Grown: u.Grown, NoDirection: u.NoDirection,
		Seconds: time.Since(begin).Seconds()}
	for _, n := range u.Items {
		out.Items = max(out.Items, n)
	}
	if out.Labelled = out.Items; out.Items > 0 {
		out.Adopted.Labelled = out.Teacher
	}
	return out, nil
}

func (c *collection) Reindex(context.Context, db.ReindexOptions) (*report.Reindexing, error) {
	return nil, cannot("make a space of another one", "export its model, and import it")
}

// Spaces tells of each space its state, bits, revision and items. A space that not all shards have is one
// that is being built.
func (c *collection) Spaces(ctx context.Context) ([]report.SpaceInfo, error) {
	all, err := c.Collection.Spaces(ctx)
	out := make([]report.SpaceInfo, 0, len(all))
	for _, s := range all {
		if s.Shards < c.client.Shards() {
			s.State = report.SpaceBuilding
		}
		of := report.SpaceInfo{Space: s.Space, State: s.State, Bits: s.Bits, Revision: s.Revision,
			Items: s.Items, Revisions: []report.RevisionInfo{}}
		if s.State == report.SpaceBuilding {
			of.Built = s.Items
		}
		out = append(out, of)
	}
	return out, err
}

func (c *collection) Activate(ctx context.Context, space db.Space) error {
	if space = cmp.Or(space, c.space); space == db.ActiveSpace {
		return nil
	}
	return c.Collection.Activate(ctx, space)
}

var errRevisions = cannot("keep revisions or the space before", "activate another space, or train again")

func (c *collection) Rollback(context.Context) (db.Space, error) { return 0, errRevisions }

func (c *collection) RestoreRevision(context.Context, db.Space, uint32) (*report.Update, error) {
	return nil, errRevisions
}

func (c *collection) DropSpace(ctx context.Context, space db.Space) error {
	return c.Collection.DropSpace(ctx, cmp.Or(space, c.space))
}

func (c *collection) ExportModel(ctx context.Context, w io.Writer) error {
	if c.revision != 0 {
		return errRevisions
	}
	return c.Collection.ExportModel(ctx, w, c.space)
}

func (c *collection) ImportModel(ctx context.Context, r io.Reader,
	opt db.ImportModelOptions) (*report.Training, error) {
	if opt.Space != db.ActiveSpace {
		return nil, cannot("take the number of a space from a client", "let it number spaces")
	}
	if r == nil {
		return nil, fault.Invalid("no model file")
	}
	b, err := io.ReadAll(io.LimitReader(r, wire.MaxOp+1))
	if err != nil {
		return nil, err
	}
	space, err := c.Collection.ImportModel(ctx, bytes.NewReader(b), opt.Activate)
	if err != nil {
		return nil, err
	}
	file, err := fit.UnmarshalFile(b)
	if err != nil {
		return nil, err
	}
	return c.training(ctx, &report.Training{Space: space, Report: *file.Report()})
}

func (c *collection) IndexVectors(ctx context.Context, opt db.IndexOptions) (*report.VectorIndex, error) {
	if opt.Cells != 0 || opt.Seed != 0 {
		return nil, cannot("take the cells or the seed of an index", "leave them out")
	}
	if opt.Modality == "" && len(c.schema.Modalities) == 1 {
		opt.Modality = c.schema.Modalities[0].Name
	}
	begin := time.Now()
	x, err := c.Collection.IndexVectors(ctx, opt.Modality, opt.Recall, opt.Progress)
	if err != nil {
		return nil, err
	}
	out := c.indexes([]Index{*x})[0]
	out.Seconds = map[string]float64{"total": time.Since(begin).Seconds()}
	return &out, nil
}

// indexes returns indexes in the form of package report.
func (c *collection) indexes(all []Index) []report.VectorIndex {
	out := make([]report.VectorIndex, 0, len(all))
	for _, x := range all {
		of := report.VectorIndex{Modality: x.Modality, Complete: x.Shards == c.client.Shards(),
			Entries: x.Entries, Recall: x.Recall}
		for _, shard := range slices.Sorted(maps.Keys(x.Waiting)) {
			of.Waiting = append(of.Waiting, fmt.Sprintf("shard %d: %s", shard,
				strings.TrimPrefix(x.Waiting[shard], "fddhdb: ")))
		}
		out = append(out, of)
	}
	return out
}
