//go:build unix

package natsproc

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process that cmd starts into a process group of its own. An
// interrupt from the terminal then reaches only the parent, and a paused server
// whose parent dies is continued by the kernel and can exit.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func (p *process) pause() error  { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
