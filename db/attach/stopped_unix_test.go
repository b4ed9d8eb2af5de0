//go:build unix

package attach_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fddhdb/fddhdb/db/attach"
)

// An owner that is stopped, as by Ctrl-Z, answers nobody: that is told, and does not hang.
func TestStoppedOwner(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a.db")
	create(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, dir, "owner", "1000000")
	cmd.Env = append(os.Environ(), asProcess+"=1")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	for scan, n := bufio.NewScanner(out), 0; n < 3 && scan.Scan(); n++ { // it puts
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range 1000 { // it may still answer for a moment
		var a *attach.Database
		if a, err = attach.Open(t.Context(), dir, attach.Options{}); err != nil {
			break
		}
		_ = a.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "is it stopped?") {
		t.Errorf("beside an owner that is stopped: %v", err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	a, err := attach.Open(t.Context(), dir, attach.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
}
