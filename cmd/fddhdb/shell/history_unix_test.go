//go:build linux || darwin

package shell

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// A pipe instead of the history file would block the shell.
func TestHistoryIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	clitest.Check(t, syscall.Mkfifo(path, 0o600))
	if err := appendHistory(path, []byte("count\n")); err == nil ||
		!strings.Contains(err.Error(), "named pipe") {
		t.Errorf("%v", err)
	}
}
