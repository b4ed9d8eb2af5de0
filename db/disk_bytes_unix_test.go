//go:build unix

package db_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/store"
)

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
	must(t, os.Symlink(dir, filepath.Join(dir, "notes", "round")))
	putAll(t, c, items[:1])
	n = checkDisk(t, d, dir, "with a link to itself")
	failIf(t, n > 8<<20, "a folder that links to itself takes %d bytes", n)
	dbkit.MustClose(t, d)
	d = dbkit.MustOpen(t, dir, nil)
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
