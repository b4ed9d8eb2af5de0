package natsproc

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end the process that cmd starts when the thread that started it ends. A paused
// server never sees that standard input is closed.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL }
