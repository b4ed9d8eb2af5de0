package store

import (
	"io/fs"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fileID identifies a file of a machine under all its names, by device and inode number.
type fileID struct{ device, number uint64 }

// DiskBytes returns the bytes on disk of a file, or of a folder with its content, as du counts them:
// allocated blocks, and a file with several names once. It follows links. It skips files that it cannot stat,
// because they have just gone or for want of permission. It visits every file.
func DiskBytes(fsys vfs.FS, path string) int64 { return diskBytesOnce(fsys, path, map[fileID]bool{}) }

// diskBytesOnce is DiskBytes without the files in seen. It adds files with several names to seen.
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

// A DiskFigure keeps the last result of DiskBytes, so that a figure need not visit every file each time. The
// zero value is empty. Safe for concurrent use.
type DiskFigure struct {
	mu       sync.Mutex // guards the fields below; held while it visits the folder
	at       time.Time
	sequence uint64 // last commit at that time
	changes  uint64 // changes of the store at that time
	bytes    int64
}

// diskEvery is how long a figure is valid without a known change: backups and bulk loads write without
// counting one.
const diskEvery = time.Second

// Now returns the bytes on disk of the folder of a database. sequence is the number of its last commit;
// changes counts other changes of the folder.
func (f *DiskFigure) Now(fsys vfs.FS, dir string, sequence, changes uint64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sequence != sequence || f.changes != changes || time.Since(f.at) >= diskEvery {
		f.sequence, f.changes, f.at = sequence, changes, time.Now()
		f.bytes = DiskBytes(fsys, dir)
	}
	return f.bytes
}

// plainSize returns the size of a file if the file system does not report blocks: its length, and 0 for a
// folder.
func plainSize(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}
