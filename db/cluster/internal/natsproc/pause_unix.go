//go:build unix

package natsproc

import (
	"os/exec"
	"syscall"
)

// OwnGroup puts the process that cmd starts into a process group of its own, so that an interrupt from the
// terminal reaches only the parent.
func OwnGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
