package db_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

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
		{name: "back up", base: backedUp, arm: true, do: backsUp(db.BackupOptions{}), left: backupsLeft(made, "", state)},
		{name: "back up the index", base: backedUp, arm: true, do: backsUp(db.BackupOptions{IndexOnly: true}), left: backupsLeft(made, "", indexOnly)},
		{name: "prune", base: backedUp, do: func(l *spacesLife) error {
			_, err := backup.Prune(ctx, l.backups(), backup.PruneOptions{Keep: 1})
			return err
		}, left: backupsLeft(made, made[1], state)},
		{name: "restore", base: backedUp, do: func(l *spacesLife) error {
			_, err := db.Restore(ctx, l.backups(), "copy", &db.Options{FS: l.fs, CacheBytes: 1}, db.RestoreOptions{ID: made[2]})
			return err
		}, left: copyLeft(state, func(fsys vfs.FS) error {
			_, err := db.Restore(ctx, vfsStore{fsys, faultyRepository}, "copy", &db.Options{FS: fsys}, db.RestoreOptions{ID: made[2]})
			return err
		})},
		{name: "checkpoint", base: closed, arm: true, do: checkpoints(db.CheckpointOptions{}),
			left: copyLeft(state, func(fsys vfs.FS) error { return checkpointOf(fsys, db.CheckpointOptions{}) })},
		{name: "checkpoint of the index", base: closed, arm: true, do: checkpoints(db.CheckpointOptions{IndexOnly: true}),
			left: copyLeft(indexOnly, func(fsys vfs.FS) error { return checkpointOf(fsys, db.CheckpointOptions{IndexOnly: true}) })},
		{name: "repair", base: damaged, do: func(l *spacesLife) error { return repairLosingNothing(l.fs) },
			left: func(t *testing.T, label string, fsys vfs.FS, _ error) {
				if err := repairLosingNothing(fsys); err != nil {
					t.Fatal(label, ": and again: ", err)
				}
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
	_, err := db.Repair(ctx, "db", &db.Options{FS: fsys, CacheBytes: 1}, db.RepairOptions{}, func(f db.Finding) error { return errors.New(f.String()) })
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
			if err := again(fsys); err != nil {
				t.Fatal(label, ": and again: ", err)
			}
			d, oerr = db.Open("copy", opts)
		}
		if oerr != nil {
			t.Fatalf("%s: %v; and the copy: %v", label, err, oerr)
		}
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
		_, err = d.Verify(ctx, db.VerifyOptions{}, func(f db.Finding) error { return errors.New(f.String()) })
	}
	if err != nil {
		t.Fatal(label, ": the copy: ", err)
	}
}

// backupsLeft returns a function that checks that those that were completed are there, but
// for one that may have been deleted, or has to be if nothing has failed; that none of them
// is damaged; and that the newest, which may have come, is whole.
func backupsLeft(made []string, deleted string, want lifeState) func(*testing.T, string, vfs.FS, error) {
	return func(t *testing.T, label string, fsys vfs.FS, err error) {
		t.Helper()
		repo := vfsStore{fsys, faultyRepository}
		all, lerr := backup.List(ctx, repo)
		if lerr != nil {
			t.Fatal(label, ": ", lerr)
		}
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
		if come := !slices.Contains(made, newest); come && deleted != "" || !come && deleted == "" && err == nil || len(ids) > len(made)+1 {
			t.Fatalf("%s: %v; there are %q, and were %q", label, err, ids, made)
		}
		if _, err := backup.Verify(ctx, repo, backup.VerifyOptions{}, func(f backup.Finding) error { return errors.New(f.String()) }); err != nil {
			t.Fatal(label, ": ", err)
		}
		if _, err := db.Restore(ctx, repo, "copy", &db.Options{FS: fsys}, db.RestoreOptions{ID: newest, SkipVerify: true}); err != nil {
			t.Fatal(label, ": ", err)
		}
		d, oerr := db.Open("copy", &db.Options{FS: fsys, MustExist: true})
		if oerr != nil {
			t.Fatal(label, ": ", oerr)
		}
		checkWhole(t, label, d, want)
	}
}
