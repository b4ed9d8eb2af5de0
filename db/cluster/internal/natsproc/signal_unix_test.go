//go:build unix

package natsproc_test

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"testing"
)

// stop pauses a process that is not ours and waits until it has stopped, which
// on a busy machine is some time after the signal was sent.
func stop(t *testing.T, p *os.Process) {
	t.Helper()
	stat := fmt.Sprintf("/proc/%d/stat", p.Pid)
	if _, err := os.Stat(stat); err != nil {
		t.Skipf("cannot see whether a process has stopped: %v", err)
	}
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, election, func() error {
		line, err := os.ReadFile(stat)
		if err == nil && !bytes.Contains(line, []byte(") T ")) {
			err = fmt.Errorf("still runs: %s", line)
		}
		return err
	})
}

// exists reports whether a process that is not ours lives. One that has ended
// stays a zombie where nobody waits for it, as in a container without an init.
func exists(p *os.Process) bool {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Pid)); err == nil &&
		bytes.Contains(stat, []byte(") Z ")) {
		return false
	}
	return p.Signal(syscall.Signal(0)) == nil
}
