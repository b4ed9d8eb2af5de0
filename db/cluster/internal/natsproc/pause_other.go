//go:build !unix

package natsproc

import (
	"errors"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

func (p *process) pause() error  { return errors.ErrUnsupported }
func (p *process) resume() error { return errors.ErrUnsupported }
