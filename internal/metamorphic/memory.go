package metamorphic

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A memory is a file system that can be cloned as a crash would leave it while it is in use.
// That of Pebble takes a lock again in Lock that it has already, which hangs where a clone
// waits for it in between.
type memory struct {
	*vfs.MemFS
	locking sync.RWMutex
}

func newMemory() *memory { return &memory{MemFS: vfs.NewCrashableMem()} }

func (m *memory) Lock(name string) (io.Closer, error) {
	m.locking.RLock()
	defer m.locking.RUnlock()
	return m.MemFS.Lock(name)
}

// crash returns what a crash would leave now.
func (m *memory) crash(op *Op) *memory {
	m.locking.Lock()
	defer m.locking.Unlock()
	return &memory{MemFS: m.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: op.Percent, RNG: newRand(op.Seed)})}
}
