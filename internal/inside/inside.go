// Package inside finds the database whose folder a path lies in. What is written there is
// not safe: opening a database empties some of the folders in it.
package inside

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// What package db calls the file that makes a folder a database, and the folder beside it.
const (
	markerName = "FDDHDB"
	storeName  = "store"
)

// Database returns the folder of the database that a path is, or lies in; "" if there is
// none. Neither the path nor the folders above it need to be there. Links are followed as
// far as the path exists. It costs reading one small file for each folder above.
func Database(path string) string {
	real, err := Real(path)
	if err != nil {
		return "" // nothing can be written there either
	}
	return Around(real, marked)
}

// Around returns the nearest folder for which isDatabase is true, of a path itself and the
// folders above it; "" if there is none.
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

// Real returns a path without links: it resolves as much of the path as exists.
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

// marked reports whether a folder has the marker of a database, or a damaged one beside a
// store. A file of that name alone is none: where case does not matter, the command itself
// may have it.
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
