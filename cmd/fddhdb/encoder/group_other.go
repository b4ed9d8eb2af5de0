//go:build !unix

package encoder

import "os/exec"

// There are no process groups: only the process itself is killed.

func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() } // it may have ended by itself
