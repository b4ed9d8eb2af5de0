//go:build unix

package beam

import (
	"errors"
	"syscall"
)

// ended reports whether there is no process with this number.
func ended(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
