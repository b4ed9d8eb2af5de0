package db

import (
	"io/fs"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// diskFigure is what Stats says of the disk, so that it need not look at each file each time.
// The zero value knows nothing. Safe for concurrent use.
type diskFigure struct {
	mu       sync.Mutex
	at       time.Time
	sequence uint64 // of the last commit when it looked
	changes  uint64 // of the store and of imports, likewise
	bytes    int64
}

// diskEvery is how long a figure holds where nothing tells of a change: an import that goes on
// stages without a word.
const diskEvery = time.Second

// diskNow returns what the folder of the database takes on disk.
func (d *DB) diskNow(v *view) int64 {
	f := &d.disk
	f.mu.Lock()
	defer f.mu.Unlock()
	if changes := d.engine.log.work.changes.Load() + d.imports.changed.Load(); f.sequence != v.sequence || f.changes != changes || time.Since(f.at) >= diskEvery {
		f.sequence, f.changes, f.at = v.sequence, changes, time.Now()
		f.bytes = diskBytes(d.opts.FS, d.dir, map[fileID]bool{})
	}
	return f.bytes
}

// A fileID tells files of a machine apart.
type fileID struct{ device, number uint64 }

// diskBytes returns what a file takes on disk, or a folder with all that is in it, as du
// counts: the blocks that are allocated, those of a file with several names once. Links are
// followed. What cannot be looked at, because it has just gone, or belongs to others, counts
// for nothing. seen has the files that have been counted.
func diskBytes(fsys vfs.FS, path string, seen map[fileID]bool) int64 {
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
		bytes += diskBytes(fsys, fsys.PathJoin(path, name), seen)
	}
	return bytes
}

// plainSize is taken where no blocks are told of.
func plainSize(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}
