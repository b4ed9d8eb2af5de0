package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// An import that is killed at any moment goes on when the same command runs again, and
// stores everything once.
func TestKilledImport(t *testing.T) {
	effort.Slow(t)
	const rows, dim, kills = 16_000, 4096, 2 // four parts
	dir := t.TempDir()
	file, database := filepath.Join(dir, "x.npy"), filepath.Join(dir, "a.db")
	random := rand.New(rand.NewPCG(1, 2))
	vectors := make([][]float32, rows)
	for i := range vectors {
		vectors[i] = make([]float32, dim)
		for j := range vectors[i] { // numbers that do not compress
			vectors[i][j] = random.Float32()
		}
		vectors[i][0] = float32(i)
	}
	clitest.Check(t, writeMatrix(file, vectors))
	resumed := 0
	for n := 0; ; n++ {
		var stderr bytes.Buffer
		c := exec.Command("fddhdb", "import", database, "--init", "--vectors", "image="+file)
		c.Stderr = &stderr
		before := sizeOf(t, database)
		clitest.Check(t, c.Start())
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		var err error
		for running := true; running; {
			select {
			case err = <-ended:
				running = false
			case <-time.After(time.Millisecond):
				// Once it has stored a part more, whose files may count twice, but the last time.
				if n < kills && sizeOf(t, database) > before+150<<20 {
					_ = c.Process.Kill()
				}
			}
		}
		if strings.Contains(stderr.String(), "going on at row") {
			resumed++
		}
		// it was killed when it was done
		if err == nil || strings.Contains(stderr.String(), "exists already") {
			break
		}
		if n > kills {
			t.Fatalf("%v, %s", err, stderr.String())
		}
	}
	if out, err := exec.Command("fddhdb", "count", database).Output(); err != nil ||
		string(out) != fmt.Sprintln(rows) {
		t.Fatalf("%v, %q", err, out)
	}
	if resumed == 0 {
		t.Log("each was killed before it had stored anything, or after it was done")
	}
	if err := exec.Command("fddhdb", "verify", database, "--deep").Run(); err != nil {
		t.Errorf("verify: %v", err)
	}
	got := filepath.Join(dir, "got.npy")
	clitest.Check(t, exec.Command("fddhdb", "export", database, "--vectors", "image="+got).Run())
	r := clitest.Must(files.Open(got, got))(t)
	defer r.Close()
	x := make([]float32, dim)
	for i := range rows {
		if err := r.Next(x); err != nil || x[0] != float32(i) {
			t.Fatalf("row %d is %v, %v", i, x[0], err)
		}
	}
}

// sizeOf returns the bytes of the files of a folder.
func sizeOf(t *testing.T, dir string) (n int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is gone
		}
		if info, err := e.Info(); err == nil && !e.IsDir() {
			n += info.Size()
		}
		return nil
	})
	clitest.Check(t, err)
	return n
}
