package db

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db/event"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/fit"
)

// TrainOptions say how to train. Zero values mean the defaults of the model. The fields of fit.Options belong
// to it, too: the bits of a code, anchors, maps, fusion, seed, memory and others.
//
//	opt := db.TrainOptions{
//		Options:  fit.Options{Bits: 64, Anchors: 500, Seed: 1, Progress: show},
//		Activate: true,
//	}
//
// Progress hears the stages "scan", "moments" if a map needs them, "statistics", "solve" and "encode", in
// items. If settings are chosen, each trial has a stage of its own. It begins with "choose" and says what is
// tried, such as choose image: hellinger, rbf; done and total are trials.
type TrainOptions struct {
	fit.Options // see package model

	// Rows, if positive, trains on the first so many labelled items only, or without labels on the first so
	// many items. All items get codes.
	Rows int `json:"rows,omitempty"`

	// Activate makes the space of the new model the active one as soon as all items have codes in it; until
	// then searches use the space before. Set it to train again on labels that came after a training. Items
	// that come while Train runs get codes in both spaces. The first training always activates its space.
	Activate bool `json:"activate,omitempty"`
}

// Train learns a model from the labelled items of the collection. If no item has labels, the error wraps
// model.ErrNoLabels: searches compare vectors without a training, fastest by an index of them (IndexVectors).
// The methods model.MethodITQ and MethodCCAITQ learn codes from the vectors of all items. Then nothing
// teaches later on (Update gives ErrInvalid), and Drift says when to train again. Train makes a new code
// space, in which every item gets a code. The first space of a collection becomes the active one, which
// searches use; later ones stand by, unless TrainOptions.Activate says otherwise. You can search them by name
// (InSpace), and Activate them. A failure or a cancelled context leaves everything as it was. If the
// process ends after the model has been learned, the next Open completes the space, unless the next Train
// replaces it first.
//
// Readers and writers go on while it runs; items written meanwhile get codes in the new space, too. Writers
// wait while the space begins, some 200 ms for 500,000 labelled items, and some tens of milliseconds for each
// stored block of codes. Memory: some 20 MB for a block, bits/8 + 32 bytes a labelled item, and the memory of
// fit.Train. If there is not that much, nothing begins, and the error also wraps a *fit.MemoryError. A second
// training of the collection at the same time, or one while another space is being built, gives ErrBusy. If
// the stored items cannot be trained on, the error is an ErrInvalid that also wraps the error of fit.Train.
func (c *Collection) Train(ctx context.Context, opt TrainOptions) (*report.Training, error) {
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
	op := in.DB.Signals.Begin(ctx, event.OpTrain, in.Name)
	defer op.Abandon()
	opt.Progress = op.Telling(opt.Progress)
	space, t, err := in.Train(ctx, learn.TrainOptions(opt))
	e := in.Unbuilt(space)
	if err == nil {
		e = event.Event{Space: uint32(t.Space), Revision: t.Revision, Items: int64(t.Items),
			Attrs: []slog.Attr{
				slog.Int("bits", t.Bits), slog.Int("train_items", t.TrainItems),
				slog.Bool("active", t.Active),
			}}
	}
	op.End(err, e)
	return t, err
}

// learning returns the collection if it may learn now: it can be written to, and its codes are in memory.
// Call leave when the learning has ended.
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

// TrainingModalities derives the arguments of fit.TrainOver from a schema, for programs that train on items
// of several databases, or of none. has reports whether any item to learn from has the modality at a place of
// the schema. The results are the modalities that some item has, their places, the names of the others, and
// the groups that share a space (fit.Options.Shared).
func TrainingModalities(s Schema, has func(modality int) bool) (modalities []model.Modality, places []int,
	leftOut []string, shared [][]string) {
	groups := map[string][]string{}
	var spaces []string
	for i, m := range s.Modalities {
		if !has(i) {
			leftOut = append(leftOut, m.Name)
			continue
		}
		modalities, places = append(modalities, model.Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse}),
			append(places, i)
		space := cmp.Or(m.SpaceOf, m.Name)
		if groups[space] == nil {
			spaces = append(spaces, space)
		}
		groups[space] = append(groups[space], m.Name)
	}
	for _, space := range spaces {
		if len(groups[space]) > 1 {
			shared = append(shared, groups[space])
		}
	}
	return modalities, places, leftOut, shared
}

// A Teacher says what the projections learn from in an update.
type Teacher int

// Teachers. Labelled items, with a label that the model knows, always teach their labels (model.Aim).
// Teachers differ in the lessons of other items.
const (
	// TeacherAuto tries TeacherModality on a copy. It lets these items teach only if that improves the
	// retrieval of labelled items that are held back. After a refusal it tries again when there are twice as
	// many items, or when the database has been opened again.
	TeacherAuto Teacher = iota
	// TeacherLabels: nothing.
	TeacherLabels
	// TeacherModality: the modality that finds labelled items best gives the code, by its projection; all
	// modalities learn it.
	TeacherModality
	// TeacherSelf: each modality learns the code that its own projection gives, as in the paper.
	TeacherSelf
)

// String returns the name of the teacher.
func (t Teacher) String() string { return learn.Teacher(t).String() }

// ParseTeacher returns the teacher of that name.
func ParseTeacher(s string) (Teacher, error) {
	if i := slices.Index(learn.TeacherNames[:], strings.ToLower(s)); i >= 0 {
		return Teacher(i), nil
	}
	return 0, fault.Invalid("unknown teacher %q: auto, labels, modality and self are possible", s)
}

// MarshalText implements encoding.TextMarshaler by the name.
func (t Teacher) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *Teacher) UnmarshalText(b []byte) (err error) {
	*t, err = ParseTeacher(string(b))
	return err
}

// UpdateOptions are the options of Update. The zero value updates the active space with TeacherAuto.
type UpdateOptions struct {
	Space   Space   `json:"space,omitempty"`
	Teacher Teacher `json:"teacher,omitempty"`

	// GrowLabels first gives labels that training has never seen a direction in the code space. The items
	// that carry them get another code, which they then teach. There are as many directions left as bits
	// exceed the labels, or one more.
	GrowLabels bool `json:"grow_labels,omitempty"`

	// Progress is called from Update's goroutine after each block of items, in the stages "try" while items
	// without labels are tried on a copy, and "learn" while items teach.
	Progress event.Progress `json:"-"`
}

// Update continues the learning of a space's projections with the items written since the training or the
// last update: the online step of FDDH (Liu, Wang, Cheung 2021, eqs. 22-24). It makes a new revision of the
// space, in one commit. Stored codes stay as they are and remain comparable; the new projections encode
// queries, and items that are put from then on. Update takes items that have changed or gone out of what was
// learned. The result is, but for rounding, what the present items have taught. A modality that loses all its
// items keeps its projection until something teaches it.
//
// Readers and writers go on while it runs, on half of the processors; writers wait for the commit. With 800
// anchors, 128 bits and two modalities of 128 dimensions an item costs half a millisecond in an update of a
// hundred items, the revision included, and less in larger ones. The first update of a space after Open reads
// the statistics, which stay in memory with their factors: 16 k (k+c) bytes a modality for k features and c
// labels, 16 k (k+c+q) once projections have taught. Update looks at a million pending items at most: call it
// again for more. Updates of one space wait for each other. A space that is being built gives ErrBusy, a
// codes-only collection ErrInvalid, one without a model ErrNoModel.
// After an error, or if the context ends early, the revision is the one before, or the one in which labels
// have grown.
func (c *Collection) Update(ctx context.Context, opt UpdateOptions) (*report.Update, error) {
	ctx, ended := work.Hearing(ctx, &opt.Progress)
	defer ended()
	in, leave, err := c.learning(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	if !learn.Teacher(opt.Teacher).Known() {
		return nil, fault.Invalid("unknown teacher %v", opt.Teacher)
	}
	op := in.DB.Signals.Begin(ctx, event.OpUpdate, in.Name)
	defer op.Abandon()
	u, err := in.Update(ctx, learn.UpdateOptions{
		Space: c.spaceOr(opt.Space), Teacher: learn.Teacher(opt.Teacher), GrowLabels: opt.GrowLabels,
		Progress: op.Telling(opt.Progress),
	})
	op.End(err, learn.UpdateEvent(u))
	return u, err
}

// ReindexOptions are the options of Reindex. The zero value will do.
type ReindexOptions struct {
	// Space is the space whose projections make the codes of the new one; 0 is the active space. While a
	// space is being built, 0 and its own number complete it.
	Space Space `json:"space,omitempty"`

	// Activate makes the new space the active one when it is complete.
	Activate bool `json:"activate,omitempty"`

	// Rate, if positive, is the number of items a second that get codes, at most.
	Rate int `json:"rate,omitempty"`

	// Rows, if not 0, gives only the items of rows below it codes, see Hit.Row. The space stays unfinished
	// until a call without Rows, or with Rows beyond all items, completes it. So a program decides what comes
	// between; see Options.NoResume.
	Rows uint64 `json:"rows,omitempty"`

	// Progress is called with the number of items done, and of all items, in the stage "encode", from the
	// goroutine of Reindex.
	Progress event.Progress `json:"-"`
}

// Reindex makes a new space from the present projections of a space and the stored vectors of all items.
// Online updates change only the codes of later items. In the new space every item without labels gets the
// code of the present projections (the P of eq. 24 of Liu, Wang and Cheung 2021), and labelled items keep the
// codes of their labels. The new space continues the learning of the other one. It stands by, for InSpace
// and Activate, unless ReindexOptions.Activate is set.
//
// Reads and writes go on. New items get codes in the new space, too; writers wait some tens of milliseconds
// for each block of codes. Reindex uses half of GOMAXPROCS. Memory: some 20 MB for a block, and bits/8 + 32
// bytes for each item that has taught. Disk: the codes of all items once more; DropSpace frees them.
//
// Progress is durable. If the context or the process ends, or the database is closed (ErrClosed), the space
// stays as far as it is, and every write keeps it current. Call Reindex again to complete it. Otherwise the
// next Open does so in the background; Reindex then waits for that goroutine, which takes over its Rate.
// DropSpace gives it up; Reindex then returns ErrNotFound. Errors: ErrNoModel without a trained space;
// ErrBusy while another training begins, or while another space than Space is being built; ErrInvalid for a
// codes-only collection.
func (c *Collection) Reindex(ctx context.Context, opt ReindexOptions) (*report.Reindexing, error) {
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
	op := in.DB.Signals.Begin(ctx, event.OpReindex, in.Name)
	defer op.Abandon()
	space, r, err := in.Reindex(ctx, learn.ReindexOptions{
		Space: c.spaceOr(opt.Space), Activate: opt.Activate, Rate: opt.Rate, Rows: opt.Rows,
		Progress: op.Telling(opt.Progress),
	})
	e := in.Unbuilt(space)
	if err == nil {
		e = learn.ReindexEvent(r)
	}
	op.End(err, e)
	return r, err
}

// An Evaluation measures retrieval with queries whose labels are known.
type Evaluation struct {
	// Queries and Sparse hold the vectors of the queries by modality, dense or sparse: as many
	// rows each, row i belonging to query i. A modality stands in one of the two; dense and
	// sparse modalities take either form.
	Queries map[string][][]float32 `json:"queries,omitempty"`
	Sparse  map[string][]Sparse    `json:"sparse,omitempty"`

	// Labels holds the labels of each query. An item is relevant to a query if
	// they have a label in common.
	Labels [][]string `json:"labels,omitempty"`

	// Truth, if not nil, holds the labels of all items of the collection in database order. They
	// score the answers in place of the stored labels.
	Truth [][]string `json:"truth,omitzero"`

	// Where, if not empty, is an expression that the ranked items match, see Query.Where. Truth
	// has all items nevertheless. Args are the values of its placeholders, see Query.Args.
	Where string `json:"where,omitempty"`
	Args  []any  `json:"args,omitempty"`

	// Top is the N of the figures at N (map@N, ...); 0 means 50.
	Top int `json:"top,omitempty"`
}

// Evaluate measures every ordered pair of modalities, from each modality with queries to each other one, over
// the items that have a code and the target modality. If the model has one modality, Evaluate measures that
// one against itself. It ranks the whole collection for each query; the curves of the metrics cost next to
// nothing.
func (c *Collection) Evaluate(ctx context.Context, e Evaluation) ([]report.Retrieval, error) {
	var out []report.Retrieval
	err := c.readLoaded(ctx, func(v *state.View, cv *state.CollectionView) (err error) {
		out, err = learn.Evaluate(ctx, v, cv, e.inside())
		return err
	})
	return out, err
}

// readLoaded gives f the state that the handle shows, when its codes are in memory.
func (c *Collection) readLoaded(ctx context.Context,
	f func(v *state.View, cv *state.CollectionView) error) error {
	if err := c.loaded(ctx); err != nil {
		return err
	}
	return c.read(f)
}

// inside returns the evaluation for those inside the database.
func (e *Evaluation) inside() *learn.Evaluation {
	return &learn.Evaluation{
		Queries: e.Queries, Sparse: insideSparse(e.Sparse), Labels: e.Labels, Truth: e.Truth, Where: e.Where,
		Args: e.Args, Top: e.Top,
	}
}

// insideSparse returns sparse vectors for those inside the database; nil of nil.
func insideSparse(sparse map[string][]Sparse) (in map[string][]model.Vector) {
	for name, vectors := range sparse {
		if in == nil {
			in = map[string][]model.Vector{}
		}
		own := make([]model.Vector, len(vectors))
		for i, x := range vectors {
			own[i] = model.Vector(x)
		}
		in[name] = own
	}
	return in
}

// A Coded is an item's place in the database, its key and its code.
type Coded struct {
	Row  uint32
	Key  string
	Code []byte // bits/8 bytes, as in Item; valid until the iteration goes on
}

// Codes yields the items that have a code and the modality to, in database order,
// with their codes, and without reading what else they hold. An empty one means all
// that have a code. Codes shows them as they are when the iteration starts. An error
// ends it.
func (c *Collection) Codes(ctx context.Context, to string) iter.Seq2[Coded, error] {
	return yielding(func(yield func(Coded) error) error {
		if err := c.loaded(ctx); err != nil {
			return err
		}
		return c.read(func(v *state.View, cv *state.CollectionView) error {
			return search.EachCode(ctx, cv, v.Snap, to, func(row uint32, key string, code []byte) error {
				return yield(Coded{row, key, code})
			})
		})
	})
}

// Encode returns the code that an item with these features would get without labels, bits/8 bytes, and the
// real-valued projection whose signs are the code: the model fuses the projections of the given modalities
// (model.Fuse). Labels and the rest of the item do not matter, unless it has labels and no vector: then it is
// the code that the model has learned for these labels together, which finds items by words that are labels,
// and there is no projection. A label that the model does not know is an ErrInvalid. Encode stores nothing.
// Queries have another code, see EncodeQuery.
func (c *Collection) Encode(item *Item) (code []byte, z []float64, err error) {
	err = c.read(func(_ *state.View, cv *state.CollectionView) error {
		if err := search.CanEncode(cv); err != nil {
			return err
		}
		if len(item.Vectors)+len(item.Sparse)+len(item.Labels) == 0 {
			return fault.Invalid("no vectors or labels to encode")
		}
		if len(item.Vectors)+len(item.Sparse) == 0 {
			code, err = search.EncodeLabels(cv, item.Labels)
			return err
		}
		var it record.Item
		if err := checkItem(&it, cv.Descriptor, &Item{Vectors: item.Vectors, Sparse: item.Sparse},
			true); err != nil {
			return err
		}
		code, z, err = search.EncodeItem(cv, it.Vectors)
		return err
	})
	return code, z, err
}

// EncodeQuery returns the code that a query starts from, bits/8 bytes, and its real-valued projection, nil
// where the query has none: by a code, or by the key of an item without the vector. The code is the signs of
// the projection, but for a key without From: there it is the item's own. By a key it reads the item, as Get
// does.
func (c *Collection) EncodeQuery(ctx context.Context, q Query) (code []byte, z []float64, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	err = c.read(func(v *state.View, cv *state.CollectionView) error {
		code, z, err = search.Encode(v, cv, q.inside())
		return err
	})
	return code, z, err
}
