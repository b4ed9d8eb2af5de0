package metamorphic

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// A memory is a file system that can be cloned, while it is in use, as a crash would
// leave it. Pebble's Lock takes a lock that it already holds; this hangs if a clone
// waits for that lock in between. So memory has a lock of its own around it.
type memory struct {
	vfs.FS
	files   *vfs.MemFS
	locking sync.RWMutex // held for reading while Lock runs, for writing while a clone is made

	mu     sync.Mutex
	before int // do runs before the change of files that comes after so many others
	do     func()
}

func newMemory() *memory { return memoryOf(vfs.NewCrashableMem()) }

func memoryOf(files *vfs.MemFS) *memory {
	m := &memory{files: files}
	m.FS = errorfs.Wrap(files, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpLock { // the lock is held then
			m.changes()
		}
		return nil
	}))
	return m
}

func (m *memory) Lock(name string) (io.Closer, error) {
	m.locking.RLock()
	defer m.locking.RUnlock()
	return m.FS.Lock(name)
}

// at calls do before the change of files that comes after changes others. A nil do
// cancels the last call.
func (m *memory) at(changes int, do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.before, m.do = changes, do
}

func (m *memory) changes() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.do == nil {
		return
	}
	if m.before--; m.before < 0 {
		m.do()
		m.do = nil
	}
}

// crash returns what a crash would leave now.
func (m *memory) crash(op *Op) *memory {
	m.locking.Lock()
	defer m.locking.Unlock()
	return memoryOf(m.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: op.Percent, RNG: newRand(op.Seed)}))
}
