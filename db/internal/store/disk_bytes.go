package store

import (
	"io/fs"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fileID tells files of a machine apart, whatever their names are: device and inode number.
type fileID struct{ device, number uint64 }

// DiskBytes returns how many bytes a file, or a folder with all that is in it, takes on disk,
// as du counts: the blocks that are allocated, and a file with several names once. Links are
// followed. Files that cannot be looked at, because they have just gone or belong to others,
// do not count. It looks at every file.
func DiskBytes(fsys vfs.FS, path string) int64 { return diskBytesOnce(fsys, path, map[fileID]bool{}) }

// diskBytesOnce is DiskBytes without the files in seen, to which it adds those with several
// names.
func diskBytesOnce(fsys vfs.FS, path string, seen map[fileID]bool) int64 {
	info, err := fsys.Stat(path)
	if err != nil {
		return 0
	}
	bytes, id, several := taken(info)
	if several {
		if seen[id] {
			return 0
		}
		seen[id] = true
	}
	if !info.IsDir() {
		return bytes
	}
	names, err := fsys.List(path)
	if err != nil {
		return bytes
	}
	for _, name := range names {
		bytes += diskBytesOnce(fsys, fsys.PathJoin(path, name), seen)
	}
	return bytes
}

// A DiskFigure is what DiskBytes has said last, so that a figure need not look at each file
// each time. The zero value knows nothing. Safe for concurrent use.
type DiskFigure struct {
	mu       sync.Mutex // guards the fields below; held while it looks
	at       time.Time
	sequence uint64 // of the last commit when it looked
	changes  uint64 // of the store, likewise
	bytes    int64
}

// diskEvery is how long a figure holds where nothing tells of a change: a backup or a bulk load
// writes without a word.
const diskEvery = time.Second

// Now returns what the folder of a database takes on disk. sequence is the number of its last
// commit, changes counts what else changes the folder.
func (f *DiskFigure) Now(fsys vfs.FS, dir string, sequence, changes uint64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sequence != sequence || f.changes != changes || time.Since(f.at) >= diskEvery {
		f.sequence, f.changes, f.at = sequence, changes, time.Now()
		f.bytes = DiskBytes(fsys, dir)
	}
	return f.bytes
}

// plainSize returns what a file takes where the file system tells of no blocks: its length,
// and nothing for a folder.
func plainSize(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}
