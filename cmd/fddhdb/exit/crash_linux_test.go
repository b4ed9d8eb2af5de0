package exit

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// A process that runs out of memory is not taken for one with a wrong command line.
func TestOutOfMemory(t *testing.T) {
	if os.Getenv("FDDHDB_TEST_CRASH") != "" {
		AbortOnCrash()
		if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 8 << 30,
			Max: 8 << 30}); err != nil {
			t.Fatal(err)
		}
		exhausting = make([]byte, 1<<40)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestOutOfMemory$")
	cmd.Env, cmd.Dir = append(os.Environ(), "FDDHDB_TEST_CRASH=1", "GOTRACEBACK="), t.TempDir()
	out, err := cmd.CombinedOutput()
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGABRT || status.CoreDump() ||
		!strings.Contains(string(out), "out of memory") {
		t.Errorf("%v, core %v: %.500s", err, status.CoreDump(), out)
	}
}

var exhausting []byte
