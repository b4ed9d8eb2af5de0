package db_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/internal/synth"
)

func mustFolder(t testing.TB) backup.Store {
	t.Helper()
	repo, err := backup.Folder(filepath.Join(t.TempDir(), "backups"))
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

func mustBackup(t testing.TB, d *db.DB, repo backup.Store, opt db.BackupOptions) *backup.Manifest {
	t.Helper()
	m, err := d.Backup(ctx, repo, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// restored restores a backup and opens the database, to be closed at the end of the test.
func restored(t testing.TB, repo backup.Store, opt db.RestoreOptions) *db.DB {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := db.Restore(ctx, repo, dir, nil, opt); err != nil {
		t.Fatal(err)
	}
	for _, left := range []string{store.RestoringName, store.MarkerName + ".tmp"} {
		if _, err := os.Stat(filepath.Join(dir, left)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the restored folder has %s: %v", left, err)
		}
	}
	d := dbkit.MustOpen(t, dir, &db.Options{MustExist: true})
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// soundRepository checks that nothing is missing or damaged.
func soundRepository(t testing.TB, repo backup.Store) *backup.Verification {
	t.Helper()
	v, err := backup.Verify(ctx, repo, backup.VerifyOptions{}, func(f backup.Finding) error { t.Error(f); return nil })
	if err != nil {
		t.Error(err)
	}
	return v
}

// Each backup answers as the database did when it was made, whatever came after it.
func TestBackupsAnswerAsTheDatabaseDid(t *testing.T) {
	dbkit.LongTest(t)
	repo := newMemStore()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(260, synth.Config{Missing: .2})
	var snaps []*db.Snapshot
	var made []*backup.Manifest
	moment := func(opt db.BackupOptions) {
		s, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { snaps = append(snaps, s) }()
		made = append(made, mustBackup(t, d, repo, opt))
	}
	putAll(t, c, items[:200])
	moment(db.BackupOptions{})
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 32, Anchors: 10}})
	moment(db.BackupOptions{Compress: true})
	for _, it := range items[200:] {
		if _, err := c.Put(ctx, it); err != nil {
			t.Fatal(err)
		}
	}
	moment(db.BackupOptions{})
	for i := range 50 {
		if _, err := c.Delete(ctx, items[3*i].Key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Update(ctx, db.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	moment(db.BackupOptions{Compress: true})
	for i, m := range made {
		if m.Database != d.UUID() || i > 0 && m.Sequence <= made[i-1].Sequence {
			t.Errorf("backup %d: %+v", i, m)
		}
		then, err := snaps[i].Collection("main")
		if err != nil {
			t.Fatal(err)
		}
		r := restored(t, repo, db.RestoreOptions{ID: m.ID})
		if db.State(r).Committer.Sequence() != m.Sequence || r.UUID() != d.UUID() {
			t.Errorf("backup %d: commit sequence %d of %d", i, db.State(r).Committer.Sequence(), m.Sequence)
		}
		if i == 0 { // it has no codes to ask for
			if n, _ := dbkit.MustCollection(t, r, "main").Count(); n != 200 {
				t.Errorf("%d items", n)
			}
		} else {
			sameAnswers(t, then, dbkit.MustCollection(t, r, "main"))
		}
		dbkit.MustClose(t, r)
	}
	for _, s := range snaps {
		s.Close()
	}
	soundRepository(t, repo)
}

// A restored database lives on, and backs up to the same repository as the one that it
// was made of. Their tables have the same numbers, and other contents.
func TestRestoredDatabaseHasBackupsOfItsOwn(t *testing.T) {
	t.Parallel()
	repo := mustFolder(t)
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(300, synth.Config{})
	putAll(t, c, items[:100])
	mustBackup(t, d, repo, db.BackupOptions{})
	r := restored(t, repo, db.RestoreOptions{})
	for i := range 4 {
		at := 100 + 50*i
		putAll(t, c, items[at:at+25])
		putAll(t, dbkit.MustCollection(t, r, "main"), items[at+25:at+50])
		for _, of := range []*db.DB{d, r} {
			m := mustBackup(t, of, repo, db.BackupOptions{})
			again := restored(t, repo, db.RestoreOptions{ID: m.ID})
			sameContents(t, of, again)
			dbkit.MustClose(t, again)
		}
	}
	soundRepository(t, repo)
}

// A backup of a database that is written to, trained and reindexed meanwhile is a state
// that it was in: all writes before the backup, and of those during it the first ones.
func TestBackupsWhileTheDatabaseIsInUse(t *testing.T) {
	t.Parallel()
	repo := newMemStore()
	d, c := dbkit.OpenPairs(t)
	items := dbkit.Pairs(4000, synth.Config{})
	putAll(t, c, items[:300])
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}})
	var written atomic.Int64
	written.Store(300)
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for i := 300; i < len(items); i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := c.Put(ctx, items[i]); err != nil {
				t.Error(err)
				return
			}
			written.Store(int64(i + 1))
		}
	})
	busy.Go(func() {
		for round := 0; ; round++ {
			select {
			case <-stop:
				return
			default:
			}
			var err error
			if round%2 == 0 {
				_, err = c.Train(ctx, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 5}, Activate: true})
			} else {
				_, err = c.Reindex(ctx, db.ReindexOptions{})
			}
			if err != nil && !errors.Is(err, db.ErrBusy) {
				t.Error(err)
				return
			}
		}
	})
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		before := int(written.Load())
		m := mustBackup(t, d, repo, db.BackupOptions{})
		after := int(written.Load())
		r := restored(t, repo, db.RestoreOptions{ID: m.ID})
		there := map[string]bool{}
		for _, it := range dbkit.AllItems(t, dbkit.MustCollection(t, r, "main")) {
			there[it.Key] = true
		}
		n := len(there)
		if n < before || n > after+1 {
			t.Errorf("%d items, written were %d before and %d after", n, before, after)
		}
		for _, it := range items[:n] {
			if !there[it.Key] {
				t.Errorf("%s of the first %d is missing", it.Key, n)
			}
		}
		dbkit.MustClose(t, r)
	}
	close(stop)
	busy.Wait()
	soundRepository(t, repo)
	dbkit.MustClose(t, d)
	if got := listing(t, db.State(d).Engine.Dir); fmt.Sprint(got) != fmt.Sprintf("[%s %s %s %s %s]", store.CommitsName, store.MarkerName, store.LockName, store.CheckpointsName, store.StoreName) {
		t.Errorf("the folder holds %v", got)
	}
}

// What a backup that was killed has left in the folder is removed by opening.
func TestLeftoversOfBackupsGo(t *testing.T) {
	d, _ := dbkit.OpenPairs(t)
	dbkit.MustClose(t, d)
	left := filepath.Join(db.State(d).Engine.Dir, store.CheckpointsName, "0123", store.StoreName)
	if err := os.MkdirAll(left, 0o755); err != nil {
		t.Fatal(err)
	}
	dbkit.MustClose(t, dbkit.MustOpen(t, db.State(d).Engine.Dir, nil))
	if got := listing(t, db.State(d).Engine.Dir); fmt.Sprint(got) != fmt.Sprintf("[%s %s %s %s]", store.CommitsName, store.MarkerName, store.LockName, store.StoreName) {
		t.Errorf("the folder holds %v", got)
	}
}

func TestRestoreRefuses(t *testing.T) {
	repo := mustFolder(t)
	if _, err := db.Restore(ctx, repo, filepath.Join(t.TempDir(), "x"), nil, db.RestoreOptions{}); !errors.Is(err, backup.ErrNotRepository) {
		t.Errorf("an empty store: %v", err)
	}
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(10, synth.Config{}))
	first := mustBackup(t, d, repo, db.BackupOptions{})
	second := mustBackup(t, d, repo, db.BackupOptions{})
	full := folderIn(t, map[string]string{"notes.txt": "x"})
	dir := filepath.Join(t.TempDir(), "x")
	for what, c := range map[string]struct {
		dir  string
		opt  db.RestoreOptions
		want error
	}{
		"a folder of something else": {full, db.RestoreOptions{}, db.ErrExists},
		"the database itself":        {db.State(d).Engine.Dir, db.RestoreOptions{}, db.ErrExists},
		"an unknown id":              {dir, db.RestoreOptions{ID: "1999"}, backup.ErrNotFound},
		"an ambiguous id":            {dir, db.RestoreOptions{ID: "2"}, backup.ErrInvalid},
		"an early time":              {dir, db.RestoreOptions{Before: first.Time.Add(-time.Second)}, backup.ErrNotFound},
		"another database":           {dir, db.RestoreOptions{Database: "ffff"}, backup.ErrNotFound},
	} {
		if _, err := db.Restore(ctx, repo, c.dir, nil, c.opt); !errors.Is(err, c.want) || strings.Count(err.Error(), "fddhdb: ") != 1 {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a restore that was refused has made a folder: %v", err)
	}
	if m, err := db.Restore(ctx, repo, dir, nil, db.RestoreOptions{Before: first.Time}); err != nil || m.ID != first.ID {
		t.Errorf("by time: %v, %v", m, err)
	}
	if m, err := db.Restore(ctx, repo, t.TempDir(), nil, db.RestoreOptions{ID: second.ID[:len(second.ID)-2]}); err != nil || m.ID != second.ID {
		t.Errorf("by the beginning of an id, to an empty folder: %v, %v", m, err)
	}
}

// A damaged object, and one that is missing, are found by verify and by restore, which
// leaves nothing in place. Where its size tells that it is damaged, the next backup stores it again.
func TestDamagedBackups(t *testing.T) {
	t.Parallel()
	d, c := dbkit.OpenPairs(t)
	putAll(t, c, dbkit.Pairs(50, synth.Config{}))
	for what, harm := range map[string]func(path string) error{
		"missing":  os.Remove,
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"longer":   func(path string) error { return appendTo(path, "x") },
		"replaced": func(path string) error { return os.WriteFile(path, []byte("something else"), 0o644) },
	} {
		for _, compress := range []bool{false, true} {
			root := t.TempDir()
			repo, err := backup.Folder(root)
			if err != nil {
				t.Fatal(err)
			}
			m := mustBackup(t, d, repo, db.BackupOptions{Compress: compress})
			largest := slices.MaxFunc(m.Files, func(a, b backup.File) int { return cmp.Compare(a.Size, b.Size) })
			piece := largest.Pieces[0]
			path := filepath.Join(root, "objects", string(piece[:2]), string(piece))
			if err := harm(path); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "restored")
			if _, err := db.Restore(ctx, repo, dir, nil, db.RestoreOptions{}); !errors.Is(err, backup.ErrDamaged) {
				t.Errorf("%s: restore: %v", what, err)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the folder is there: %v", what, err)
			}
			found := 0
			v, err := backup.Verify(ctx, repo, backup.VerifyOptions{}, func(f backup.Finding) error {
				if found++; f.Backup != m.ID || !strings.Contains(f.Object, string(piece)) {
					t.Errorf("%s: %+v", what, f)
				}
				return nil
			})
			if err != nil || found != 1 || v.Findings != 1 {
				t.Errorf("%s: verify: %+v, %v", what, v, err)
			}
			if compress && (what == "longer" || what == "replaced") { // only reading it tells
				continue
			}
			next := mustBackup(t, d, repo, db.BackupOptions{Compress: compress})
			if _, err := db.Restore(ctx, repo, dir, nil, db.RestoreOptions{ID: next.ID}); err != nil {
				t.Errorf("%s: restore of the next backup: %v", what, err)
			}
		}
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// A backup into a folder leaves the reserve of the file system that the folder is on. One into
// another store does not ask how full the disk of the database is.
func TestBackupKeepsTheReserve(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	d := dbkit.MustOpen(t, dir, nil)
	c, err := d.CreateCollection(ctx, "main", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	putAll(t, c, dbkit.Pairs(20, synth.Config{}))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = dbkit.MustOpen(t, dir, &db.Options{ReserveBytes: 1 << 60})
	defer d.Close()
	path := filepath.Join(t.TempDir(), "backups")
	repo, err := backup.Folder(path)
	if err != nil {
		t.Fatal(err)
	}
	var full *db.DiskFullError
	if _, err := d.Backup(ctx, repo, db.BackupOptions{}); !errors.Is(err, db.ErrDiskFull) || !errors.As(err, &full) || full.Dir != filepath.Dir(path) {
		t.Errorf("into a folder: %v", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it has left something: %v", err)
	}
	mustBackup(t, d, elsewhere{mustFolder(t)}, db.BackupOptions{})
}

// elsewhere is a store that does not say where it is.
type elsewhere struct{ backup.Store }
