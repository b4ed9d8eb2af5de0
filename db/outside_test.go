package db_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
)

// Nothing that is to last is made in the folder of a database, neither in one that opening
// empties nor in another one, neither when it is missing nor when something is there.
func TestNothingIsMadeInADatabase(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "in.db")
	d := dbkit.MustOpen(t, dir, nil)
	c, err := d.CreateCollection(ctx, "main", db.Schema{Bits: 64})
	must(t, err)
	putAll(t, c, dbkit.CodeItems(10, 64, 1, nil))
	elsewhere, err := backup.Folder(filepath.Join(root, "backups"))
	must(t, err)
	need(d.Backup(ctx, elsewhere, db.BackupOptions{}))(t)
	linked := os.Symlink(dir, filepath.Join(root, "link")) == nil
	verbs := map[string]func(to string) error{
		"backup": func(to string) error {
			s, err := backup.Folder(to)
			if err != nil {
				return err
			}
			_, err = d.Backup(ctx, s, db.BackupOptions{})
			return err
		},
		"checkpoint": func(to string) error { return d.Checkpoint(ctx, to, db.CheckpointOptions{}) },
		"checkpoint of the index": func(to string) error {
			return d.Checkpoint(ctx, to, db.CheckpointOptions{IndexOnly: true})
		},
		"restore": func(to string) error {
			_, err := db.Restore(ctx, elsewhere, to, nil, db.RestoreOptions{})
			return err
		},
		"open": func(to string) error {
			made, err := db.Open(to, nil)
			if err == nil {
				dbkit.MustClose(t, made)
			}
			return err
		},
	}
	places := []string{
		"in.db/new", "in.db/deep/down/new", "in.db/checkpoints/new", "in.db/restoring/new",
		"in.db/ingest/new",
		"in.db/creating/new", "in.db/repairing/new", "in.db/store/new", "other/../in.db/new",
	}
	if linked {
		places = append(places, "link/new", "link/checkpoints/new")
	}
	for what, do := range verbs {
		for _, place := range places {
			to := filepath.Join(root, filepath.FromSlash(place))
			for _, time := range []string{"first", "second"} {
				err := do(to)
				failIf(t, !errors.Is(err, db.ErrInvalid) && !errors.Is(err, backup.ErrInvalid),
					"%s in %s, the %s time: %v", what, place, time, err)
				if time == "first" {
					_, err := os.Stat(to)
					failIf(t, !errors.Is(err, fs.ErrNotExist), "%s in %s has made it: %v", what, place, err)
					must(t, os.MkdirAll(filepath.Dir(to), 0o755))
				}
			}
		}
	}
	fine(t, verbs["checkpoint"](filepath.Join(root, "outside")))
	dbkit.MustClose(t, d)
	dbkit.MustClose(t, dbkit.MustOpen(t, dir, nil))
}

// In a file system of the program it is the same.
func TestNothingIsMadeInADatabaseInMemory(t *testing.T) {
	opts := &db.Options{FS: vfs.NewMem()}
	d := dbkit.MustOpen(t, "in.db", opts)
	defer dbkit.MustClose(t, d)
	repo := newMemStore()
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	errorsAre(t, db.ErrInvalid, map[string]error{
		"checkpoint": d.Checkpoint(ctx, "in.db/checkpoints/new", db.CheckpointOptions{}),
		"restore": func() error {
			_, err := db.Restore(ctx, repo, "in.db/a/new", opts, db.RestoreOptions{})
			return err
		}(),
		"open": func() error { _, err := db.Open("in.db/ingest/new", opts); return err }(),
	})
}

// Nor is anything made where a link leads into a database, whose opening would empty it.
func TestNothingIsMadeBehindALinkIntoADatabase(t *testing.T) {
	root := t.TempDir()
	dir, link := filepath.Join(root, "in.db"), filepath.Join(root, "link")
	d := dbkit.MustOpen(t, dir, nil)
	defer dbkit.MustClose(t, d)
	repo := newMemStore()
	need(d.Backup(ctx, repo, db.BackupOptions{}))(t)
	must(t, os.MkdirAll(filepath.Join(dir, "checkpoints"), 0o777))
	if err := os.Symlink(filepath.Join(dir, "checkpoints"), link); err != nil {
		t.Skip("no links:", err)
	}
	_, restored := db.Restore(ctx, repo, link, nil, db.RestoreOptions{})
	_, opened := db.Open(link, nil)
	for what, err := range map[string]error{"restore": restored, "open": opened,
		"checkpoint": d.Checkpoint(ctx, link, db.CheckpointOptions{})} {
		failIf(t, !errors.Is(err, db.ErrInvalid) && !errors.Is(err, db.ErrExists), "%s: %v", what, err)
	}
	names, err := os.ReadDir(link)
	failIf(t, err != nil || len(names) > 0, "the folder has %v, %v", names, err)
}
