//go:build !linux

package encoder

import "os/exec"

// endWithParent needs the kernel of Linux. Elsewhere a program ends with a process that is
// killed when it reads the end of its input.
func endWithParent(*exec.Cmd) {}
