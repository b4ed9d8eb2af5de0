package db_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Whichever call of a store fails, or is the last one before the context ends: backup,
// restore and prune say so, nothing half-done is left, and what was there stays.
func TestEveryFailedCallOfAStore(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		repo, mem := newMemStore(), vfs.NewMem()
		d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
		c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
		items := dbkit.Pairs(100, synth.Config{})
		putAll(t, c, items[:10])
		first := mustBackup(t, d, repo, db.BackupOptions{})
		want := context.Canceled
		if !cancelled {
			want = dbkit.ErrInjected
		}
		// try does something with a store of which call k fails, for all k.
		try := func(what string, prepare func(), do func(ctx context.Context, s backup.Store) error) {
			for k := int64(0); ; k++ {
				if testing.Short() && k%3 != 0 {
					continue
				}
				prepare()
				ctx, cancel := context.WithCancel(ctx)
				s := &failingStore{Store: repo}
				s.k.Store(k)
				if cancelled {
					s.cancel = cancel
				}
				err := do(ctx, s)
				cancel()
				if s.k.Load() >= 0 {
					must(t, err, what, "without a failure")
					return
				}
				stopIf(t, err != nil && (!errors.Is(err, want) ||
					!strings.HasPrefix(err.Error(), "fddhdb: ")), "%s, call %d: %v", what, k, err)
			}
		}
		n := 10
		try("backup", func() {
			if n < len(items) {
				putAll(t, c, items[n:n+1])
				n++
			}
		}, func(ctx context.Context, s backup.Store) error {
			_, err := d.Backup(ctx, s, db.BackupOptions{})
			return err
		})
		soundRepository(t, repo)
		try("restore", func() {
			must(t, mem.RemoveAll("r"))
		}, func(ctx context.Context, s backup.Store) error {
			_, err := db.Restore(ctx, s, "r", &db.Options{FS: mem}, db.RestoreOptions{ID: first.ID})
			_, serr := mem.Stat("r")
			failIf(t, err != nil && !errors.Is(serr, fs.ErrNotExist), "after %v the folder is there", err)
			return err
		})
		all := repo.clone()
		try("prune", func() { repo.put(all) }, func(ctx context.Context, s backup.Store) error {
			_, err := backup.Prune(ctx, s, backup.PruneOptions{Keep: 1})
			soundRepository(t, repo)
			return err
		})
		v := soundRepository(t, repo)
		failIf(t, v.Backups == 0, "no backup is left")
		r := restored(t, repo, db.RestoreOptions{})
		sameContents(t, d, r)
		dbkit.MustClose(t, r)
		dbkit.MustClose(t, d)
	}
}

// failAt fails the k-th operation on files, once it is armed.
type failAt struct {
	dbkit.FailOnce
	armed bool
	path  string // of what has failed
}

func (f *failAt) MaybeError(op errorfs.Op) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Fired || !f.armed {
		return nil
	}
	if f.K--; f.K < 0 {
		f.Fired, f.path = true, op.Path
		return dbkit.ErrInjected
	}
	return nil
}

// Whichever operation on the files of a restore fails: there is no database, or, if the
// restore says so, the whole; and another restore puts it there.
func TestEveryFailedOperationOfARestore(t *testing.T) {
	dbkit.LongTest(t)
	_, repo := memWorld(t)
	for k := 0; ; k++ {
		if !effort.Sampled(k, 3) {
			continue
		}
		mem := vfs.NewMem()
		fail := &failAt{FailOnce: dbkit.FailOnce{K: k}, armed: true}
		_, err := db.Restore(ctx, repo, "r", &db.Options{FS: errorfs.Wrap(mem, fail)}, db.RestoreOptions{})
		opts := &db.Options{FS: mem, MustExist: true}
		if err != nil {
			stopIf(t, !fail.Fired || !strings.HasPrefix(err.Error(), "fddhdb: "), "operation %d, %s: %v", k,
				fail.path, err)
			if d, err := db.Open("r", opts); !errors.Is(err, db.ErrNotDatabase) {
				if err == nil {
					d.Close()
				}
				t.Fatalf("operation %d, %s: after a restore that failed: %v", k, fail.path, err)
			}
			if _, err := db.Restore(ctx, repo, "r", &db.Options{FS: mem}, db.RestoreOptions{}); err != nil {
				t.Fatalf("operation %d, %s: again: %v", k, fail.path, err)
			}
		}
		d := dbkit.MustOpen(t, "r", opts)
		gives(t, 20, k)(dbkit.MustCollection(t, d, "main").Count(t.Context(), ""))
		dbkit.MustClose(t, d)
		if !fail.Fired {
			t.Logf("%d operations failed in turn", k)
			return
		}
	}
}

// Whichever operation on files fails during a backup: the backup fails or is whole, and
// unless it was one on the store itself, the database goes on.
func TestEveryFailedOperationOfABackup(t *testing.T) {
	dbkit.LongTest(t)
	items := dbkit.Pairs(10_000, synth.Config{})
	mem, repo := memWorld(t)
	for k := 0; ; k++ {
		if !effort.Sampled(k, 3) {
			continue
		}
		fail := &failAt{FailOnce: dbkit.FailOnce{K: k}}
		d := dbkit.MustOpen(t, "db", &db.Options{FS: errorfs.Wrap(mem, fail)})
		c := dbkit.MustCollection(t, d, "main")
		need(c.Put(ctx, items[k]))(t)
		fail.Mu.Lock()
		fail.armed = true
		fail.Mu.Unlock()
		m, err := d.Backup(ctx, repo, db.BackupOptions{})
		fail.Mu.Lock()
		fired, path := fail.Fired, fail.path
		fail.armed = false
		fail.Mu.Unlock()
		if err == nil && k%5 == 0 {
			r := restored(t, repo, db.RestoreOptions{ID: m.ID})
			sameContents(t, d, r)
			dbkit.MustClose(t, r)
		}
		stopIf(t, err != nil && (!fired || !strings.HasPrefix(err.Error(), "fddhdb: ")),
			"operation %d, %s: %v", k, path, err)
		_, err = c.Put(ctx, &db.Item{Key: "after"})
		if err != nil && strings.HasSuffix(path, ".sst") && !strings.Contains(path, store.CheckpointsName) &&
			!errors.Is(err, db.ErrFailed) {
			// it waited for the same reading of a table, which can be read again
			_, err = c.Put(ctx, &db.Item{Key: "after"})
		}
		stopIf(t, err != nil && (strings.Contains(path, store.CheckpointsName) ||
			!errors.Is(err, db.ErrFailed)), "operation %d, %s: a write: %v", k, path, err)
		cerr := d.Close()
		stopIf(t, cerr != nil && err == nil, "operation %d, %s: %v", k, path, cerr)
		if !fired {
			t.Logf("%d operations failed in turn", k)
			soundRepository(t, repo)
			return
		}
	}
}

// memWorld makes a small database in memory, and a backup of it.
func memWorld(t *testing.T) (vfs.FS, *memStore) {
	t.Helper()
	repo, mem := newMemStore(), vfs.NewMem()
	d := dbkit.MustOpen(t, "db", &db.Options{FS: mem})
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	putAll(t, c, dbkit.Pairs(20, synth.Config{}))
	mustBackup(t, d, repo, db.BackupOptions{})
	dbkit.MustClose(t, d)
	return mem, repo
}

// A database that Restore has made survives a machine that stops then.
func TestRestoredDatabaseSurvivesACrash(t *testing.T) {
	t.Parallel()
	d := verified(t, &db.Options{FS: vfs.NewMem()})
	repo := newMemStore()
	mustBackup(t, d, repo, db.BackupOptions{})
	mem := vfs.NewCrashableMem()
	need(db.Restore(ctx, repo, "r", &db.Options{FS: mem}, db.RestoreOptions{}))(t)
	left := mem.CrashClone(vfs.CrashCloneCfg{}) // nothing is left of what is not synced
	restored := dbkit.MustOpen(t, "r", &db.Options{FS: left, MustExist: true})
	defer dbkit.MustClose(t, restored)
	dbkit.CheckSound(t, restored, "after the crash")
	sameContents(t, d, restored)
}

// faultyRepository is where the backups are, beside the database.
const faultyRepository = "backups"

func (l *spacesLife) backups() backup.Store { return vfsStore{l.fs, faultyRepository} }

// copyingCases are of what makes a database of another, and of what makes a damaged one
// sound and an old one new.
func copyingCases(t *testing.T, closed *vfs.MemFS) []faultyCase {
	backedUp := closed.CrashClone(vfs.CrashCloneCfg{})
	l := &spacesLife{fs: backedUp}
	must(t, l.open())
	state := need(stateOf(l.d))(t)
	var made []string
	for _, opt := range []db.BackupOptions{{Collection: "main"}, {}, {}} {
		made = append(made, mustBackup(t, l.d, l.backups(), opt).ID)
	}
	must(t, l.close())
	indexOnly := lifeState{items: state.items, active: state.active, revisions: state.revisions}
	backsUp := func(opt db.BackupOptions) func(l *spacesLife) error {
		return func(l *spacesLife) error {
			if _, err := l.c.Put(ctx, &db.Item{Key: "k1"}); err != nil { // which was there
				return err
			}
			_, err := l.d.Backup(ctx, l.backups(), opt)
			return err
		}
	}
	checkpoints := func(opt db.CheckpointOptions) func(l *spacesLife) error {
		return func(l *spacesLife) error { return l.d.Checkpoint(ctx, "copy", opt) }
	}
	p := smallPatient(t)
	damaged := p.fs.(*vfs.MemFS)
	return []faultyCase{
		{name: "back up", base: backedUp, arm: true, do: backsUp(db.BackupOptions{}),
			left: backupsLeft(made, "", state)},
		{name: "back up the index", base: backedUp, arm: true, do: backsUp(db.BackupOptions{IndexOnly: true}),
			left: backupsLeft(made, "", indexOnly)},
		{name: "prune", base: backedUp, do: func(l *spacesLife) error {
			_, err := backup.Prune(ctx, l.backups(), backup.PruneOptions{Keep: 1})
			return err
		}, left: backupsLeft(made, made[1], state)},
		{name: "restore", base: backedUp, do: func(l *spacesLife) error {
			_, err := db.Restore(ctx, l.backups(), "copy", &db.Options{FS: l.fs, CacheBytes: 1},
				db.RestoreOptions{ID: made[2]})
			return err
		}, left: copyLeft(state, func(fsys vfs.FS) error {
			_, err := db.Restore(ctx, vfsStore{fsys, faultyRepository}, "copy", &db.Options{FS: fsys},
				db.RestoreOptions{ID: made[2]})
			return err
		})},
		{name: "checkpoint", base: closed, arm: true, do: checkpoints(db.CheckpointOptions{}),
			left: copyLeft(state, func(fsys vfs.FS) error {
				return checkpointOf(fsys, db.CheckpointOptions{})
			})},
		{name: "checkpoint of the index", base: closed, arm: true,
			do: checkpoints(db.CheckpointOptions{IndexOnly: true}),
			left: copyLeft(indexOnly, func(fsys vfs.FS) error {
				return checkpointOf(fsys, db.CheckpointOptions{IndexOnly: true})
			})},
		{name: "repair", base: damaged, do: func(l *spacesLife) error { return repairLosingNothing(l.fs) },
			left: func(t *testing.T, label string, fsys vfs.FS, _ error) {
				must(t, repairLosingNothing(fsys), label, "and again")
				q := *p
				q.t, q.fs = t, fsys
				q.sameStored(label, q.sound(label, nil))
			}},
	}
}

func checkpointOf(fsys vfs.FS, opt db.CheckpointOptions) error {
	d, err := db.Open("db", &db.Options{FS: fsys, MustExist: true})
	if err != nil {
		return err
	}
	return errors.Join(d.Checkpoint(ctx, "copy", opt), d.Close())
}

func repairLosingNothing(fsys vfs.FS) error {
	_, err := db.Repair(ctx, "db", &db.Options{FS: fsys, CacheBytes: 1}, db.RepairOptions{},
		func(f report.Finding) error { return errors.New(f.String()) })
	return err
}

// copyLeft returns a function that checks that a folder "copy" is the whole or none, and
// that making it again gives it.
func copyLeft(want lifeState, again func(vfs.FS) error) func(*testing.T, string, vfs.FS, error) {
	return func(t *testing.T, label string, fsys vfs.FS, err error) {
		t.Helper()
		opts := &db.Options{FS: fsys, MustExist: true}
		d, oerr := db.Open("copy", opts)
		if errors.Is(oerr, db.ErrNotDatabase) && err != nil {
			must(t, again(fsys), label, "and again")
			d, oerr = db.Open("copy", opts)
		}
		stopIf(t, oerr != nil, "%s: %v; and the copy: %v", label, err, oerr)
		checkWhole(t, label, d, want)
	}
}

// checkWhole checks a copy, and closes it.
func checkWhole(t *testing.T, label string, d *db.DB, want lifeState) {
	t.Helper()
	defer dbkit.MustClose(t, d)
	s, err := stateOf(d)
	if err == nil && !s.between(want, want) {
		err = fmt.Errorf("%+v, and it is to be %+v", s, want)
	}
	if err == nil {
		_, err = d.Verify(ctx, db.VerifyOptions{},
			func(f report.Finding) error { return errors.New(f.String()) })
	}
	must(t, err, label, "the copy")
}

// backupsLeft returns a function that checks that those that were completed are there, but
// for one that may have been deleted, or has to be if nothing has failed; that none of them
// is damaged; and that the newest, which may have come, is whole.
func backupsLeft(made []string, deleted string, want lifeState) func(*testing.T, string, vfs.FS, error) {
	return func(t *testing.T, label string, fsys vfs.FS, err error) {
		t.Helper()
		repo := vfsStore{fsys, faultyRepository}
		all, lerr := backup.List(ctx, repo)
		stopIf(t, lerr != nil, "%v: %v", label, lerr)
		var ids []string
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		for _, id := range made {
			if is := slices.Contains(ids, id); !is && id != deleted || is && id == deleted && err == nil {
				t.Fatalf("%s: %v; there are %q, and were %q", label, err, ids, made)
			}
		}
		newest := ids[len(ids)-1]
		come := !slices.Contains(made, newest)
		stopIf(t, come && deleted != "" || !come && deleted == "" && err == nil || len(ids) > len(made)+1,
			"%s: %v; there are %q, and were %q", label, err, ids, made)
		must(t, errOf(backup.Verify(ctx, repo, backup.VerifyOptions{},
			func(f backup.Finding) error { return errors.New(f.String()) })), label)
		must(t, errOf(db.Restore(ctx, repo, "copy", &db.Options{FS: fsys},
			db.RestoreOptions{ID: newest, SkipVerify: true})), label)
		d, oerr := db.Open("copy", &db.Options{FS: fsys, MustExist: true})
		stopIf(t, oerr != nil, "%v: %v", label, oerr)
		checkWhole(t, label, d, want)
	}
}
