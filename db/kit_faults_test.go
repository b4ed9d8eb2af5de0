package db

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var errInjected = errors.New("injected")

// failOnce injects a failure: into the k-th operation of a kind, by default of those that
// change the file system; and into all after it, if forever.
type failOnce struct {
	k       int
	on      func(errorfs.Op) bool
	forever bool
	off     atomic.Bool // operations neither fail nor count

	mu    sync.Mutex
	fired bool
}

func (f *failOnce) MaybeError(op errorfs.Op) error {
	on := f.on
	if on == nil {
		on = isWrite
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.off.Load() || f.fired && !f.forever || !on(op) {
		return nil
	}
	if f.k--; f.k < 0 {
		f.fired = true
		return errInjected
	}
	return nil
}

func (f *failOnce) String() string { return "fail once" }

// hit reports whether anything has failed.
func (f *failOnce) hit() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.fired
}

func isWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// A crashFS can be cloned at any time. vfs.MemFS takes the lock that cloning waits for
// twice in these two: a clone that comes between would wait for ever.
type crashFS struct {
	*vfs.MemFS
	mu sync.Mutex
}

func newCrashFS() *crashFS { return &crashFS{MemFS: vfs.NewCrashableMem()} }

func (f *crashFS) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.Link(oldname, newname)
}

func (f *crashFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.ReuseForWrite(oldname, newname, c)
}

func (f *crashFS) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.CrashClone(cfg)
}
