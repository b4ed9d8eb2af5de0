package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

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
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, &db.Options{ReadOnly: true})
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
	if v, err := d.Mark(strings.Repeat("n", 256)); err != nil || len(v) != db.MaxMarkBytes {
		t.Error(len(v), err)
	}
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
