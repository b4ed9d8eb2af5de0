//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup keeps an interrupt of the terminal from a process that this one starts, which ends it in order.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
