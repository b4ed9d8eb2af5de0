package db_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/seed"
	"github.com/fddhdb/fddhdb/model"
)

// A history of a collection with several spaces, chosen at random, and what must come
// of it: the items, and which spaces there are.
type history struct {
	t     testing.TB
	seed  uint64
	r     *rand.Rand
	opts  *db.Options
	d     *db.DB
	c     *db.Collection
	bulk  bool // thousands of items come once
	items []*db.Item

	schema           db.Schema // pairsSchema, and what has been added
	o                oracle
	spaces           []db.Space // complete ones, ascending
	last             db.Space   // the largest number of a space that was ever seen
	active, previous db.Space
	snapshots        []*pastState
	log              []string
}

// A pastState is a snapshot, and what it has to show.
type pastState struct {
	snap   *db.Snapshot
	o      oracle
	schema db.Schema
	active db.Space
	codes  map[string][]byte // of the active space, by key and target
}

// Fatal says which history it was.
func (h *history) Fatal(args ...any) {
	h.t.Helper()
	for _, op := range h.log[max(0, len(h.log)-20):] {
		h.t.Log(op)
	}
	h.t.Fatal(append([]any{fmt.Sprintf("seed %d, after %d operations: ", h.seed, len(h.log))}, args...)...)
}

func (h *history) Helper() { h.t.Helper() }

func (h *history) must(err error) {
	h.t.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

func newHistory(t testing.TB, seed uint64, bulk bool) *history {
	h := &history{
		t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), opts: &db.Options{FS: vfs.NewMem()}, bulk: bulk,
		schema: dbkit.PairsSchema, o: oracle{items: map[string]*db.Item{}}, items: dbkit.ViewItems(300, seed),
	}
	if seed%4 == 3 {
		h.opts.UpdateItems = 10
	}
	h.d = dbkit.MustOpen(t, "db", h.opts)
	var err error
	h.c, err = h.d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	h.must(err)
	b := h.d.NewBatch()
	for i := range h.r.IntN(50) { // mostly enough to train on
		it := *h.items[i]
		h.must(b.Put(h.c, &it))
		h.o.put(&it)
	}
	h.must(b.Commit(ctx))
	return h
}

func (h *history) key() string { return fmt.Sprint("k", h.r.IntN(70)) }

// item returns what an item may be like, under any key; seldom with a label that no
// training has seen.
func (h *history) item() *db.Item {
	it := *h.items[h.r.IntN(len(h.items))]
	it.Key = h.key()
	switch h.r.IntN(12) {
	case 0:
		it.Labels = append(slices.Clone(it.Labels), fmt.Sprint("new", h.r.IntN(3)))
	case 1:
		it.Labels = []string{fmt.Sprint("new", h.r.IntN(3))}
	case 2:
		it.Payload = []byte{byte(h.r.IntN(256))}
	case 3:
		it.Fields = map[string]any{"year": h.r.IntN(5)}
	}
	h.addTo(&it)
	return &it
}

// partial returns what an item is merged with.
func (h *history) partial() *db.Item {
	it := &db.Item{Key: h.key()}
	full := h.item()
	switch h.r.IntN(5) {
	case 0:
		it.Payload = []byte{byte(h.r.IntN(256))}
	case 1:
		it.Labels = slices.Clone(full.Labels)
	case 2:
		it.Labels = []string{} // takes them away
	case 3:
		it.Vectors = full.Vectors
	default:
		it.Vectors, it.Labels = full.Vectors, full.Labels
	}
	h.addTo(it)
	return it
}

// write makes one batch of changes.
func (h *history) write(changes int) {
	b := h.d.NewBatch()
	for range changes {
		switch h.r.IntN(6) {
		case 0:
			key := h.key()
			h.must(b.Delete(h.c, key))
			h.o.delete(key)
		case 1, 2:
			it := h.partial()
			h.must(b.Merge(h.c, it))
			h.o.merge(it)
		default:
			it := h.item()
			h.must(b.Put(h.c, it))
			h.o.put(it)
		}
		if h.r.IntN(200) == 0 { // what is in the batch was checked before
			h.alter()
		}
	}
	h.must(b.Commit(ctx))
}

// load puts so many new items that they are stored as tables.
func (h *history) load() {
	b := h.d.NewBatch()
	for i := range db.TableRows {
		it := h.item()
		it.Key = fmt.Sprintf("b%d-%d", len(h.log), i)
		h.must(b.Put(h.c, it))
		h.o.put(it)
		if i%3000 == 2999 {
			h.alter()
		}
	}
	h.must(b.Commit(ctx))
	if !db.IsColumns(b) {
		h.Fatal("that was no bulk load")
	}
}

// train trains, while others write, or until it is told to stop.
func (h *history) train() string {
	opt := h.training([]model.Views{model.ViewsShared, model.ViewsTarget}[h.r.IntN(2)])
	opt.Activate = h.r.IntN(2) == 0
	if h.r.IntN(4) == 0 {
		opt.Rows = 20 + h.r.IntN(20)
	}
	if h.r.IntN(4) == 0 {
		opt.Method, opt.Anchors = model.MethodJoint, 8
	}
	tctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop, write, at := h.r.IntN(6) == 0, h.r.IntN(3), h.r.IntN(8)
	calls := 0
	opt.Progress = func(string, int64, int64) {
		if calls++; calls == at {
			if stop {
				cancel()
			}
			for range write {
				h.write(1 + h.r.IntN(6))
			}
			if h.bulk && h.r.IntN(4) == 0 {
				h.bulk = false
				h.load()
			}
		}
	}
	tr, err := h.c.Train(tctx, opt)
	what := fmt.Sprintf("train %v, activate %v, %v", opt.Views, opt.Activate, err)
	switch {
	case err == nil:
		if tr.Space <= h.last || tr.Active != (opt.Activate || h.active == 0) {
			h.Fatal(fmt.Sprintf("%+v after space %d, active %d", tr, h.last, h.active))
		}
		h.last = tr.Space
		h.spaces = append(h.spaces, tr.Space)
		if tr.Active {
			h.previous, h.active = h.active, tr.Space
		}
	case errors.Is(err, context.Canceled) && stop || errors.Is(err, db.ErrInvalid):
	default:
		h.Fatal(what)
	}
	return what
}

// reindex makes a space of the projections of another, while others write.
func (h *history) reindex() string {
	opt := db.ReindexOptions{Activate: h.r.IntN(2) == 0}
	if len(h.spaces) > 0 && h.r.IntN(2) == 0 {
		opt.Space = h.spaces[h.r.IntN(len(h.spaces))]
	}
	write := h.r.IntN(3)
	opt.Progress = func(string, int64, int64) {
		for ; write > 0; write-- {
			h.write(1 + h.r.IntN(6))
		}
	}
	re, err := h.c.Reindex(ctx, opt)
	what := fmt.Sprintf("reindex %d, activate %v, %v", opt.Space, opt.Activate, err)
	if h.active == 0 && opt.Space == 0 && errors.Is(err, db.ErrNoModel) {
		return what
	}
	if err != nil || re.Space <= h.last || re.Active != opt.Activate {
		h.Fatal(what, fmt.Sprintf(": %+v", re))
	}
	h.last = re.Space
	h.spaces = append(h.spaces, re.Space)
	if re.Active {
		h.previous, h.active = h.active, re.Space
	}
	return what
}

// update lets a space learn, while others write.
func (h *history) update() string {
	opt := db.UpdateOptions{Teacher: db.Teacher(h.r.IntN(4)), GrowLabels: h.r.IntN(3) == 0}
	if len(h.spaces) > 0 && h.r.IntN(2) == 0 {
		opt.Space = h.spaces[h.r.IntN(len(h.spaces))]
	}
	uctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 2)
	updates := 1 + h.r.IntN(2) // at a time
	for range updates {
		go func() {
			_, err := h.c.Update(uctx, opt)
			result <- err
		}()
	}
	for range h.r.IntN(4) {
		h.write(1 + h.r.IntN(6))
	}
	stop := h.r.IntN(6) == 0
	if stop {
		cancel()
	}
	what := fmt.Sprintf("%d updates %+v", updates, opt)
	for range updates {
		err := <-result
		what += fmt.Sprint(", ", err)
		switch {
		case err == nil, stop && errors.Is(err, context.Canceled), h.active == 0 && opt.Space == 0 && errors.Is(err, db.ErrNoModel):
		default:
			h.Fatal(what)
		}
	}
	return what
}

// revision pins a revision, or goes back to one.
func (h *history) revision() string {
	revision := uint32(1 + h.r.IntN(6))
	if h.r.IntN(2) == 0 {
		err := h.c.PinRevision(ctx, 0, revision, h.r.IntN(2) == 0)
		switch {
		case err == nil, errors.Is(err, db.ErrNotFound), h.active == 0 && errors.Is(err, db.ErrNoModel):
		default:
			h.Fatal(err)
		}
		return fmt.Sprintf("pin %d, %v", revision, err)
	}
	_, err := h.c.RestoreRevision(ctx, 0, revision)
	switch {
	case err == nil, errors.Is(err, db.ErrNotFound), errors.Is(err, db.ErrInvalid): // it knows too few labels
	case h.active == 0 && errors.Is(err, db.ErrNoModel):
	case h.opts.UpdateItems > 0 && errors.Is(err, db.ErrBusy):
	default:
		h.Fatal("restore ", revision, ": ", err)
	}
	return fmt.Sprintf("restore %d, %v", revision, err)
}

// one does one thing.
func (h *history) one() string {
	some := func() db.Space { // or one that there is not
		if len(h.spaces) == 0 || h.r.IntN(10) == 0 {
			return h.last + 1 + db.Space(h.r.IntN(2))
		}
		return h.spaces[h.r.IntN(len(h.spaces))]
	}
	expect := func(err, want error, what string, args ...any) string {
		if !errors.Is(err, want) || want == nil && err != nil {
			h.Fatal(fmt.Sprintf(what, args...), ": ", err, ", not ", want)
		}
		return fmt.Sprintf(what, args...)
	}
	switch op := h.r.IntN(50); {
	case op < 14:
		n := 1 + h.r.IntN(12)
		h.write(n)
		return fmt.Sprintf("write %d", n)
	case op < 18:
		it := h.item()
		h.must(dbkit.Second(h.c.Put(ctx, it)))
		h.o.put(it)
		return "put " + it.Key
	case op < 20:
		key := h.key()
		n, err := h.c.Delete(ctx, key)
		if h.must(err); (n == 1) != h.o.delete(key) {
			h.Fatal("deleted ", n)
		}
		return "delete " + key
	case op < 24:
		return h.train()
	case op < 25:
		return h.reindex()
	case op < 29:
		id := some()
		var want error
		if !slices.Contains(h.spaces, id) {
			want = db.ErrNotFound
		} else if id != h.active {
			h.active, h.previous = id, h.active
		}
		return expect(h.c.Activate(ctx, id), want, "activate %d", id)
	case op < 31:
		id, err := h.c.Rollback(ctx)
		if h.previous == 0 {
			return expect(err, db.ErrInvalid, "rollback")
		}
		h.active, h.previous = h.previous, h.active
		if id != h.active {
			h.Fatal("rolled back to ", id, ", not ", h.active)
		}
		return expect(err, nil, "rollback")
	case op < 34:
		id := some()
		var want error
		switch {
		case !slices.Contains(h.spaces, id):
			want = db.ErrNotFound
		case id == h.active:
			want = db.ErrInvalid
		default:
			h.spaces = slices.DeleteFunc(h.spaces, func(s db.Space) bool { return s == id })
			if h.previous == id {
				h.previous = 0
			}
		}
		return expect(h.c.DropSpace(ctx, id), want, "drop %d", id)
	case op < 40:
		return h.update()
	case op < 42:
		return h.revision()
	case op < 44:
		h.reopen()
		return "reopen"
	case op < 45:
		h.must(h.d.Compact(ctx))
		return "compact"
	case op < 46 && h.bulk:
		h.bulk = false
		h.load()
		return "load"
	case op < 48:
		return h.alter()
	default:
		h.snapshot()
		return "snapshot"
	}
}

func (h *history) reopen() {
	for _, s := range h.snapshots {
		h.checkPast(s)
	}
	h.snapshots = nil
	h.must(h.d.Close())
	var err error
	h.d, err = db.Open("db", h.opts)
	h.must(err)
	h.c, err = h.d.Collection("main")
	h.must(err)
}

// snapshot keeps the present state, and now and then looks at one that was kept.
func (h *history) snapshot() {
	snap, err := h.d.Snapshot()
	h.must(err)
	s := &pastState{snap: snap, o: oracle{maps.Clone(h.o.items), slices.Clone(h.o.order)}, schema: h.schema, active: h.active}
	s.codes = h.codes(h.c)
	h.snapshots = append(h.snapshots, s)
	if len(h.snapshots) > 2 {
		h.checkPast(h.snapshots[0])
		h.snapshots = h.snapshots[1:]
	}
}

// codes returns the codes of the active space.
func (h *history) codes(c *db.Collection) map[string][]byte {
	codes := map[string][]byte{}
	for it, err := range c.Items(ctx) {
		h.must(err)
		codes[it.Key] = it.Code
		for target, code := range it.Codes {
			codes[it.Key+" "+target] = code.Code
		}
	}
	return codes
}

// checkPast checks that a snapshot shows what was there when it was taken.
func (h *history) checkPast(s *pastState) {
	c, err := s.snap.Collection("main")
	h.must(err)
	h.checkItems(c, &s.o)
	h.checkSchema(c, s.schema, &s.o)
	if diff := gocmp.Diff(s.codes, h.codes(c)); diff != "" {
		h.Fatal("codes of a snapshot: ", diff)
	}
	if s.active != 0 {
		h.checkSearch(c, s.active)
	}
	h.must(s.snap.Close())
}

func (h *history) checkItems(c *db.Collection, o *oracle) {
	at := 0
	for it, err := range c.Items(ctx) {
		h.must(err)
		if at == len(o.order) {
			h.Fatal("more items than were put: ", it.Key)
		}
		want := *o.items[o.order[at]]
		at++
		ignore := cmpopts.IgnoreFields(db.Item{}, "CodeFrom", "Code", "Codes")
		if !sameItem(&want, it) {
			h.Fatal(gocmp.Diff(&want, it, ignore, cmpopts.EquateEmpty(), cmpopts.SortSlices(cmp.Less[string])))
		}
	}
	if at != len(o.order) {
		h.Fatal(at, " items of ", len(o.order))
	}
}

// sameItem is what cmp.Diff says, sooner, where thousands of items are compared; ints
// come back as int64.
func sameItem(a, b *db.Item) bool {
	fields := func(it *db.Item) string { return fmt.Sprint(it.Fields) }
	sorted := func(x []string) []string { return slices.Compact(slices.Sorted(slices.Values(x))) }
	return a.Key == b.Key && maps.EqualFunc(a.Vectors, b.Vectors, slices.Equal[[]float32]) && string(a.Payload) == string(b.Payload) &&
		fields(a) == fields(b) && slices.Equal(sorted(a.Labels), sorted(b.Labels))
}

// checkSearch compares the answers in a space with a linear scan over its codes.
func (h *history) checkSearch(c *db.Collection, space db.Space) {
	err := db.Read(c, func(v *state.View, cv *state.CollectionView) error {
		in, err := cv.InSpace(uint32(space))
		if err != nil {
			return err
		}
		for _, set := range in.Sets {
			to := ""
			if t, is := set.Modality(); is {
				to = in.Modalities[t].Name
			}
			q := db.Query{Space: space, To: to, Code: dbkit.RandomCodes(1, set.Bits, h.r.Uint64())[0], K: 20_000}
			radius := h.r.IntN(8)
			res, err := dbkit.FirstWithin(c, q, radius)
			if err != nil {
				return err
			}
			want := 0
			for it, err := range c.Items(ctx) {
				if err != nil {
					return err
				}
				row, _, err := record.RowOf(v.Snap, in.ID, it.Key)
				if err != nil {
					return err
				}
				if n, has := set.Table.CodeOf(row); has && hamming(set.Table.Code(n).AppendBytes(nil, set.Bits), q.Code) <= radius {
					want++
				}
			}
			if res.Total != want || len(res.Hits) != want {
				return fmt.Errorf("space %d to %q, radius %d: %d hits of %d", space, to, radius, len(res.Hits), want)
			}
		}
		return nil
	})
	h.must(err)
}

// check compares everything with what must have come of it.
func (h *history) check() {
	checkSpaces(h, h.d)
	h.checkItems(h.c, &h.o)
	h.checkSchema(h.c, h.schema, &h.o)
	h.must(db.Read(h.c, func(_ *state.View, cv *state.CollectionView) error {
		var ids []db.Space
		for _, sp := range cv.Spaces {
			ids = append(ids, db.Space(sp.Space.ID))
			if sp.Numbers.Building {
				return fmt.Errorf("space %d is being built", sp.Space.ID)
			}
		}
		if !slices.Equal(ids, h.spaces) {
			return fmt.Errorf("spaces %d, not %d", ids, h.spaces)
		}
		return nil
	}))
	s, err := h.c.Stats()
	if h.must(err); s.Space != h.active {
		h.Fatal("space ", s.Space, " is active, not ", h.active)
	}
}

func (h *history) run(operations int) {
	for range operations {
		h.log = append(h.log, "")
		h.log[len(h.log)-1] = h.one()
		if h.r.IntN(15) == 0 {
			h.check()
		}
	}
	h.check()
	h.reopen()
	h.check()
	for _, id := range h.spaces {
		h.checkSearch(h.c, id)
	}
	h.must(h.d.Close())
}

// Whatever is done to a collection and its spaces, in any order: every space has the
// codes that its model gives to the items, and the statistics of what they have taught.
func TestRandomHistoriesOfSpaces(t *testing.T) {
	runs := uint64(6)
	if testing.Short() {
		runs = 2
	}
	start := time.Now()
	first := seed.From(t, 0)
	for s := first; s < first+runs || time.Since(start) < *dbkit.Soak; s++ {
		bulk := *dbkit.Soak > 0 && s%10 == 0
		newHistory(t, s, bulk).run(80)
	}
}

// The same with thousands of items at once.
func TestRandomHistoriesOfSpacesWithABulkLoad(t *testing.T) {
	dbkit.LongTest(t)
	newHistory(t, seed.From(t, 1000), true).run(40)
}
