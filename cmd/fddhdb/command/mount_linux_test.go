package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

// What is on a disk that is mounted for reading only, as a snapshot of a file system is, can be
// looked at by every verb that looks, and backed up; what is restored is sound.
func TestVerbsOnReadOnlyDisk(t *testing.T) {
	if !testfs.Mounts(t) {
		return
	}
	f := newFixture(t, 60, true)
	disk := testfs.MountDisk(t, 64<<20)
	on := filepath.Join(disk, "x.db")
	clitest.Check(t, os.CopyFS(on, os.DirFS(f.db)))
	testfs.ReadOnlyDisk(t, disk)
	t.Setenv("TMPDIR", t.TempDir())
	want := must(t, "search", f.db, "--key", "1", "-k", "3")
	if got := must(t, "search", on, "--key", "1", "-k", "3"); got != want {
		t.Errorf("found %s, and where the disk can be written to %s", got, want)
	}
	must(t, "stats", on)
	must(t, "verify", on, "--deep")
	must(t, "count", on)
	must(t, "scan", on, "--limit", "3")
	must(t, "eval", on, "--vectors", "text="+f.text, "--labels", f.labels)
	must(t, "export", on, "--keys", f.path("keys.txt"))
	for _, flags := range [][]string{{}, {"--collection", "main"}, {"--index-only"}} {
		repo, back := filepath.Join(t.TempDir(), "backups"), filepath.Join(t.TempDir(), "back.db")
		must(t, append([]string{"backup", on, repo}, flags...)...)
		must(t, "restore", repo, back)
		must(t, "verify", back, "--deep")
		if got := must(t, "search", back, "--key", "1", "-k", "3", "--rerank", "projection"); got != must(t,
			"search", on, "--key", "1", "-k", "3", "--rerank", "projection") {
			t.Errorf("backup %v finds %s", flags, got)
		}
	}
	says(t, exit.Failed, "read-only file system", "delete", on, "1")
}

// However little room a disk has, put advises to delete, and that works. Without the spare file,
// which another version has not made, put advises it only where it works. A database is looked at
// whatever is free.
func TestAdviceOnFullDisk(t *testing.T) {
	effort.Slow(t)
	if !testfs.Mounts(t) {
		return
	}
	f := newFixture(t, 60, true)
	for _, free := range []int64{0, 1, 2, 4, 8, 12, 16, 24, 32, 48, 60, 68, 80, 96, 128, 192, 256, 320, 384,
		512} {
		for _, spare := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d KiB, spare file %v", free, spare), func(t *testing.T) {
				disk := testfs.MountDisk(t, 40<<20)
				on := filepath.Join(disk, "x.db")
				clitest.Check(t, os.CopyFS(on, os.DirFS(f.db)))
				if !spare {
					clitest.Check(t, os.Remove(filepath.Join(on, "store", "SPARE")))
				}
				testfs.FillDisk(t, disk, free<<10)
				code, _, put := do(t, "put", on, "new", "--labels", "0")
				advised := strings.Contains(put, "or delete items")
				if code != exit.Failed || !strings.Contains(put, "disk is full") ||
					!strings.Contains(put, "make room") || spare && !advised {
					t.Errorf("put: exit code %d, %s", code, put)
				}
				code, stdout, stderr := do(t, "delete", on, "1")
				switch {
				case code == exit.Done && stdout == "deleted 1 item\n" &&
					strings.Contains(stderr, " free, and writes leave 2.1 MB"):
				case advised:
					t.Errorf("put says %sdelete: exit code %d, %s%s", put, code, stdout, stderr)
				case strings.Contains(stderr, "delete items") || !strings.Contains(stderr, "make room"):
					t.Errorf("delete: exit code %d, %s%s", code, stdout, stderr)
				}
				must(t, "count", on)
				must(t, "verify", on)
			})
		}
	}
}

// A disk that a later part of an import finds full keeps the parts before it, and the same command goes
// on when there is room.
func TestImportOnAFullDisk(t *testing.T) {
	if !testfs.Mounts(t) {
		return
	}
	f := fixture{dir: t.TempDir()}
	const rows, dim = 30, 1 << 19 // 2 MiB a row, which does not compress: a part of 8
	file := f.path("x.npy")
	zeros(t, file, rows, dim)
	noise := testfs.Noise(4*rows*dim, 1)
	for i := 3; i < len(noise); i += 4 {
		noise[i] = 0x3f // no NaN
	}
	out := clitest.Must(os.OpenFile(file, os.O_RDWR, 0))(t)
	info, err := out.Stat()
	if err == nil {
		_, err = out.WriteAt(noise, info.Size()-int64(len(noise)))
	}
	clitest.Check(t, errors.Join(err, out.Close()))
	disk := testfs.MountDisk(t, 160<<20)
	testfs.FillDisk(t, disk, 50<<20)
	on := filepath.Join(disk, "x.db")
	args := []string{"import", on, "--init", "--vectors", "image=" + file}
	code, _, stderr := do(t, args...)
	in := countOf(t, on)
	if code != exit.Failed || in == "0" || in == "30" || !strings.Contains(stderr, "disk is full") ||
		!strings.Contains(stderr, "; "+in+" of 30 rows are in: give the same command again to go on") {
		t.Fatalf("%s items, exit code %d, %s", in, code, stderr)
	}
	must(t, "verify", on)
	clitest.Check(t, os.Remove(filepath.Join(disk, "filler")))
	says(t, exit.Done, "going on at row "+in+" of 30", args...)
	if n := countOf(t, on); n != "30" {
		t.Errorf("%s items", n)
	}
	checkNoMark(t, on)
}
