package store

import (
	"errors"
	"io"
	"sync"
)

// The locks of the operating system belong to the process, and closing any handle of a
// file may drop them all. So this process knows by itself which of its folders it has
// locked, and opens each lock file once.
var lockTable = struct {
	sync.Mutex
	locks map[string]*heldLock // by the path of the file
}{locks: map[string]*heldLock{}}

type heldLock struct {
	path    string
	file    io.Closer
	readers int // 0: a writer has it
}

// errLockHeld says that this process has the lock already, for something else.
var errLockHeld = errors.New("lock held by current process")

// takeLock takes the lock of a file, by calling lock unless another reader has it already.
func takeLock(path string, shared bool, lock func(path string) (io.Closer, error)) (io.Closer, error) {
	lockTable.Lock()
	defer lockTable.Unlock()
	held := lockTable.locks[path]
	switch {
	case held != nil && (!shared || held.readers == 0):
		return nil, errLockHeld
	case held == nil:
		file, err := lock(path)
		if err != nil {
			return nil, err
		}
		held = &heldLock{path: path, file: file}
		lockTable.locks[path] = held
	}
	if shared {
		held.readers++
	}
	return &lockHandle{held: held}, nil
}

// A lockHandle is one user's share of a lock.
type lockHandle struct{ held *heldLock }

// Close gives it back; the last one frees the lock.
func (h *lockHandle) Close() error {
	lockTable.Lock()
	defer lockTable.Unlock()
	if h.held.readers--; h.held.readers > 0 {
		return nil
	}
	delete(lockTable.locks, h.held.path)
	return h.held.file.Close()
}

// shareLock takes a lock file of the operating system for reading.
func shareLock(path string) (io.Closer, error) { return takeLock(path, true, lockToRead) }
