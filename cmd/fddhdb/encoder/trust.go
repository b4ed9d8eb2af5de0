package encoder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/userdir"
)

// A database may come from anybody, with commands in it. So a command of a database is run only where
// the user has set it, or has trusted it: a file in the user's own folder says so, with a line of JSON
// for each command and database. Both count: in another folder a relative path such as encode.py
// is another program.

// trusted is a line of the file.
type trusted struct {
	Database string   `json:"database"` // canonical path of its folder
	Command  []string `json:"command"`
}

// maxTrustBytes bounds the file.
const maxTrustBytes = 16 << 20

// TrustFile returns the path of the file, which may be missing.
func TrustFile() (string, error) {
	dir, err := userdir.State()
	if err != nil {
		return "", fmt.Errorf("no folder for settings of the user: %w: set XDG_STATE_HOME", err)
	}
	return filepath.Join(dir, "trusted-encoders"), nil
}

// Folder returns the canonical path of the folder of a database, which may have to be made yet.
func Folder(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if real, err = filepath.EvalSymlinks(filepath.Dir(dir)); err == nil {
			real = filepath.Join(real, filepath.Base(dir))
		} else if errors.Is(err, fs.ErrNotExist) {
			real, err = dir, nil
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Abs(real)
}

// Trusts reports whether the user has trusted the command in the database in dir. One that is built in runs
// nothing of the database.
func Trusts(dir string, command []string) (bool, error) {
	if len(command) > 0 && isBuiltIn(command[0]) {
		return true, nil
	}
	folder, err := Folder(dir)
	if err != nil {
		return false, err
	}
	path, err := TrustFile()
	if err != nil {
		return false, nil // nothing has been trusted
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || info.Size() > maxTrustBytes:
		return false, fmt.Errorf("%s is no file of trusted encoders: it is not a regular file, or larger than %d MiB: remove it", path, maxTrustBytes>>20)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	for line := range bytes.Lines(text) {
		// A line that cannot be read trusts nothing: it may have been cut by a full disk.
		var t trusted
		if json.Unmarshal(line, &t) == nil && t.Database == folder && slices.Equal(t.Command, command) {
			return true, nil
		}
	}
	return false, nil
}

// Trust notes that the user trusts the command in the database in dir.
func Trust(dir string, command []string) error {
	if is, err := Trusts(dir, command); is || err != nil {
		return err
	}
	folder, err := Folder(dir)
	if err != nil {
		return err
	}
	path, err := TrustFile()
	if err != nil {
		return err
	}
	line, err := json.Marshal(trusted{folder, command})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	// One write, so that processes do not mix their lines; behind an end of a line, as one may be cut.
	_, err = f.Write(append(append([]byte("\n"), line...), '\n'))
	return errors.Join(err, f.Close())
}
