//go:build !unix

package main

import "os/exec"

// run runs the command.
func run(cmd *exec.Cmd) error { return cmd.Run() }
