//go:build unix

package store

import (
	"io"
	"os"
	"syscall"
)

// lockToRead locks a file for reading, without changing it.
func lockToRead(path string) (io.Closer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK,
		&syscall.Flock_t{Type: syscall.F_RDLCK, Whence: io.SeekStart}); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
