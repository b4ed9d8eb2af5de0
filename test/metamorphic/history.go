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
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
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
	options Options
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
func Run(p *Program) (counts Counts, err error) {
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
	steps := []Op{{Do: "open"}}
	steps = append(append(steps, p.Ops...), Op{Do: "end"})
	for i := range steps {
		if err := h.step(&steps[i]); err != nil {
			return h.counts, &Failure{Op: i, Do: steps[i].Do, Err: err} // operation i stands in line i+1
		}
	}
	return h.counts, nil
}

// step runs one operation.
func (h *history) step(op *Op) (err error) {
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

var verbs map[string]func(*history, *Op) error

func init() {
	verbs = map[string]func(*history, *Op) error{
		"open": (*history).open, "end": (*history).end, "check": (*history).check,
		"create": (*history).create, "drop": (*history).dropCollection, "alter": (*history).alter,
		"renamelabel": (*history).renameLabel,
		"put":         (*history).write, "merge": (*history).write, "batch": (*history).write, "fill": (*history).write, "putif": (*history).write,
		"import": (*history).importSome,
		"delete": (*history).delete, "deletewhere": (*history).deleteWhere, "together": (*history).together,
		"train": (*history).train, "update": (*history).update, "reindex": (*history).reindex, "activate": (*history).activate,
		"rollback": (*history).rollback, "dropspace": (*history).dropSpace, "pin": (*history).pin, "restorerevision": (*history).restoreRevision,
		"get": (*history).get, "where": (*history).where, "search": (*history).search, "radius": (*history).radius,
		"pages": (*history).pages, "searchall": (*history).searchAll,
		"first": (*history).first, "more": (*history).more,
		"snapshot": (*history).snapshot, "release": (*history).release,
		"indexvectors": (*history).indexVectors, "dropindex": (*history).dropIndex, "recall": (*history).recall,
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
		NoSync: h.options.NoSync, CacheBytes: h.options.CacheBytes, IndexCacheBytes: h.options.IndexCacheBytes, RerankCacheBytes: h.options.RerankCacheBytes,
		KeyCacheBytes: h.options.KeyCacheBytes, UpdateItems: h.options.UpdateItems, ReadOnly: h.options.ReadOnly,
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

func (h *history) open(*Op) (err error) {
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
func (h *history) end(*Op) error {
	if err := h.check(nil); err != nil {
		return err
	}
	if err := h.reopen(&Op{}); err != nil {
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
func (h *history) shown(op *Op) (*world, func(string) (*db.Collection, error), error) {
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
func (h *history) collection(op *Op) (*collection, *db.Collection, error) {
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
