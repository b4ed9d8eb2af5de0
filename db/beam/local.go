package beam

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// The local files of a process, copies, restored backups and databases that it loads, are in one folder with
// the number of the process in the name. Runners kill workers before they can remove it: the next process on
// the machine does.

// localPrefix begins the name of the folder of a process.
const localPrefix = "fddhdb-beam-"

var localFolder struct {
	sync.Mutex
	path string // "" before its first use
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
