//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// taken returns how many bytes a file or folder itself takes on disk, and, if several says
// that it may be met under several names, what tells it from others. In a file system in
// memory it is the size.
func taken(info fs.FileInfo) (bytes int64, id fileID, several bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return plainSize(info), fileID{}, false
	}
	const block = 512 // whatever the file system
	return st.Blocks * block, fileID{uint64(st.Dev), uint64(st.Ino)}, info.IsDir() || st.Nlink > 1
}
