package inside

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// These are the names that package db gives the file that marks a database, and the
// folder beside it.
const (
	markerName = "FDDHDB"
	storeName  = "store"
)

// Database returns the folder of the database that contains path, or is path; "" if
// there is none. Neither the path nor the folders above it need to exist. It follows
// links as far as the path exists. It reads one small file for each folder above.
func Database(path string) string {
	real, err := Real(path)
	if err != nil {
		return "" // nothing can be written there, either
	}
	return Around(real, marked)
}

// Around returns the nearest folder for which isDatabase is true, starting with path
// itself and going up; "" if there is none.
func Around(path string, isDatabase func(dir string) bool) string {
	for dir := path; ; dir = filepath.Dir(dir) {
		if isDatabase(dir) {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

// Real returns path without links. It resolves the part of the path that exists.
func Real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if !errors.Is(err, fs.ErrNotExist) || abs == filepath.Dir(abs) {
		return real, err
	}
	above, err := Real(filepath.Dir(abs))
	return filepath.Join(above, filepath.Base(abs)), err
}

// marked reports whether a folder has the marker of a database, or a damaged marker
// beside a store. A damaged marker alone does not count: on file systems that ignore
// case, the command fddhdb itself may have that name.
func marked(dir string) bool {
	path := filepath.Join(dir, markerName)
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if store, err := os.Stat(filepath.Join(dir, storeName)); err == nil && store.IsDir() {
		return true
	}
	if !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var m struct{ FDDHDB string }
	b, err := io.ReadAll(io.LimitReader(f, 1<<12))
	return err == nil && json.Unmarshal(b, &m) == nil && m.FDDHDB == "database"
}
