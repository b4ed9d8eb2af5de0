package beam

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// What a process needs on its own disk, copies of files, restored backups and databases that it loads, is in
// one folder with its number in the name. Runners kill workers, so that these remove nothing: the next
// process on the machine does.

// localPrefix begins the name of the folder of a process.
const localPrefix = "fddhdb-beam-"

var localFolder struct {
	sync.Mutex
	path string // "" until it is needed
}

// localDir returns the folder of this process.
func localDir() (string, error) {
	localFolder.Lock()
	defer localFolder.Unlock()
	if localFolder.path != "" {
		return localFolder.path, nil
	}
	sweepLocal()
	path, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", localPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	localFolder.path = path
	return path, nil
}

// newLocalDir makes a folder in the folder of this process; see os.MkdirTemp for the pattern.
func newLocalDir(pattern string) (string, error) {
	dir, err := localDir()
	if err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, pattern)
}

// sweepLocal removes the folders of processes that have ended.
func sweepLocal() {
	all, _ := filepath.Glob(filepath.Join(os.TempDir(), localPrefix+"*"))
	for _, path := range all {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), localPrefix), "-")
		if pid, err := strconv.Atoi(number); err == nil && ended(pid) {
			_ = os.RemoveAll(path) // another process may be at it
		}
	}
}

// removeLocal removes the folder of this process.
func removeLocal() error {
	localFolder.Lock()
	defer localFolder.Unlock()
	path := localFolder.path
	localFolder.path = ""
	if path == "" {
		return nil
	}
	return os.RemoveAll(path)
}
