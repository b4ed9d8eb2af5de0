//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// An encoder that does not read its input ends with a search, or a shell, that is killed.
func TestEncoderEndsWithAKilledProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes")
	}
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	clitest.Check(t, syscall.Mkfifo(begun, 0o600))
	path := scriptEncoder(t, dir, "echo $$ >"+begun+"\nexec sleep 10000\n")
	for _, args := range [][]string{{"search", path, "--text", "cat"}, {path, "-c", "search --text cat"}} {
		cmd := exec.Command("fddhdb", args...)
		clitest.Check(t, cmd.Start())
		said, err := os.ReadFile(begun) // when the encoder has begun
		clitest.Check(t, err)
		encoder, err := strconv.Atoi(strings.TrimSpace(string(said)))
		clitest.Check(t, err)
		clitest.Check(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed

		// A kill takes a moment.
		for until := time.Now().Add(time.Minute); alive(encoder); time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				_ = syscall.Kill(encoder, syscall.SIGKILL)
				t.Fatalf("%q: the encoder goes on", args)
			}
		}
	}
}

// alive reports whether there is a process that has not ended. One that has ended may wait for its new
// parent.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(stat), ") Z")
}

// An encoder that searches its own database by a text is refused an encoder, and does not start itself
// without end.
func TestEncoderInsideAnEncoder(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes")
	}
	dir := t.TempDir()
	runs := filepath.Join(dir, "runs")
	path := scriptEncoder(t, dir, `echo run >>`+runs+`
test $(wc -l <`+runs+`) -gt 3 && exit 1 # enough
exec fddhdb search "`+filepath.Join(dir, "a.db")+`" --text cat
`)
	var stderr bytes.Buffer
	cmd := exec.Command("fddhdb", "search", path, "--text", "cat")
	cmd.Stderr = &stderr
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 1 ||
		!strings.Contains(stderr.String(), "an encoder starts no encoder") {
		t.Errorf("%v, %s", err, &stderr)
	}
	if all, err := os.ReadFile(runs); err != nil || string(all) != "run\n" {
		t.Errorf("the encoder has run: %q, %v", all, err)
	}
}
