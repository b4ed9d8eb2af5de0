//go:build !unix

package natsproc_test

import (
	"os"
	"testing"
)

func stop(t *testing.T, _ *os.Process) { t.Skip("processes cannot be paused here") }

func exists(p *os.Process) bool {
	_, err := os.FindProcess(p.Pid)
	return err == nil
}
