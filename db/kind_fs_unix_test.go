//go:build unix

package db_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
)

// Where something else has the place of a file of a database, or of a folder in it, every
// verb ends: nobody waits for somebody to write into a named pipe. What cannot do without
// the file says that it is damaged, and which.
func TestPipesInPlaceOfFiles(t *testing.T) {
	root := t.TempDir()
	from := filepath.Join(root, "from")
	d := dbkit.MustOpen(t, from, nil)
	c := need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	putAll(t, c, dbkit.CodeItems(5, 64, 1, nil))
	dbkit.MustClose(t, d)

	verbs := map[string]func(dir string) error{
		"verify": func(dir string) error {
			_, err := db.VerifyFolder(ctx, dir, nil, db.VerifyOptions{},
				func(f report.Finding) error { return fault.Corrupt(errors.New(f.String()), "verified") })
			return err
		},
		"repair": func(dir string) error {
			_, err := db.Repair(ctx, dir, nil, db.RepairOptions{DryRun: true}, nil)
			return err
		},
		"open": func(dir string) error {
			d, err := db.Open(dir, nil)
			if err != nil {
				return err
			}
			_, err = d.Collection("main")
			return errors.Join(err, d.Close())
		},
	}
	for _, path := range sortsOfFiles(t, from) {
		for what, do := range verbs {
			t.Run(what+"/"+filepath.ToSlash(path), func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(t.TempDir(), "to")
				must(t, os.CopyFS(dir, os.DirFS(from)))
				odd := filepath.Join(dir, path)
				must(t, errors.Join(os.RemoveAll(odd), syscall.Mkfifo(odd, 0o644)))
				err := ending(t, func() error { return do(dir) })
				switch {
				case err == nil && what == "verify" && isVerified(path):
					t.Error("nothing is found")
				case err != nil && !errors.Is(err, db.ErrCorrupt) && !errors.Is(err, db.ErrNotDatabase):
					t.Error(err)
				case err != nil && strings.Count(err.Error(), "fddhdb: ") > 1:
					t.Errorf("prefix: %v", err)
				}
			})
		}
	}
}

// isVerified reports whether verifying a database reads what is at a path.
func isVerified(path string) bool {
	return path == store.MarkerName || path == store.LockName || path == store.CommitsName ||
		path == store.StoreName || strings.HasSuffix(path, ".sst")
}

// sortsOfFiles returns the paths of the files and folders in a folder, one of each sort.
func sortsOfFiles(t *testing.T, root string) (paths []string) {
	t.Helper()
	seen := map[string]bool{}
	must(t, fs.WalkDir(os.DirFS(root), ".", func(path string, _ fs.DirEntry, err error) error {
		if sort := filepath.Dir(path) + sortOf(path); err == nil && path != "." && !seen[sort] {
			seen[sort] = true
			paths = append(paths, filepath.FromSlash(path))
		}
		return err
	}))
	return paths
}

// ending returns what a function returns that might wait for ever.
func ending(t *testing.T, do func() error) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- do() }()
	select {
	case err := <-ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
		return nil
	}
}

// The same of what is in a repository.
func TestPipesInARepository(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	d := dbkit.MustOpen(t, filepath.Join(root, "db"), nil)
	defer dbkit.MustClose(t, d)
	need(d.CreateCollection(ctx, "main", db.Schema{Bits: 64}))(t)
	repository := filepath.Join(root, "backups")
	s, err := backup.Folder(repository)
	must(t, err)
	m := mustBackup(t, d, s, db.BackupOptions{})
	var paths []string
	err = filepath.WalkDir(repository, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	must(t, err)
	for _, path := range paths {
		away := filepath.Join(root, "away")
		must(t, errors.Join(os.Rename(path, away), syscall.Mkfifo(path, 0o644)))
		for what, do := range map[string]func() error{
			"backup": func() error { _, err := d.Backup(ctx, s, db.BackupOptions{}); return err },
			"prune": func() error {
				_, err := backup.Prune(ctx, s, backup.PruneOptions{Keep: 1})
				return err
			},
			"verify": func() error {
				_, err := backup.Verify(ctx, s, backup.VerifyOptions{}, nil)
				return err
			},
			"restore": func() error {
				_, err := db.Restore(ctx, s, filepath.Join(root, "new"), nil, db.RestoreOptions{})
				return err
			},
		} {
			if what == "backup" && strings.HasSuffix(path, m.ID+".json") {
				continue // another one is made beside it
			}
			err := ending(t, do)
			failIf(t, !errors.Is(err, backup.ErrDamaged), "%s with a pipe for %s: %v", what, path, err)
		}
		must(t, errors.Join(os.Remove(path), os.Rename(away, path)))
	}
}
