package db_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/learn"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// A spacesLife takes a collection through everything that changes its spaces.
type spacesLife struct {
	fs     vfs.FS
	noSync bool
	cache  int64           // bytes, 0: the default
	fail   *dbkit.FailOnce // what fails now and then; nil: nothing
	d      *db.DB
	c      *db.Collection
}

func (l *spacesLife) open() (err error) {
	if l.d, err = db.Open("db", &db.Options{FS: l.fs, NoSync: l.noSync, CacheBytes: l.cache}); err != nil {
		l.d = nil
		return err
	}
	l.c, err = l.d.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		l.c, err = l.d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	}
	return err
}

func (l *spacesLife) close() error {
	if l.d == nil {
		return nil
	}
	d := l.d
	l.d = nil
	return d.Close()
}

func (l *spacesLife) batch(fill func(b *db.Batch) error) error {
	b := l.d.NewBatch()
	if err := fill(b); err != nil {
		return err
	}
	return b.Commit(ctx)
}

func (l *spacesLife) put(items []*db.Item, label ...string) error {
	return l.batch(func(b *db.Batch) (err error) {
		for _, it := range items {
			own := *it
			own.Labels = append(slices.Clone(own.Labels), label...)
			err = errors.Join(err, b.Put(l.c, &own))
		}
		return err
	})
}

// A lifeStep is something that is done, and has happened or has not.
type lifeStep struct {
	what string
	do   func() error
}

// steps returns what happens. They write tables in between, as bigger ones would.
func (l *spacesLife) steps() []lifeStep {
	items := dbkit.ViewItems(80, 4)
	train := func(seed uint64, activate bool) func() error {
		return func() error {
			opt := dbkit.TinyTraining(seed)
			opt.Activate = activate
			_, err := l.c.Train(ctx, opt)
			return err
		}
	}
	update := func(space db.Space, teacher db.Teacher, grow bool) func() error {
		return func() error {
			_, err := l.c.Update(ctx, db.UpdateOptions{Space: space, Teacher: teacher, GrowLabels: grow})
			return err
		}
	}
	put := func(from, to int, label ...string) func() error {
		return func() error { return l.put(items[from:to], label...) }
	}
	steps := []lifeStep{
		{"open", l.open},
		{"put", put(0, 40)},
		{"first training", train(1, false)},
		{"put and replace", put(36, 46)},
		{"update", update(0, db.TeacherLabels, false)},
		{"second training", train(2, false)},
		{"delete and merge", func() error {
			return l.batch(func(b *db.Batch) error {
				return errors.Join(b.Delete(l.c, "k1"), b.Delete(l.c, "k37"),
					b.Merge(l.c, &db.Item{Key: "k2", Labels: items[5].Labels}))
			})
		}},
		{"flush", func() error { _, err := db.State(l.d).Engine.DB.AsyncFlush(); return err }},
		{"activate", func() error { return l.c.Activate(ctx, 2) }},
		{"put new labels", put(44, 54, "new")},
		{"grow labels", update(0, db.TeacherSelf, true)},
		{"rollback", func() error { _, err := l.c.Rollback(ctx); return err }},
		{"put again", put(50, 60)},
		{"update by a modality", update(1, db.TeacherModality, false)},
		{"restore", func() error { _, err := l.c.RestoreRevision(ctx, 1, 2); return err }},
		{"close", l.close},
		{"open again", l.open},
		{"put once more", put(58, 66, "new")},
		{"grow labels of the other", update(1, db.TeacherAuto, true)},
		{"drop", func() error { return l.c.DropSpace(ctx, 2) }},
		{"third training", train(3, true)},
		{"reindex", func() error {
			_, err := l.c.Reindex(ctx, db.ReindexOptions{Space: 1, Activate: true})
			return err
		}},
		{"close at the end", l.close},
	}
	return steps
}

// A lifeState is what somebody sees of the spaces of a collection.
type lifeState struct {
	items     int
	active    uint32
	revisions map[db.Space]uint32 // of the complete ones, by space
	building  uint32
}

func stateOf(d *db.DB) (s lifeState, err error) {
	s.revisions = map[db.Space]uint32{}
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		return s, nil
	} else if err != nil {
		return s, err
	}
	err = db.Read(c, func(_ *state.View, cv *state.CollectionView) error {
		s.items = cv.Items
		if cv.Space != nil {
			s.active = cv.Space.ID
		}
		for _, sp := range cv.Spaces {
			if sp.Numbers.Building {
				s.building = sp.Space.ID
				continue
			}
			s.revisions[db.Space(sp.Space.ID)] = sp.Space.Revision
		}
		return nil
	})
	return s, err
}

// between returns a function that says what is wrong with a state which is to be that
// before a step, or after it, or, as some steps are several commits, one on the way.
func between(before, after lifeState) func(lifeState) error {
	return func(s lifeState) error {
		if s.between(before, after) {
			return nil
		}
		return fmt.Errorf("%+v, before it was %+v, and is to be %+v", s, before, after)
	}
}

func (s lifeState) between(before, after lifeState) bool {
	either := func(x, a, b int) bool { return x == a || x == b }
	if !either(s.items, before.items, after.items) || !either(int(s.active), int(before.active),
		int(after.active)) {
		return false
	}
	for id, revision := range s.revisions {
		from, was := before.revisions[id]
		to, will := after.revisions[id]
		if !was {
			from = to
		}
		if !will {
			to = from
		}
		if !was && !will || revision < from || revision > to {
			return false
		}
	}
	for id := range before.revisions {
		_, is := s.revisions[id]
		if _, will := after.revisions[id]; will && !is {
			return false
		}
	}
	_, done := after.revisions[db.Space(s.building)]
	return s.building == 0 || done
}

// checkAfter opens what is left of a database, checks that it is one of the states that
// are possible, and works with it.
func checkAfter(t *testing.T, what string, fsys vfs.FS, possible func(lifeState) error) {
	t.Helper()
	fail := func(args ...any) {
		t.Helper()
		t.Fatal(append([]any{what, ": "}, args...)...)
	}
	d, err := db.Open("db", &db.Options{FS: fsys})
	if err != nil {
		fail(err)
	}
	defer func() { d.Close() }()
	if err := inconsistency(d); err != nil {
		fail(err)
	}
	s, err := stateOf(d)
	if err == nil {
		err = possible(s)
	}
	if err != nil {
		fail(err)
	}
	c, err := d.Collection("main")
	if errors.Is(err, db.ErrNotFound) {
		return
	}
	l := &spacesLife{fs: fsys, d: d, c: c}
	must := func(doing string, err error) {
		t.Helper()
		if err == nil {
			err = inconsistency(d)
		}
		if err != nil {
			fail("afterwards, ", doing, ": ", err)
		}
	}
	items := dbkit.ViewItems(80, 4)
	must("put", l.put(items[30:33], "new"))
	must("complete", complete(c))
	must("put", l.put(items[33:36], "newer"))
	must("delete", l.batch(func(b *db.Batch) error { return b.Delete(c, "k31") }))
	s, err = stateOf(d)
	must("look", err)
	for id := range s.revisions {
		_, err := c.Update(ctx, db.UpdateOptions{Space: id, Teacher: db.TeacherLabels, GrowLabels: true})
		must("update", err)
	}
	if s.items > 20 {
		opt := dbkit.TinyTraining(9)
		opt.Activate = true
		_, err := c.Train(ctx, opt)
		must("train", err)
	}
	for id := range s.revisions {
		must("drop", c.DropSpace(ctx, id))
	}
	if err := d.Close(); err != nil {
		fail(err)
	}
	if d, err = db.Open("db", &db.Options{FS: fsys}); err != nil {
		fail(err)
	}
	must("open", nil)
}

// complete waits for whoever completes a space whose building was interrupted.
func complete(c *db.Collection) error {
	for {
		s, err := stateOf(db.Of(c))
		if err != nil || s.building == 0 {
			return err
		}
		time.Sleep(time.Millisecond)
	}
}

// A crash is a file system after a crash.
type crash struct {
	what string
	fs   *vfs.MemFS
	step int // that was going on
}

// A crasher crashes a file system before each change to it, while it goes on.
type crasher struct {
	mem *dbkit.CrashFS
	r   *rand.Rand

	mu      sync.Mutex
	every   int // 0: not now
	changes int
	step    int
	what    string
	crashes []crash
}

func newCrasher(t *testing.T) *crasher {
	return &crasher{mem: dbkit.NewCrashFS(), r: seed.Rand(t, 1, 2)}
}

// begin says what is going on, and which changes to crash before.
func (c *crasher) begin(step int, what string, every int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.step, c.what, c.every = step, what, every
}

// MaybeError crashes, half of the time with all that is not synced lost, and else with any part of it.
func (c *crasher) MaybeError(op errorfs.Op) error {
	if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.every == 0 {
		return nil
	}
	if c.changes++; c.changes%c.every != 0 {
		return nil
	}
	percents := []int{0, 50}
	if c.every > 1 {
		percents = percents[c.changes/c.every%2:][:1]
	}
	for _, percent := range percents {
		c.crashes = append(c.crashes, crash{
			fmt.Sprintf("%s, before change %d (%s), %d%% of what is not synced", c.what, c.changes, op.Path,
				percent),
			c.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.r}), c.step,
		})
	}
	return nil
}

func (c *crasher) String() string { return "crashes" }

// inconsistency looks for one while nothing fails: a failure is for those that are tested.
//
// A compaction may have met the failure right before, while it opened a table. Those who open
// the same table at that moment get the error of the one who does so: Pebble's cache of files
// forgets it with that. So a look that has met it is made again.
func (l *spacesLife) inconsistency() error {
	if l.fail == nil {
		return inconsistency(l.d)
	}
	l.fail.Off.Store(true)
	defer l.fail.Off.Store(false)
	err := inconsistency(l.d)
	if err != nil && strings.Contains(err.Error(), dbkit.ErrInjected.Error()) { // findings are only words
		err = inconsistency(l.d)
	}
	return err
}

// lead goes through the life, and returns the states before the first step and after
// each, up to one that fails, which it returns, too.
func (l *spacesLife) lead(t *testing.T,
	begin func(step int, what string)) (states []lifeState, failed error) {
	states = []lifeState{{revisions: map[db.Space]uint32{}}}
	for i, s := range l.steps() {
		begin(i, s.what)
		err := s.do()
		if l.d != nil && !errors.Is(err, db.ErrFailed) {
			ierr := l.inconsistency()
			stopIf(t, ierr != nil, "%v: %v", s.what, ierr)
		}
		if err != nil {
			return states, fmt.Errorf("%s: %w", s.what, err)
		}
		state := states[i]
		if l.d != nil {
			state = need(stateOf(l.d))(t)
		}
		states = append(states, state)
	}
	return states, nil
}

// A machine that stops at any change to the file system leaves every space as it was
// before what was going on, or after it, and nothing by halves.
func TestCrashesAroundSpaces(t *testing.T) {
	dbkit.LongTest(t)
	every := effort.Of(1, 37)
	for _, noSync := range []bool{false, true} {
		c := newCrasher(t)
		l := &spacesLife{fs: errorfs.Wrap(c.mem, c), noSync: noSync}
		states := need(l.lead(t, func(step int, what string) { c.begin(step, what, every) }))(t)
		for _, cr := range c.crashes {
			possible := between(states[cr.step], states[cr.step+1])
			if noSync { // the latest writes may be lost, but what changes spaces is synced
				possible = func(s lifeState) error {
					if before := states[cr.step]; cr.step > 2 && s.active == 0 && before.active != 0 {
						return fmt.Errorf("%+v, not %+v", s, before)
					}
					return nil
				}
			}
			checkAfter(t, fmt.Sprintf("NoSync %v, %s", noSync, cr.what), cr.fs, possible)
		}
		t.Logf("NoSync %v: %d crashes in %d changes, at the end %+v", noSync, len(c.crashes), c.changes,
			states[len(states)-1])
	}
}

// Whichever change to the file system fails, what was acknowledged is there afterwards,
// and what was not is there whole or not at all.
func TestEveryFailedChangeAroundSpaces(t *testing.T) {
	dbkit.LongTest(t)
	clean := need((&spacesLife{fs: vfs.NewMem()}).lead(t, func(int, string) {}))(t)
	coped := 0
	for k := range sampled(37) {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k}
		l := &spacesLife{fs: errorfs.Wrap(mem, fail), fail: fail}
		states, err := l.lead(t, func(int, string) {})
		cerr := l.close()
		failIf(t, err != nil && errors.Is(err, db.ErrFailed) && !errors.Is(cerr, db.ErrFailed) &&
			!errors.Is(cerr, db.ErrClosed) && cerr != nil, "change %d failed: %v, and then %v", k, err, cerr)
		at := len(states) - 1
		after := clean[min(at+1, len(clean)-1)]
		if err == nil {
			coped++
		}
		checkAfter(t, fmt.Sprintf("change %d failed (%v)", k, err), mem, between(states[at], after))
		if !fail.Fired {
			t.Logf("%d changes failed in turn, %d of them without an error", k, coped-1)
			return
		}
	}
}

// Whichever read fails, nothing is done by halves either.
func TestEveryFailedReadAroundSpaces(t *testing.T) {
	dbkit.LongTest(t)
	clean := need((&spacesLife{fs: vfs.NewMem()}).lead(t, func(int, string) {}))(t)
	stride := effort.Of(15, 997)
	failed := map[string]int{}
	for k := 0; ; k += stride {
		mem := vfs.NewMem()
		fail := &dbkit.FailOnce{K: k, On: func(op errorfs.Op) bool { return op.Kind == errorfs.OpFileReadAt }}
		l := &spacesLife{fs: errorfs.Wrap(mem, fail), fail: fail, cache: 1}
		states, err := l.lead(t, func(int, string) {
			if l.d != nil {
				_ = db.State(l.d).Engine.DB.Flush() // so that it is read from tables
			}
		})
		_ = l.close()
		at := len(states) - 1
		checkAfter(t, fmt.Sprintf("read %d failed (%v)", k, err), mem,
			between(states[at], clean[min(at+1, len(clean)-1)]))
		if !fail.Fired {
			t.Logf("one of %d reads failed in %v", k, failed)
			return
		}
		if err != nil {
			what, _, _ := strings.Cut(err.Error(), ":")
			failed[what]++
		}
	}
}

// The same for a space that is built in several blocks, some of them as tables: a
// builder goes on where the one before has stopped.
func TestCrashesWhileASpaceIsBuilt(t *testing.T) {
	dbkit.LongTest(t)
	c := newCrasher(t)
	l := &spacesLife{fs: errorfs.Wrap(c.mem, c)}
	must(t, l.open())
	items := dbkit.ViewItems(learn.BlockRows+300, 5)
	must(t, l.put(items))
	opt := dbkit.TinyTraining(1)
	opt.Rows = 60
	opt.Progress = func(stage string, done, _ int64) {
		if stage != "encode" {
			return
		}
		c.begin(0, fmt.Sprintf("%d items encoded", done), effort.Of(29, 149))
		if done == 10*learn.EncodeBlock { // in the second block
			// one that was, and one that is not encoded yet
			fine(t, l.put(items[done-2:done+2]))
			gives(t, 3)(l.c.Delete(ctx, "k7", "k10300", "k16400"))
		}
	}
	need(l.c.Train(ctx, opt))(t)
	c.begin(0, "", 0)
	checkSpaces(t, l.d)
	must(t, l.close())
	resumed := map[uint64]int{}
	for _, cr := range c.crashes {
		d := dbkit.MustOpen(t, "db", &db.Options{FS: cr.fs})
		main := dbkit.MustCollection(t, d, "main")
		cv, _ := db.State(d).Current.Load().Collections.Get(db.Inside(main).ID)
		for _, s := range cv.Spaces {
			if s.Numbers.Building {
				resumed[s.Numbers.Built]++
			}
		}
		checkSpaces(t, d) // while it goes on
		must(t, complete(main), cr.what)
		checkSpaces(t, d)
		s, err := stateOf(d)
		failIf(t, err != nil || s.active != 1 || s.building != 0, "%s: %+v, %v", cr.what, s, err)
		dbkit.MustClose(t, d)
	}
	failIf(t, len(c.crashes) == 0, "nothing has crashed")
	t.Logf("%d crashes in %d changes, so many before rows: %v", len(c.crashes), c.changes, resumed)
}

// Writers, trainings, updates, activations, drops and searches at the same time: what
// is refused is refused with the words for it, and in the end everything fits together.
func TestSpacesUnderConcurrentUse(t *testing.T) {
	t.Parallel()
	opts := &db.Options{FS: vfs.NewMem(), UpdateItems: 40}
	d, c := openNew(t, "db", opts, dbkit.PairsSchema)
	defer func() { d.Close() }()
	items := dbkit.ViewItems(200, 11)
	train(t, c, items[:60], dbkit.TinyTraining(1))
	rounds := 40
	if testing.Short() {
		rounds = 12
	}
	var all sync.WaitGroup
	first := seed.From(t, 1)
	each := func(name string, rounds int, f func(r *rand.Rand, i int) error, allowed ...error) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(first, uint64(len(name))))
			for i := range rounds {
				err := f(r, i)
				ok := err == nil
				for _, a := range allowed {
					ok = ok || errors.Is(err, a)
				}
				failIf(t, !ok, "%s %d: %v", name, i, err)
			}
		})
	}
	for w := range 2 {
		each(fmt.Sprint("writer", w), 4*rounds, func(r *rand.Rand, i int) error {
			b := d.NewBatch()
			for range 1 + r.IntN(5) {
				it := *items[r.IntN(len(items))]
				it.Key = fmt.Sprint("k", r.IntN(90))
				switch r.IntN(5) {
				case 0:
					b.Delete(c, it.Key)
				case 1:
					b.Merge(c, &db.Item{Key: it.Key, Payload: []byte{byte(i)}})
				case 2:
					b.Merge(c, &db.Item{Key: it.Key, Labels: []string{fmt.Sprint("new", r.IntN(3))}})
				default:
					b.Put(c, &it)
				}
			}
			return b.Commit(ctx)
		})
	}
	each("train", rounds/4, func(_ *rand.Rand, i int) error {
		opt := dbkit.TinyTraining(uint64(i))
		opt.Activate = i%3 == 0
		_, err := c.Train(ctx, opt)
		return err
	}, db.ErrBusy, db.ErrNotFound) // it may be dropped while it is being built
	spaceOf := func(r *rand.Rand) db.Space { return db.Space(1 + r.IntN(rounds/4+1)) }
	each("activate", rounds, func(r *rand.Rand, _ int) error { return c.Activate(ctx, spaceOf(r)) },
		db.ErrNotFound, db.ErrBusy)
	each("rollback", rounds/2, func(*rand.Rand, int) error { _, err := c.Rollback(ctx); return err },
		db.ErrInvalid)
	each("drop", rounds/2, func(r *rand.Rand, _ int) error { return c.DropSpace(ctx, spaceOf(r)) },
		db.ErrNotFound, db.ErrInvalid)
	for u := range 2 {
		each(fmt.Sprint("update", u), rounds/2, func(r *rand.Rand, i int) error {
			opt := db.UpdateOptions{Teacher: db.Teacher(i % 4), GrowLabels: r.IntN(4) == 0}
			if r.IntN(2) == 0 {
				opt.Space = spaceOf(r)
			}
			_, err := c.Update(ctx, opt)
			return err
		}, db.ErrNotFound, db.ErrBusy)
	}
	each("restore", rounds/4, func(r *rand.Rand, _ int) error {
		_, err := c.RestoreRevision(ctx, 0, uint32(1+r.IntN(4)))
		return err
	}, db.ErrNotFound, db.ErrBusy, db.ErrInvalid)
	each("search", 3*rounds, func(r *rand.Rand, _ int) error {
		in, err := c, error(nil)
		if r.IntN(2) == 0 {
			in, err = c.InSpace(spaceOf(r), 0)
		}
		if err == nil {
			_, err = in.Search(ctx, db.Query{Key: fmt.Sprint("k", r.IntN(90)),
				To: []string{"image", "text"}[r.IntN(2)]})
		}
		return err
	}, db.ErrNotFound, db.ErrBusy, db.ErrInvalid)
	all.Wait()
	checkSpaces(t, d)
	d, _ = reopen(t, d, "db", opts)
	checkSpaces(t, d)
}
