//go:build !unix

package natsproc

import (
	"errors"
	"os/exec"
)

// OwnGroup needs Unix. Elsewhere an interrupt may reach the process, too.
func OwnGroup(*exec.Cmd) {}

func (p *process) pause() error  { return errors.ErrUnsupported }
func (p *process) resume() error { return errors.ErrUnsupported }
