package backup

import (
	"errors"
	"fmt"
	"strings"
)

// Errors to test for with errors.Is. Many come wrapped with what was being done.
var (
	ErrNotRepository = errors.New("fddhdb: not a repository of backups")  // nothing is there yet, or something else
	ErrNotFound      = errors.New("fddhdb: no such backup")               // none has that id, or is that old
	ErrNoBackup      = errors.New("fddhdb: no backup in the repository")  // though objects of some are there
	ErrDamaged       = errors.New("fddhdb: damaged backup")               // bytes that no version of fddhdb stores, or bytes that are gone
	ErrVersion       = errors.New("fddhdb: unsupported version")          // of a repository or a backup: written by a newer fddhdb
	ErrInvalid       = errors.New("fddhdb: invalid argument of a backup") // the caller can mend it; nothing was changed
)

// errNoStore is the error of a verb that is given no store.
var errNoStore = fmt.Errorf("%w: the store is nil: use one that Folder, or s3.Open, returns without an error", ErrInvalid)

// damaged returns an error that wraps ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// annotate says what was being done when an error came up, unless it says so itself.
func annotate(err error, format string, args ...any) error {
	if err == nil || strings.HasPrefix(err.Error(), "fddhdb: ") {
		return err
	}
	return fmt.Errorf("fddhdb: %s: %w", fmt.Sprintf(format, args...), err)
}
