// Package userdir says where the program keeps files of a user that belong to no database: the
// history of the shell, and the encoders that the user trusts. It imports nothing of this module.
package userdir

import (
	"os"
	"path/filepath"
)

// State returns the folder, which may be missing: fddhdb in $XDG_STATE_HOME, or else in the system's
// folder for settings of the user. If there is neither, it is an error.
func State() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if dir, err = os.UserConfigDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "fddhdb"), nil
}
