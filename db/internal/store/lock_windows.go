package store

import (
	"io"
	"os"
	"syscall"
)

// lockToRead locks a file for reading, without changing it. A process that opens the database to write shares
// its lock file with no other process, so opening the file is the lock.
func lockToRead(path string) (io.Closer, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ, syscall.FILE_SHARE_READ, nil,
		syscall.OPEN_EXISTING, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}
