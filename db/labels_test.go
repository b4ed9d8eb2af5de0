package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// renamed changes the labels of items as renaming or merging does.
func renamed(items []*db.Item, from, to string) (n int) {
	for _, it := range items {
		if i := slices.Index(it.Labels, from); i >= 0 {
			n++
			it.Labels = slices.Delete(slices.Clone(it.Labels), i, i+1)
			if !slices.Contains(it.Labels, to) {
				it.Labels = append(it.Labels, to)
			}
		}
	}
	return n
}

// checkLabels checks labels, and what filters find of each, against the items.
func checkLabels(t testing.TB, c *db.Collection, items []*db.Item) {
	t.Helper()
	count := map[string]int{}
	for _, it := range items {
		for _, l := range it.Labels {
			count[l]++
		}
	}
	labels, err := c.Labels()
	failIf(t, err != nil || !slices.Equal(slices.Sorted(slices.Values(labels)),
		slices.Sorted(maps.Keys(count))), "labels %q, want %v, %v", labels, count, err)
	s, err := c.Stats(ctx)
	failIf(t, err != nil || s.Labels != len(count), "%d labels counted, %v", s.Labels, err)
	for l, want := range count {
		holds(t, c, want, "label = ?", l)
	}
	got := dbkit.AllItems(t, c)
	for i, it := range got {
		want := slices.Sorted(slices.Values(items[i].Labels))
		failIf(t, !slices.Equal(slices.Sorted(slices.Values(it.Labels)), want), "item %s has %q, want %q",
			it.Key, it.Labels, want)
	}
}

// labelWorld returns a trained collection of items of which some have no labels, and the items.
func labelWorld(t *testing.T, fs vfs.FS, n int) (*db.DB, *db.Collection, []*db.Item) {
	items := dbkit.ViewItems(n, 3)
	d, c := openWith(t, fs, dbkit.PairsSchema, items)
	dbkit.MustTrain(t, c, dbkit.TinyTraining(1))
	return d, c, items
}

func codesOfAll(t *testing.T, c *db.Collection) map[string]string {
	codes := map[string]string{}
	for _, it := range dbkit.AllItems(t, c) {
		codes[it.Key] = string(it.Code)
	}
	return codes
}

func TestRenameLabel(t *testing.T) {
	fs := vfs.NewMem()
	d, c, items := labelWorld(t, fs, 80)
	codes := codesOfAll(t, c)
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	before := need(snap.Collection("main"))(t)
	old := dbkit.ViewItems(80, 3)

	for _, wrong := range []struct {
		from, to string
		is       error
	}{
		{"class9", "x", db.ErrNotFound}, {"class0", "class1", db.ErrExists},
		{"class0", "class0", db.ErrInvalid},
		{"class0", "", db.ErrInvalid}, {"class0", strings.Repeat("x", db.MaxLabelBytes+1), db.ErrInvalid},
	} {
		err := c.RenameLabel(ctx, wrong.from, wrong.to)
		failIf(t, !errors.Is(err, wrong.is), "%q to %.9q: %v", wrong.from, wrong.to, err)
	}
	errorIs(t, before.RenameLabel(ctx, "class0", "x"), db.ErrReadOnly)
	checkLabels(t, c, items)
	mustRename(t, c, "class0", "zebra")
	renamed(items, "class0", "zebra")
	checkLabels(t, c, items)
	after := codesOfAll(t, c)
	failIf(t, !maps.Equal(after, codes), "codes have changed")
	checkLabels(t, before, old)

	// The old name is another label now, and nothing is known of it.
	items = append(items, &db.Item{Key: "late", Labels: []string{"class0"}, Vectors: old[0].Vectors})
	dbkit.PutAll(t, d, c, items[80:])
	checkLabels(t, c, items)
	checkCodes(t, c, dbkit.AllItems(t, c))
	if it, err := c.Get(ctx, "late"); err != nil || it.CodeFrom == "labels" {
		t.Errorf("the code of a new label is from %s, %v", it.CodeFrom, err)
	}
	// When no item has it any more, its name is free.
	need(c.Delete(ctx, "late"))(t)
	items = items[:80]
	checkLabels(t, c, items)
	errorIs(t, c.RenameLabel(ctx, "class0", "x"), db.ErrNotFound)
	mustRename(t, c, "zebra", "class0")
	renamed(items, "zebra", "class0")
	dbkit.CheckSound(t, d, "renamed to and fro")
	d, _ = reopen(t, d, "db", &db.Options{FS: fs})
	defer d.Close()
	c = dbkit.MustCollection(t, d, "main")
	checkLabels(t, c, items)
	checkCodes(t, c, dbkit.AllItems(t, c))
}

// If models know a label that no item has any more, and another gets its name, then they know nothing of
// the name that this one had.
func TestRenameToALabelThatNobodyHas(t *testing.T) {
	fs := vfs.NewMem()
	d, c, items := labelWorld(t, fs, 80)
	for _, it := range items {
		if slices.Contains(it.Labels, "class1") {
			it.Labels = nil
		}
	}
	dbkit.PutAll(t, d, c, items)
	mustRename(t, c, "class2", "class1")
	renamed(items, "class2", "class1")
	items = append(items, &db.Item{Key: "new", Labels: []string{"class2"}})
	dbkit.PutAll(t, d, c, items[80:])
	it, err := c.Get(ctx, "new")
	failIf(t, err != nil || it.Code != nil, "a label that is new has a code from %s, %v", it.CodeFrom, err)
	checkLabels(t, c, items)
	dbkit.CheckSound(t, d, "renamed to what nobody has")
	u := dbkit.MustUpdate(t, c, db.UpdateOptions{GrowLabels: true})
	failIf(t, !slices.Equal(u.Grown, []string{"class2"}), "grown %q", u.Grown)
	checkLabels(t, c, items)
	dbkit.CheckSound(t, d, "and grown")
	dbkit.MustClose(t, d)
	lost, _ := (&patient{t: t, fs: fs, dir: "db"}).repair(db.RepairOptions{})
	failIf(t, len(lost) > 0, "a repair finds %v", lost)
	d = dbkit.MustOpen(t, "db", &db.Options{FS: fs})
	defer dbkit.MustClose(t, d)
	checkLabels(t, dbkit.MustCollection(t, d, "main"), items)
	dbkit.CheckSound(t, d, "repaired")
}

func mustRename(t testing.TB, c *db.Collection, old, name string) {
	t.Helper()
	must(t, c.RenameLabel(ctx, old, name))
}

// inTurn makes calls whose requests wait for the committer, each behind that of the call before. So all of
// them have read the state before the first when it commits. The database is of a bubble of synctest, which
// knows when a call waits: the database itself makes requests, too, and the length of the queue would not
// tell whose they are.
func inTurn(t *testing.T, d *db.DB, calls ...func()) {
	t.Helper()
	committer := db.State(d).Committer
	var all sync.WaitGroup
	held, goOn := make(chan struct{}), make(chan struct{})
	all.Go(func() { _ = committer.Look(ctx, func() error { close(held); <-goOn; return nil }) })
	defer all.Wait()
	defer close(goOn) // also where a call fails, or the database could not be closed
	<-held
	for _, call := range calls {
		all.Go(call)
		synctest.Wait() // until it can only go on when the committer does
	}
}

// An item that is encoded before a label is renamed, and committed after it, gets the code of
// what its labels are by then; one by one and in bulk.
func TestRenamingBesideAPut(t *testing.T) { synctest.Test(t, renamingBesideAPut) }

func renamingBesideAPut(t *testing.T) {
	d, c, items := labelWorld(t, vfs.NewMem(), 60)
	for round, n := range []int{1, bulkItems} {
		from, to := []string{"class1", "other"}[round], []string{"other", "third"}[round]
		late := dbkit.Pairs(n, synth.Config{Seed: 9})
		for i, it := range late {
			it.Key, it.Labels = fmt.Sprint("late", n, "-", i), []string{from}
		}
		inTurn(t, d, func() { mustRename(t, c, from, to) }, func() { dbkit.PutAll(t, d, c, late) })
		renamed(items, from, to)
		items = append(items, late...)
		checkLabels(t, c, items)
		checkCodes(t, c, dbkit.AllItems(t, c))
	}
	dbkit.CheckSound(t, d, "in the end")
}

// More labels in use than are read one by one are told, and a snapshot has those of its time.
func TestLabelsFollowWrites(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenCoded(t, 8)
	check := func(c *db.Collection, want ...string) {
		t.Helper()
		labels, err := c.Labels()
		slices.Sort(labels)
		failIf(t, err != nil || !slices.Equal(labels, want), "labels %q, %v, want %q", labels, err, want)
		s, err := c.Stats(ctx)
		failIf(t, err != nil || s.Labels != len(want), "%+v, %v", s, err)
	}
	var many []*db.Item
	var want []string
	for i := range 1500 {
		want = append(want, fmt.Sprintf("m%04d", i))
		many = append(many, &db.Item{Key: fmt.Sprint(i), Code: []byte{1}, Labels: want[i:]})
	}
	putAll(t, c, many)
	check(c, want...)
	s := need(d.Snapshot())(t)
	defer s.Close()
	need(c.Delete(ctx, "0"))(t)
	need(c.Put(ctx, &db.Item{Key: "2", Code: []byte{1}, Labels: []string{"a"}}))(t)
	check(c, slices.Concat([]string{"a"}, want[1:2], want[3:])...)
	check(need(s.Collection("main"))(t), want...)
}

// putMarks commits marks, given as name and value in turn.
func putMarks(t testing.TB, d *db.DB, all ...string) {
	t.Helper()
	b := d.NewBatch()
	for i := 0; i < len(all); i += 2 {
		b.Mark(all[i], []byte(all[i+1]))
	}
	must(t, b.Commit(ctx))
}

// marks returns all marks whose names begin with prefix, and checks that each is found by itself.
func marks(t testing.TB, d *db.DB, prefix string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for m := range every(t, d.Marks(ctx, prefix)) {
		all[m.Name] = string(m.Value)
		if one, err := d.Mark(m.Name); err != nil || !bytes.Equal(one, m.Value) {
			t.Errorf("%s: %q, and among all %q, %v", m.Name, one, m.Value, err)
		}
	}
	return all
}

func wantMarks(t testing.TB, what string, d *db.DB, want map[string]string) {
	t.Helper()
	got := marks(t, d, "")
	failIf(t, !maps.Equal(got, want), "%s: marks %q, want %q", what, got, want)
}

func TestMarks(t *testing.T) {
	dir := t.TempDir()
	d := dbkit.MustOpen(t, dir, nil)
	errorIs(t, errOf(d.Mark("position")), db.ErrNotFound)
	putMarks(t, d, "position", "1") // before there is any collection
	dbkit.CheckSound(t, d, "with a mark alone")
	c := need(d.CreateCollection(ctx, "codes", db.Schema{Bits: 16}))(t)
	snap := need(d.Snapshot())(t)
	defer snap.Close()
	value := []byte("2")
	b := d.NewBatch()
	b.Put(c, &db.Item{Key: "a", Code: []byte{1, 2}})
	b.Mark("position", []byte("1.5"))
	b.Mark("position", value)
	b.Mark("other", []byte("x"))
	value[0] = '9' // it was copied
	failIf(t, b.Len() != 1, "%d changes", b.Len())
	err := b.Commit(ctx)
	failIf(t, err != nil || b.Mark("late", nil) == nil, "a mark for a batch that is committed%v", err)
	wantMarks(t, "committed", d, map[string]string{"position": "2", "other": "x"})
	was, err := snap.Mark("position")
	failIf(t, err != nil || string(was) != "1", "in the snapshot: %q, %v", was, err)
	errorIs(t, errOf(snap.Mark("other")), db.ErrNotFound)

	// A batch that is refused leaves its marks out, too.
	b = d.NewBatch()
	b.Expect(c, "a", nil)
	b.Put(c, &db.Item{Key: "b", Code: []byte{1, 2}})
	b.Mark("position", []byte("3"))
	errorIs(t, b.Commit(ctx), db.ErrConflict)
	wantMarks(t, "refused", d, map[string]string{"position": "2", "other": "x"})
	putMarks(t, d, "other", "", "never", "")
	wantMarks(t, "taken away", d, map[string]string{"position": "2"})

	// With a bulk load, where a mark is taken away, too.
	putMarks(t, d, "log/1", "1", "log/2", "2", "z", "26")
	b = d.NewBatch()
	for _, it := range dbkit.CodeItems(bulkItems, 16, 1, nil) {
		b.Put(c, it)
	}
	b.Mark("log/2", nil)
	b.Mark("log/10", []byte("10"))
	b.Mark("position", []byte("4"))
	b.Mark("position", []byte("5"))
	must(t, b.Commit(ctx))
	want := map[string]string{"position": "5", "log/1": "1", "log/10": "10", "z": "26"}
	wantMarks(t, "bulk loaded", d, want)
	got := marks(t, d, "log/")
	failIf(t, !maps.Equal(got, map[string]string{"log/1": "1", "log/10": "10"}), "%v", got)
	for range d.Marks(ctx, "") { // left early
		break
	}
	dbkit.CheckSound(t, d, "with marks")
	err = snap.Close()
	failIf(t, err != nil || !errors.Is(errOf(snap.Mark("position")), db.ErrClosed), "%v", err)
	d, _ = reopen(t, d, dir, &db.Options{ReadOnly: true})
	wantMarks(t, "opened again", d, want)
	errorIs(t, d.NewBatch().Mark("position", []byte("6")), db.ErrReadOnly)
	dbkit.MustClose(t, d)
}

func TestMarksThatCannotBe(t *testing.T) {
	d := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, d)
	for _, name := range []string{"", strings.Repeat("n", 257), "a\xffb"} {
		b := d.NewBatch()
		err := b.Mark(name, []byte("1"))
		failIf(t, !errors.Is(err, db.ErrInvalid) || b.Commit(ctx) != err, "%q: %v", name, err)
		_, err = d.Mark(name)
		failIf(t, !errors.Is(err, db.ErrInvalid), "%q: %v", name, err)
	}
	errorIs(t, d.NewBatch().Mark("n", make([]byte, db.MaxMarkBytes+1)), db.ErrInvalid)
	b := d.NewBatch()
	var err error
	n := 0
	for ; err == nil && n < 100; n++ {
		err = b.Mark(fmt.Sprint(n), make([]byte, db.MaxMarkBytes))
	}
	failIf(t, !errors.Is(err, db.ErrInvalid) || n*db.MaxMarkBytes < db.MaxMarksBytes, "%d marks: %v", n, err)
	b = d.NewBatch()
	b.Mark(strings.Repeat("n", 256), make([]byte, db.MaxMarkBytes))
	fine(t, b.Commit(ctx))
	v, err := d.Mark(strings.Repeat("n", 256))
	failIf(t, err != nil || len(v) != db.MaxMarkBytes, "%v, %v", len(v), err)
}

// Copies have the marks of the state that they hold.
func TestMarksAreCopied(t *testing.T) {
	effort.Slow(t)
	t.Parallel()
	d := verified(t, nil)
	want := map[string]string{"position": "one", "log/2": "two"}
	folder := need(backup.Folder(filepath.Join(t.TempDir(), "backups")))(t)
	need(d.Backup(ctx, folder, db.BackupOptions{}))(t)
	at := map[string]string{}
	for what, opt := range map[string]db.CheckpointOptions{"checkpoint": {}, "extract": {Collection: "codes"},
		"index-only": {IndexOnly: true}} {
		at[what] = filepath.Join(t.TempDir(), "copy")
		must(t, d.Checkpoint(ctx, at[what], opt), what)
	}
	putMarks(t, d, "position", "later")
	at["restored"] = filepath.Join(t.TempDir(), "copy")
	need(db.Restore(ctx, folder, at["restored"], nil, db.RestoreOptions{}))(t)
	for what, dir := range at {
		copied := dbkit.MustOpen(t, dir, nil)
		wantMarks(t, what, copied, want)
		dbkit.CheckSound(t, copied, what)
		dbkit.MustClose(t, copied)
	}
}

// A repair keeps marks, and leaves out what is none.
func TestRepairOfMarks(t *testing.T) {
	t.Parallel()
	p := newPatient(t)
	d := dbkit.MustOpen(t, p.dir, p.options())
	putMarks(t, d, "position", "7", "log/2", "", "log/1", "x")
	dbkit.MustClose(t, d)
	p.put(codec.MarkKey("empty"), []byte{})
	p.put(codec.MarkKey("bad\xff"), []byte("x"))
	lost, _ := p.repair(db.RepairOptions{})
	var said []string
	for _, l := range lost {
		said = append(said, fmt.Sprint(l))
	}
	all := strings.Join(said, "\n")
	failIf(t, !strings.Contains(all, `mark "empty"`) || !strings.Contains(all, `mark "bad\xff"`),
		"the repair says %q", said)
	d = dbkit.MustOpen(t, p.dir, p.options())
	defer dbkit.MustClose(t, d)
	wantMarks(t, "repaired", d, map[string]string{"position": "7", "log/1": "x"})
	dbkit.CheckSound(t, d, "repaired")
}
