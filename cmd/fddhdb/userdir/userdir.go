// Package userdir says where the program keeps files of a user that belong to no database: the
// history of the shell, and the encoders that the user trusts. It imports nothing of this module.
package userdir

import (
	"os"
	"path/filepath"
	"runtime"
)

// State returns the folder, which may be missing: fddhdb in the system's folder for the state of
// programs of the user. That is the one of the XDG base directory specification, or the one that
// Windows and macOS have for all that a program keeps. If there is none, it is an error.
func State() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	switch {
	case filepath.IsAbs(dir):
	case runtime.GOOS == "windows" || runtime.GOOS == "darwin":
		config, err := os.UserConfigDir()
		if err != nil {
			return "", err
		}
		dir = config
	default:
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "fddhdb"), nil
}
