//go:build unix

package source

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db/importer"
)

// A named pipe in place of a file whose size has to be known is refused, and nobody waits for it.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		open func(path string) error
	}{
		{"x.npy", func(path string) error { _, err := OpenVectors("", path); return err }},
		{"x.csv", func(path string) error { _, err := OpenVectors("", path); return err }},
		{"x.jsonl", func(path string) error { _, err := OpenVectors("", path); return err }},
		{"x.parquet", func(path string) error { _, err := OpenVectors("", path); return err }},
		{"items.jsonl", func(path string) error {
			_, err := importer.Open(path, path, importer.Options{})
			return err
		}},
		{"items.parquet", func(path string) error {
			_, err := importer.Open(path, path, importer.Options{})
			return err
		}},
	} {
		path := filepath.Join(dir, c.name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip(err)
		}
		said := make(chan error, 1)
		go func() { said <- c.open(path) }()
		select {
		case err := <-said:
			if err == nil || !strings.Contains(err.Error(), c.name+": is not a regular file") {
				t.Errorf("%s: %v", c.name, err)
			}
		case <-time.After(10 * time.Second):
			t.Errorf("%s: it waits", c.name)
		}
	}
}
