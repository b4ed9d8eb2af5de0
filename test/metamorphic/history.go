package metamorphic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A Failure says at which operation of a program the database and the model differed.
type Failure struct {
	Op  int
	Do  string
	Err error
}

func (f *Failure) Error() string { return fmt.Sprintf("operation %d, %s: %v", f.Op, f.Do, f.Err) }

// Unwrap returns the difference.
func (f *Failure) Unwrap() error { return f.Err }

// Counts has, for each kind of operation, how many were run, and how many of these did
// their work. The others ended with the error that the model predicted, or were passed
// over.
type Counts map[string][2]int

// Add adds other counts.
func (c Counts) Add(other Counts) {
	for do, n := range other {
		c[do] = [2]int{c[do][0] + n[0], c[do][1] + n[1]}
	}
}

// All returns the number of operations.
func (c Counts) All() int {
	n := 0
	for _, of := range c {
		n += of[0]
	}
	return n
}

func (c Counts) String() string {
	var b strings.Builder
	for _, do := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, " %s %d/%d", do, c[do][1], c[do][0])
	}
	return b.String()
}

// A history is a program that runs. Fields without another word belong to the goroutine
// of Run; lanes only read them.
type history struct {
	ctx     context.Context
	options program.Options
	dir     string  // temporary folder of everything
	mem     *memory // nil: the database is in dir
	name    string  // folder of the database
	d       *db.DB

	now  *world
	past []*world // worlds to which a crash may lead back, oldest first

	snapshots map[string]*moment
	cursors   map[string]*place
	counts    Counts
	born      int       // collections created so far
	recalled  recallSum // of what indexes of vectors have found

	backups     map[string]*kept
	backupOrder []string // the oldest first
	copies      map[string]*duplicate
	folders     int               // number of folders that have been named
	untouched   map[string]string // footprint of a database that is open read-only
}

// opTime is the limit for one operation. A longer one counts as hanging.
const opTime = 5 * time.Minute

// errPassed is the result of an operation that ended with the predicted error, or found
// nothing to work on.
var errPassed = errors.New("passed over")

// Run runs a program in a temporary folder, which it removes. The error is a *Failure,
// or comes from the preparation.
func Run(p *program.Program) (counts Counts, err error) {
	dir, err := os.MkdirTemp("", "metamorphic-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	h := &history{
		options: p.Options, dir: dir, name: "db", now: &world{collections: map[string]*collection{}},
		snapshots: map[string]*moment{}, cursors: map[string]*place{}, counts: Counts{},
		backups: map[string]*kept{}, copies: map[string]*duplicate{},
	}
	if !p.Options.Disk {
		h.mem = newMemory()
	}
	defer func() {
		if h.d != nil {
			_ = h.d.Close() // after a failure; otherwise it is closed already
		}
	}()
	steps := []program.Op{{Do: "open"}}
	steps = append(append(steps, p.Ops...), program.Op{Do: "end"})
	for i := range steps {
		if err := h.step(&steps[i]); err != nil {
			return h.counts, &Failure{Op: i, Do: steps[i].Do, Err: err} // operation i stands in line i+1
		}
	}
	return h.counts, nil
}

// step runs one operation.
func (h *history) step(op *program.Op) (err error) {
	do, ok := verbs[op.Do]
	if !ok {
		return fmt.Errorf("there is no operation %q", op.Do)
	}
	var cancel context.CancelFunc
	h.ctx, cancel = context.WithTimeout(context.Background(), opTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	n := h.counts[op.Do]
	n[0]++
	if err = h.refused(op, do(h, op)); err == nil {
		n[1]++
	}
	if err = passed(err); err == nil {
		err = h.same()
	}
	if op.Do != "open" && op.Do != "end" {
		h.counts[op.Do] = n
	}
	return err
}

var verbs map[string]func(*history, *program.Op) error

func init() {
	verbs = map[string]func(*history, *program.Op) error{
		"open": (*history).open, "end": (*history).end, "check": (*history).check,
		"create": (*history).create, "drop": (*history).dropCollection, "alter": (*history).alter,
		"renamelabel": (*history).renameLabel,
		"put":         (*history).write, "merge": (*history).write, "batch": (*history).write,
		"fill": (*history).write, "putif": (*history).write,
		"import": (*history).importSome,
		"delete": (*history).delete, "deletewhere": (*history).deleteWhere, "together": (*history).together,
		"train": (*history).train, "update": (*history).update, "reindex": (*history).reindex,
		"activate": (*history).activate,
		"rollback": (*history).rollback, "dropspace": (*history).dropSpace,
		"restorerevision": (*history).restoreRevision,
		"get":             (*history).get, "where": (*history).where, "search": (*history).search,
		"radius": (*history).radius,
		"pages":  (*history).pages, "searchall": (*history).searchAll,
		"first": (*history).first, "more": (*history).more,
		"snapshot": (*history).snapshot, "release": (*history).release,
		"indexvectors": (*history).indexVectors, "dropindex": (*history).dropIndex,
		"recall":  (*history).recall,
		"compact": (*history).compact, "index": (*history).index, "verify": (*history).verify,
		"cancelled": (*history).cancelled,
		"backup":    (*history).backup, "prune": (*history).prune, "restore": (*history).restore,
		"checkpoint": (*history).checkpoint, "switch": (*history).switchTo, "discard": (*history).discard,
		"repair": (*history).repair,
		"reopen": (*history).reopen, "crash": (*history).crash,
	}
}

// expect compares the error of an operation with the predicted error, or nil.
func expect(got, want error) error {
	switch {
	case want == nil && got != nil:
		return got
	case want != nil && !errors.Is(got, want):
		return fmt.Errorf("the error is %w, not %v", got, want)
	case want != nil:
		return errPassed
	}
	return nil
}

// wrong returns the error of an operation; without one, an error that describes its
// wrong result.
func wrong(err error, format string, args ...any) error {
	if err != nil {
		return err
	}
	return fmt.Errorf(format, args...)
}

// dbOptions returns the options to open the database in a folder with.
func (h *history) dbOptions(name string) (dir string, o *db.Options) {
	o = &db.Options{
		NoSync: h.options.NoSync, CacheBytes: h.options.CacheBytes,
		IndexCacheBytes: h.options.IndexCacheBytes, RerankCacheBytes: h.options.RerankCacheBytes,
		KeyCacheBytes: h.options.KeyCacheBytes, UpdateItems: h.options.UpdateItems,
		ReadOnly: h.options.ReadOnly,
	}
	if h.mem == nil {
		return filepath.Join(h.dir, name), o
	}
	o.FS = h.mem
	return name, o
}

// folder returns the file system and the path of the folder of a database.
func (h *history) folder(name string) (vfs.FS, string) {
	dir, o := h.dbOptions(name)
	if o.FS == nil {
		o.FS = vfs.Default
	}
	return o.FS, dir
}

// newFolder returns a name that no folder has or ever had.
func (h *history) newFolder() string {
	h.folders++
	return fmt.Sprint("db", h.folders)
}

// remove deletes the folder of a database.
func (h *history) remove(name string) error {
	fsys, dir := h.folder(name)
	return fsys.RemoveAll(dir)
}

func (h *history) open(*program.Op) (err error) {
	dir, o := h.dbOptions(h.name)
	h.untouched = nil
	if h.learns() { // what is looked up from now on must not get into the worlds of copies
		for name := range h.now.collections {
			h.now.edit(name)
		}
	}
	if o.ReadOnly {
		if h.untouched, err = h.footprint(); err != nil {
			return err
		}
	}
	if h.d, err = db.Open(dir, o); err != nil {
		return err
	}
	if r := h.d.Recovery(); r.Missing() > 0 || len(r.Losses) > 0 || r.Problem != "" {
		return fmt.Errorf("recovery: %+v", r)
	}
	return nil
}

// sequence returns the number of the last commit.
func (h *history) sequence() (uint64, error) {
	s, err := h.d.Stats()
	if err != nil {
		return 0, err
	}
	return s.Sequence, nil
}

func (h *history) close() error {
	for _, m := range h.snapshots {
		if err := h.checkWorld(m.w, m.Snapshot.Collection); err != nil {
			return fmt.Errorf("snapshot: %w", err)
		}
	}
	h.snapshots = map[string]*moment{}
	if h.learns() {
		for _, w := range append(h.past, h.now) {
			for _, c := range w.collections {
				for _, sp := range c.spaces {
					sp.free = true
				}
			}
		}
	}
	d := h.d
	h.d = nil
	return errors.Join(d.Close(), h.stayed())
}

// end checks everything, and again after reopening.
func (h *history) end(*program.Op) error {
	if err := h.check(nil); err != nil {
		return err
	}
	if err := h.reopen(&program.Op{}); err != nil {
		return err
	}
	if err := h.verify(nil); err != nil {
		return err
	}
	return errors.Join(h.recalled.enough(), h.close())
}

// learns reports whether projections may change in the background.
func (h *history) learns() bool { return h.options.UpdateItems > 0 && !h.options.ReadOnly }

// knows reports whether the model knows every commit. Updates are made in the background, and so is
// what keeps indexes of vectors.
func (h *history) knows() bool {
	for _, c := range h.now.collections {
		if len(c.indexes) > 0 {
			return false
		}
	}
	return !h.learns()
}

// commit makes next the present world. With synced, a crash cannot lose it.
func (h *history) commit(next *world, synced bool) error {
	if !h.options.NoSync {
		h.now = next
		return nil
	}
	if h.past = append(h.past, h.now); synced {
		h.past = nil
	}
	h.now = next
	var err error
	next.sequence, err = h.sequence()
	return err
}

// shown returns the state that an operation reads, and a function that returns its
// collections.
func (h *history) shown(op *program.Op) (*world, func(string) (*db.Collection, error), error) {
	if op.At == "" {
		return h.now, h.d.Collection, nil
	}
	m := h.snapshots[op.At]
	if m == nil {
		return nil, nil, errPassed
	}
	return m.w, m.Snapshot.Collection, nil
}

// same notes that an operation has made commits that changed nothing, such as a
// compaction, or a training that was stopped.
func (h *history) same() error {
	if !h.options.NoSync || h.d == nil {
		return nil
	}
	sequence, err := h.sequence()
	if err == nil && sequence != h.now.sequence {
		err = h.commit(h.now.fork(), false)
	}
	return err
}

// collection returns the collection that an operation reads: its definition and its
// handle.
func (h *history) collection(op *program.Op) (*collection, *db.Collection, error) {
	w, get, err := h.shown(op)
	if err != nil {
		return nil, nil, err
	}
	handle, err := get(op.In)
	c := w.collections[op.In]
	if c == nil {
		return nil, nil, expect(err, db.ErrNotFound)
	}
	return c, handle, err
}

func names(w *world) []string { return slices.Sorted(maps.Keys(w.collections)) }

// A moment is a snapshot, and the world that it has to show.
type moment struct {
	*db.Snapshot
	w *world
}

func (h *history) create(op *program.Op) error {
	var want error
	if h.now.collections[op.In] != nil {
		want = db.ErrExists
	}
	_, err := h.d.CreateCollection(h.ctx, op.In, db.Schema{Modalities: op.Schema.Modalities,
		Bits: op.Schema.Bits, Fields: op.Schema.AllFields()})
	if err := expect(err, want); err != nil {
		return err
	}
	next := h.now.fork()
	c := newCollection(op.In, op.Schema)
	h.born++
	c.born = h.born
	next.collections[op.In] = c
	return h.commit(next, true)
}

func (h *history) dropCollection(op *program.Op) error {
	_, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if err := h.d.DropCollection(h.ctx, op.In); err != nil {
		return err
	}
	if _, err := handle.Count(context.Background(), ""); !errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("a handle on what was dropped: %v", err)
	}
	next := h.now.fork()
	delete(next.collections, op.In)
	return h.commit(next, true)
}

func (h *history) snapshot(op *program.Op) error {
	if old := h.snapshots[op.Name]; old != nil {
		return errPassed
	}
	s, err := h.d.Snapshot()
	if err != nil {
		return err
	}
	h.snapshots[op.Name] = &moment{s, h.now.fork()}
	if !h.learns() {
		return nil
	}
	// The revision of the snapshot has to be read before there is another one. From
	// then on, the new revision belongs to the present state only.
	for name := range h.now.collections {
		h.snapshots[op.Name].w.edit(name)
	}
	return h.checkWorld(h.snapshots[op.Name].w, s.Collection)
}

// release compares a snapshot and closes it.
func (h *history) release(op *program.Op) error {
	m := h.snapshots[op.Name]
	if m == nil {
		return errPassed
	}
	if err := h.checkWorld(m.w, m.Snapshot.Collection); err != nil {
		return err
	}
	delete(h.snapshots, op.Name)
	if err := m.Close(); err != nil {
		return err
	}
	if _, err := m.Snapshot.Collection("a"); !errors.Is(err, db.ErrClosed) {
		return fmt.Errorf("a closed snapshot: %v", err)
	}
	return nil
}

func (h *history) compact(*program.Op) error { return h.d.Compact(h.ctx) }

func (h *history) index(*program.Op) error { return h.d.WaitForIndex(h.ctx) }

// cancelled calls every function that takes a context with one that has ended. Nothing
// may happen.
func (h *history) cancelled(op *program.Op) error {
	c, handle, err := h.collection(op)
	if err != nil {
		return err
	}
	if !h.writable() {
		return errPassed
	}
	ctx, cancel := context.WithCancel(h.ctx)
	cancel()
	second := func(_ any, err error) error { return err }
	errs := map[string]error{
		"compact": h.d.Compact(ctx), "deletewhere": second(handle.DeleteWhere(ctx, "NOT label = ''")),
		"delete": second(handle.Delete(ctx, op.Key)),
		"verify": second(h.d.Verify(ctx, db.VerifyOptions{}, func(report.Finding) error { return nil })),
		"get":    second(handle.Get(ctx, op.Key)), "spaces": second(handle.Spaces(ctx)),
	}
	if c.active == 0 {
		delete(errs, "spaces") // such a collection has no spaces
	}
	if !c.refused(&program.Op{Do: "put", Key: op.Key, Item: op.Item}) {
		_, errs["put"] = handle.Put(ctx, c.given(op.Key, op.Item))
	}
	if sp := c.space(0); sp != nil {
		q := db.Query{Code: program.CodeOf(sp.bits, 1)}
		errs["search"], errs["radius"] = second(handle.Search(ctx, q)), second(handle.SearchRadius(ctx, q, 3))
	}
	if !c.codesOnly() {
		errs["indexvectors"] = second(handle.IndexVectors(ctx, db.IndexOptions{}))
	}
	if c.active != 0 && !c.codesOnly() {
		errs["train"] = second(handle.Train(ctx, trainOptions(&program.Training{Bits: 16, Anchors: 4},
			&c.schema)))
		errs["update"] = second(handle.Update(ctx, db.UpdateOptions{GrowLabels: true}))
		errs["reindex"] = second(handle.Reindex(ctx, db.ReindexOptions{}))
	}
	for what, err := range errs {
		if !errors.Is(err, context.Canceled) && !(h.learns() && errors.Is(err, db.ErrBusy)) {
			return fmt.Errorf("%s: %v", what, err)
		}
	}
	return h.check(nil)
}

func (h *history) verify(*program.Op) error {
	return nothingFound(func(found func(report.Finding) error) error {
		_, err := h.d.Verify(h.ctx, db.VerifyOptions{Deep: true}, found)
		return err
	})
}

// nothingFound calls look, and makes an error of what look finds.
func nothingFound(look func(found func(report.Finding) error) error) error {
	var findings []string
	err := look(func(f report.Finding) error {
		findings = append(findings, f.String())
		return nil
	})
	if err == nil && len(findings) > 0 {
		err = fmt.Errorf("%d findings: %s", len(findings), findings[:min(3, len(findings))])
	}
	return err
}

// reopen closes the database and opens it again, perhaps with other options. The same
// queries have to have the same answers before and after.
func (h *history) reopen(op *program.Op) error {
	before, err := h.probe()
	if err != nil {
		return err
	}
	if err := h.close(); err != nil {
		return err
	}
	h.setOptions(op)
	if err := h.open(nil); err != nil {
		return err
	}
	h.past = nil // closing makes everything durable
	if err := h.check(nil); err != nil {
		return err
	}
	if h.now.sequence, err = h.sequence(); err != nil {
		return err
	}
	after, err := h.probe()
	if err != nil {
		return err
	}
	return sameAnswers(before, after)
}

func (h *history) setOptions(op *program.Op) {
	if op.Options != nil {
		disk := h.options.Disk
		h.options = *op.Options
		h.options.Disk = disk
	}
}

// crash continues with what a crash would leave at this moment.
func (h *history) crash(op *program.Op) error {
	if h.mem == nil {
		return h.reopen(op)
	}
	left := h.mem.crash(op)
	if err := h.close(); err != nil {
		return err
	}
	h.mem = left
	exact := !h.options.NoSync || h.knows()
	h.setOptions(op)
	if err := h.open(nil); err != nil {
		return err
	}
	if err := h.recovered(exact); err != nil {
		return err
	}
	return h.verify(nil)
}

// recovered finds the state that the database has come back to: the last one; or,
// without syncing, any state since the last sync. With exact, all commits are known to
// the model.
func (h *history) recovered(exact bool) error {
	sequence, err := h.sequence()
	if err != nil {
		return err
	}
	for _, w := range slices.Backward(h.past) {
		if h.now.sequence > sequence {
			h.now = w
		}
	}
	if len(h.past) > 0 && (h.now.sequence > sequence || exact && h.now.sequence != sequence) {
		return fmt.Errorf("commit %d is the last, and no state of the %d that were not synced has that number; the one before has %d", sequence, len(h.past), h.now.sequence)
	}
	if err := h.checkWorld(h.now, h.d.Collection); err != nil {
		return fmt.Errorf("of commits that were not synced, %d may be lost; commit %d is the last: %w",
			len(h.past), sequence, err)
	}
	h.now.sequence, h.past = sequence, nil
	return nil
}

// A cut is a state of the database while lanes write. It has all writes of each lane
// that had returned, at most those that had begun, and no half of any.
type cut struct {
	least []int64 // writes of each lane that had returned before
	most  []int64 // writes of each lane that had begun by the end
}

// A progress counts the writes of a lane that have begun, and those that have returned.
// Lanes write it and others read it.
type progress struct{ begun, back atomic.Int64 }

// cutOf calls f, and returns the cut that f sees.
func cutOf(lanes []progress, f func() error) (c cut, err error) {
	for l := range lanes {
		c.least = append(c.least, lanes[l].back.Load())
	}
	err = f()
	for l := range lanes {
		c.most = append(c.most, lanes[l].begun.Load())
	}
	return c, err
}

// An interruption is a crash while lanes write.
type interruption struct {
	cut
	after  int64 // the crash comes after so many writes
	writes atomic.Int64
	left   *memory // what the crash leaves; nil: it has not come
}

// wrote counts a write that has returned. If it is number after, it makes the crash.
func (i *interruption) wrote(h *history, op *program.Op, lanes []progress) {
	if i.writes.Add(1) != i.after {
		return
	}
	i.cut, _ = cutOf(lanes, func() error {
		i.left = h.mem.crash(op)
		return nil
	})
}

// check opens what the crash has left and compares it.
func (i *interruption) check(h *history, lanes [][]laneStep) error {
	if i.left == nil {
		return nil
	}
	dir, o := h.dbOptions(h.name)
	o.FS = i.left
	if err := i.cut.check(h, dir, o, lanes); err != nil {
		return fmt.Errorf("after a crash: %w", err)
	}
	return nil
}

// check opens the database in dir and compares it.
func (c *cut) check(h *history, dir string, o *db.Options, lanes [][]laneStep) error {
	o.UpdateItems, o.MustExist = 0, true
	d, err := db.Open(dir, o)
	if err != nil {
		return err
	}
	if err = c.compare(h, d, lanes); err == nil {
		err = (&history{ctx: h.ctx, d: d}).verify(nil)
	}
	return errors.Join(err, d.Close())
}

func (c *cut) compare(h *history, d *db.DB, lanes [][]laneStep) error {
	got := map[string]map[string]*db.Item{}
	for name := range h.now.collections {
		handle, err := d.Collection(name)
		if err != nil {
			return err
		}
		got[name] = map[string]*db.Item{}
		for it, err := range handle.Items(h.ctx, "") {
			if err != nil {
				return err
			}
			got[name][it.Key] = it
		}
	}
	for l, steps := range lanes {
		worlds := []*world{h.now}
		keys := touched{}
		for _, step := range steps {
			if step.writes() {
				worlds = append(worlds, step.w)
				for name, of := range step.t {
					for _, key := range of {
						keys.add(name, key)
					}
				}
			}
		}
		var last error
		possible := func(w *world) bool {
			last = keys.same(h.now, w, got)
			return last == nil
		}
		if !slices.ContainsFunc(worlds[c.least[l]:c.most[l]+1], possible) {
			return fmt.Errorf("of lane %d, %d writes had come back and %d begun; there is no state in between: %w", l, c.least[l], c.most[l], last)
		}
	}
	for name, of := range h.now.collections { // collections that no lane writes to
		others := touched{}
		for key := range of.items {
			if !strings.HasPrefix(key, "lane") {
				others.add(name, key)
			}
		}
		if err := others.same(h.now, h.now, got); err != nil {
			return err
		}
	}
	return nil
}

// same compares items with those of a world, in the collections that seen has.
func (t touched) same(seen, w *world, got map[string]map[string]*db.Item) error {
	for name, keys := range t {
		as, c := seen.collections[name], w.collections[name]
		if as == nil {
			continue // the copy does not have this collection
		}
		for _, key := range keys {
			want, is := c.items[key], got[name][key]
			if (want == nil) != (is == nil) {
				return fmt.Errorf("collection %q: item %q is there: %v, want %v", name, key, is != nil,
					want != nil)
			}
			if want != nil {
				if err := as.sameContent(want, is); err != nil {
					return fmt.Errorf("collection %q: item %q: %w", name, key, err)
				}
			}
		}
	}
	return nil
}

// Upto returns the program up to the operation that failed.
func Upto(p *program.Program, err error) *program.Program {
	var f *Failure
	if errors.As(err, &f) && f.Op > 0 && f.Op < len(p.Ops) {
		return &program.Program{Options: p.Options, Ops: slices.Clone(p.Ops[:f.Op])}
	}
	return p
}
