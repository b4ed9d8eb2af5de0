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

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"
)

// Where something else has the place of a file of a database, or of a folder in it, every
// verb ends: nobody waits for somebody to write into a named pipe. What cannot do without
// the file says that it is damaged, and which.
func TestPipesInPlaceOfFiles(t *testing.T) {
	root := t.TempDir()
	from := filepath.Join(root, "from")
	d, _ := openNew(t, from, nil, db.Schema{Bits: 64}, dbkit.CodeItems(5, 64, 1, nil)...)
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
	m := need(d.Backup(ctx, s, db.BackupOptions{}))(t)
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

// blocksIn returns how many bytes are allocated for a folder and what is in it.
func blocksIn(t *testing.T, dir string) (sum int64) {
	t.Helper()
	seen := map[uint64]bool{}
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Lstat(path)
		if os.IsNotExist(err) || os.IsNotExist(statErr) {
			return nil // it has just gone
		}
		if err != nil || statErr != nil {
			return statErr
		}
		st := info.Sys().(*syscall.Stat_t)
		if !seen[uint64(st.Ino)] {
			seen[uint64(st.Ino)] = true
			sum += st.Blocks * 512
		}
		return nil
	})
	must(t, err)
	return sum
}

// checkDisk compares what Stats says of the disk with a walk through the folder, and returns it.
func checkDisk(t *testing.T, d *db.DB, dir, when string) int64 {
	t.Helper()
	// while something goes on in the background
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		before := blocksIn(t, dir)
		s := need(d.Stats())(t)
		failIf(t, s.ObsoleteBytes > s.DiskBytes, "%s: %d bytes, of which %d are obsolete", when, s.DiskBytes,
			s.ObsoleteBytes)
		if before == s.DiskBytes && before == blocksIn(t, dir) {
			return s.DiskBytes
		}
	}
	s, err := d.Stats()
	t.Errorf("%s: Stats says %d bytes and the folder takes %d, %v", when, s.DiskBytes, blocksIn(t, dir), err)
	return s.DiskBytes
}

// A small database takes little on disk, and Stats says how much, whatever it is.
func TestDiskBytesAreThoseOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "db")
	d := dbkit.MustOpen(t, dir, nil)
	defer func() { dbkit.MustClose(t, d) }()
	n := checkDisk(t, d, dir, "empty")
	failIf(t, n > 1<<20, "an empty database takes %d bytes", n)
	c := need(d.CreateCollection(ctx, "main", dbkit.PairsSchema))(t)
	items := dbkit.ViewItems(1000, 1)
	for i := 0; i < len(items); i += 50 { // some 0.4 MB in the log
		putAll(t, c, items[i:i+50])
	}
	n = checkDisk(t, d, dir, "small items")
	failIf(t, n > 4<<20, "a thousand small items take %d bytes", n)
	dbkit.MustTrain(t, c, db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 50}})
	checkDisk(t, d, dir, "trained")
	must(t, d.Compact(ctx))
	checkDisk(t, d, dir, "compacted")
	must(t, os.MkdirAll(filepath.Join(dir, "notes"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "notes", "ours"), make([]byte, 100_000), 0o644))
	must(t, os.Link(filepath.Join(dir, "notes", "ours"), filepath.Join(dir, "notes", "again")))
	putAll(t, c, items[:1])
	checkDisk(t, d, dir, "with files of others")
	must(t, os.Symlink("..", filepath.Join(dir, "notes", "round")))
	putAll(t, c, items[:1])
	n = checkDisk(t, d, dir, "with a link to itself")
	failIf(t, n > 8<<20, "a folder that links to itself takes %d bytes", n)
	d, _ = reopen(t, d, dir, nil)
	n = checkDisk(t, d, dir, "opened again")
	failIf(t, n > 4<<20, "opened again it takes %d bytes", n)
}

// Of a file system in memory the sizes count.
func TestDiskBytesInMemory(t *testing.T) {
	mem := vfs.NewMem()
	must(t, mem.MkdirAll("d/e", 0o755))
	for _, name := range []string{"d/a", "d/e/b"} {
		f, err := mem.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(make([]byte, 100))
		}
		must(t, err)
		must(t, f.Close())
	}
	n := store.DiskBytes(mem, "d")
	failIf(t, n != 200, "%d bytes", n)
	n = store.DiskBytes(mem, "nothing")
	failIf(t, n != 0, "nothing takes %d bytes", n)
}
