//go:build linux || darwin

package shell

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A pipe instead of the history file would block the shell.
func TestHistoryIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := appendHistory(path, []byte("count\n")); err == nil ||
		!strings.Contains(err.Error(), "named pipe") {
		t.Errorf("%v", err)
	}
}
