package metamorphic

import (
	"io"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/test/metamorphic/program"
)

// A memory is a file system that can be cloned, while it is in use, as a crash would
// leave it. Pebble's Lock takes a lock that it already holds; this hangs if a clone
// waits for that lock in between. So memory has a lock of its own around it.
type memory struct {
	vfs.FS
	files   *vfs.MemFS
	locking sync.RWMutex // held for reading while Lock runs, for writing while a clone is made
}

func newMemory() *memory { return memoryOf(vfs.NewCrashableMem()) }

func memoryOf(files *vfs.MemFS) *memory {
	return &memory{FS: files, files: files}
}

func (m *memory) Lock(name string) (io.Closer, error) {
	m.locking.RLock()
	defer m.locking.RUnlock()
	return m.FS.Lock(name)
}

// crash returns what a crash would leave now.
func (m *memory) crash(op *program.Op) *memory {
	m.locking.Lock()
	defer m.locking.Unlock()
	return memoryOf(m.files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: op.Percent,
		RNG: program.NewRand(op.Seed)}))
}
