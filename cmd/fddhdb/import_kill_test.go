package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/codec/vecfile"
)

// An import that is killed at any moment goes on when the same command runs again, and
// stores everything once.
func TestKilledImport(t *testing.T) {
	if testing.Short() {
		t.Skip("it imports as much as takes a while")
	}
	const rows, kills = 60_000, 3
	dir := t.TempDir()
	file, database := filepath.Join(dir, "x.npy"), filepath.Join(dir, "a.db")
	vectors := make([][]float32, rows)
	for i := range vectors {
		vectors[i] = make([]float32, 64)
		vectors[i][0] = float32(i)
	}
	if err := writeMatrix(file, vectors); err != nil {
		t.Fatal(err)
	}
	resumed := 0
	for n := 0; ; n++ {
		var stderr bytes.Buffer
		c := exec.Command("fddhdb", "import", database, "--init", "--vectors", "image="+file)
		c.Stderr = &stderr
		before := stagedIn(t, database)
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		var err error
		for running := true; running; {
			select {
			case err = <-ended:
				running = false
			case <-time.After(time.Millisecond):
				// Once it has staged something more, but the last time.
				if n < kills && stagedIn(t, database) > before+1<<20 {
					_ = c.Process.Kill()
				}
			}
		}
		if strings.Contains(stderr.String(), "going on at row") {
			resumed++
		}
		if err == nil || strings.Contains(stderr.String(), "exists already") { // it was killed when it was done
			break
		}
		if n > kills {
			t.Fatalf("%v, %s", err, stderr.String())
		}
	}
	if out, err := exec.Command("fddhdb", "count", database).Output(); err != nil || string(out) != "60000\n" {
		t.Fatalf("%v, %q", err, out)
	}
	if resumed == 0 {
		t.Log("each was killed before it had staged anything, or after it was done")
	}
	if err := exec.Command("fddhdb", "verify", database, "--deep").Run(); err != nil {
		t.Errorf("verify: %v", err)
	}
	got := filepath.Join(dir, "got.npy")
	if err := exec.Command("fddhdb", "export", database, "--vectors", "image="+got).Run(); err != nil {
		t.Fatal(err)
	}
	r, err := vecfile.Open(got)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x := make([]float32, 64)
	for i := range rows {
		if err := r.Next(x); err != nil || x[0] != float32(i) {
			t.Fatalf("row %d is %v, %v", i, x[0], err)
		}
	}
}

// stagedIn returns the bytes that the imports of a database have staged.
func stagedIn(t *testing.T, database string) (n int64) {
	files, err := filepath.Glob(filepath.Join(database, "imports", "*", "*.items"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil {
			n += info.Size()
		}
	}
	return n
}
