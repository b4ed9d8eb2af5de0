//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// run replaces this process by the command: a runner that kills its process kills the worker.
func run(cmd *exec.Cmd) error { return syscall.Exec(cmd.Path, cmd.Args, cmd.Env) }
