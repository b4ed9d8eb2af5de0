package dbkit

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// ErrInjected is the error of an operation that was made to fail.
var ErrInjected = errors.New("injected")

// FailOnce makes the K-th operation of a kind fail, and, if Forever, all that follow. By
// default it counts operations that change the file system.
type FailOnce struct {
	K       int
	On      func(errorfs.Op) bool
	Forever bool
	Off     atomic.Bool // operations neither fail nor count

	Mu    sync.Mutex
	Fired bool
}

func (f *FailOnce) MaybeError(op errorfs.Op) error {
	on := f.On
	if on == nil {
		on = IsWrite
	}
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.Off.Load() || f.Fired && !f.Forever || !on(op) {
		return nil
	}
	if f.K--; f.K < 0 {
		f.Fired = true
		return ErrInjected
	}
	return nil
}

func (f *FailOnce) String() string { return "fail once" }

// Hit reports whether anything has failed.
func (f *FailOnce) Hit() bool {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	return f.Fired
}

// Arm makes the k-th operation from now on fail.
func (f *FailOnce) Arm(k int) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.K, f.Fired = k, false
}

// Disarm lets all operations succeed. It reports whether one has failed.
func (f *FailOnce) Disarm() (fired bool) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	fired, f.Fired = f.Fired, true
	return fired
}

// IsWrite reports whether an operation changes the file system.
func IsWrite(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }

// A CrashFS can be cloned at any time. vfs.MemFS takes the lock that cloning waits for
// twice in these two: a clone that comes between would wait for ever.
type CrashFS struct {
	*vfs.MemFS
	mu sync.Mutex
}

// NewCrashFS returns an empty file system.
func NewCrashFS() *CrashFS { return &CrashFS{MemFS: vfs.NewCrashableMem()} }

func (f *CrashFS) Link(oldname, newname string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.Link(oldname, newname)
}

func (f *CrashFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.ReuseForWrite(oldname, newname, c)
}

func (f *CrashFS) CrashClone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.MemFS.CrashClone(cfg)
}
