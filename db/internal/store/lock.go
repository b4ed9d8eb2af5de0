package store

import (
	"errors"
	"io"
	"sync"
)

// lockTable is which lock files this process has locked. The locks of the operating system
// belong to the process, and closing any handle of a file may drop them all. So the process
// keeps count itself, and opens each lock file once. The mutex is held while a lock is taken,
// which never waits for another process.
var lockTable = struct {
	sync.Mutex
	locks map[string]*heldLock // by the path of the file
}{locks: map[string]*heldLock{}}

// A heldLock is a lock file that this process has locked. lockTable.Mutex guards it.
type heldLock struct {
	path    string    // its key in lockTable.locks
	file    io.Closer // closing it frees the lock
	readers int       // handles that share it; 0: a writer has it
}

// errLockHeld says that this process has the lock already, for something else.
var errLockHeld = errors.New("lock held by current process")

// takeLock takes the lock of a file, shared with other readers or alone. It calls lock, which
// asks the operating system, unless this process has the lock for reading already. It gives
// errLockHeld where this process has it for something else.
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

// A lockHandle is one user's share of a lock. It is to be closed once.
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

// shareLock takes a lock file, which must be there, for reading.
func shareLock(path string) (io.Closer, error) { return takeLock(path, true, lockToRead) }
