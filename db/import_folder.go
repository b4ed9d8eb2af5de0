package db

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/internal/store"
)

// Each staged import is a folder in imports/, with these things in it:
//
//	HEAD          JSON: what it is an import of, see importHeader
//	000001.items  what is staged, see spool
//	COMMIT        from before its commit on: which commit that is, see pledge
//
// A folder whose name ends in ".gone" is being removed.
const (
	importHead   = "HEAD"
	importPledge = "COMMIT"
	importGone   = ".gone"
)

// importVersion is that of the files of a staged import. Those of another version are
// staged anew.
const importVersion = 2

// maxSourceBytes bounds ImportOptions.Source.
const maxSourceBytes = 1 << 20

// An importHeader says what has been staged.
type importHeader struct {
	FDDHDB     string `json:"fddhdb"`
	Version    int    `json:"version"`
	UUID       string `json:"uuid,omitempty"` // of the database
	Collection uint32 `json:"collection"`
	Source     string `json:"source"`
}

// name returns the name of the folder.
func (h *importHeader) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", h.Collection, h.Source))
	return hex.EncodeToString(sum[:12])
}

func readImportHeader(fsys vfs.FS, dir string) (h importHeader, err error) {
	b, err := readSmall(fsys, fsys.PathJoin(dir, importHead), 4*maxSourceBytes)
	if err == nil && (json.Unmarshal(b, &h) != nil || h.FDDHDB != "import") {
		return importHeader{}, nil // of none
	}
	return h, err
}

func (h *importHeader) write(fsys vfs.FS, dir string) error {
	b, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return store.ReplaceFile(fsys, dir, importHead, append(b, '\n'))
}

// readSmall reads a file of at most so many bytes.
func readSmall(fsys vfs.FS, path string, most int64) ([]byte, error) {
	f, err := fsys.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	return b, errors.Join(err, f.Close())
}

// removeFile removes a file durably, if there is one.
func removeFile(fsys vfs.FS, dir, name string) error {
	if err := fsys.Remove(fsys.PathJoin(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return store.SyncDir(fsys, dir)
}

// removeImport removes the folder of a staged import: at once, as far as anybody sees.
func removeImport(fsys vfs.FS, dir string) error {
	gone := dir + importGone
	if _, err := fsys.Stat(gone); err == nil {
		if err := fsys.RemoveAll(gone); err != nil {
			return err
		}
	}
	if err := fsys.Rename(dir, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return errors.Join(store.SyncDir(fsys, fsys.PathDir(dir)), fsys.RemoveAll(gone))
}
