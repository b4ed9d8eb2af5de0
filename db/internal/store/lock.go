package store

import (
	"errors"
	"io"
	"sync"
)

// lockTable has the lock files that this process has locked. The locks of the operating system belong to the
// process, and closing any handle of a file may drop them all. So the process counts its locks, and opens
// each lock file once. The mutex is held while a lock is taken, which never waits for another process.
var lockTable = struct {
	sync.Mutex
	locks map[string]*heldLock // by the path of the file
}{locks: map[string]*heldLock{}}

// A heldLock is a lock file locked by this process. lockTable.Mutex guards it.
type heldLock struct {
	path    string    // its key in lockTable.locks
	file    io.Closer // closing it frees the lock
	readers int       // handles that share it; 0: one writer has it
}

// errLockHeld means that this process already has the lock in a way that excludes the new one.
var errLockHeld = errors.New("lock held by current process")

// takeLock takes the lock of a file, shared with other readers or alone. It calls lock, which asks the
// operating system, unless this process already has the lock for reading and shares it. If the locks exclude
// each other, the error is errLockHeld.
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

// A lockHandle is one user's share of a lock. Close it once.
type lockHandle struct{ held *heldLock }

// Close returns the share. The last Close frees the lock.
func (h *lockHandle) Close() error {
	lockTable.Lock()
	defer lockTable.Unlock()
	if h.held.readers--; h.held.readers > 0 {
		return nil
	}
	delete(lockTable.locks, h.held.path)
	return h.held.file.Close()
}

// shareLock locks an existing lock file for reading.
func shareLock(path string) (io.Closer, error) { return takeLock(path, true, lockToRead) }
