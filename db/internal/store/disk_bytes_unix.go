//go:build unix

package store

import (
	"io/fs"
	"syscall"
)

// taken returns the bytes on disk of a file or a folder itself. several says that it may have several names;
// id then identifies it. In a file system in memory it is the size.
func taken(info fs.FileInfo) (bytes int64, id fileID, several bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return plainSize(info), fileID{}, false
	}
	const block = 512 // on every file system
	return st.Blocks * block, fileID{uint64(st.Dev), uint64(st.Ino)}, info.IsDir() || st.Nlink > 1
}
