package store

import (
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A fileID tells files of a machine apart, whatever their names are: device and inode number.
type fileID struct{ device, number uint64 }

// DiskBytes returns what a file takes on disk, or a folder with all that is in it, as du
// counts: the blocks that are allocated, those of a file with several names once. Links are
// followed. What cannot be looked at, because it has just gone, or belongs to others, counts
// for nothing.
func DiskBytes(fsys vfs.FS, path string) int64 { return diskBytesOnce(fsys, path, map[fileID]bool{}) }

// diskBytesOnce is DiskBytes without the files that have been counted, which seen has.
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

// plainSize returns what a file takes where the file system tells of no blocks: its length,
// and nothing for a folder.
func plainSize(info fs.FileInfo) int64 {
	if info.IsDir() {
		return 0
	}
	return info.Size()
}
