//go:build !linux

package natsproc

import "os/exec"

// dieWithParent needs the Linux kernel. Elsewhere a paused server ends when something continues it.
func dieWithParent(*exec.Cmd) {}
