package backup

import (
	"errors"
	"fmt"
	"strings"
)

// Errors to test for with errors.Is. Many come wrapped with the operation that failed.
var (
	// there is nothing yet, or something else
	ErrNotRepository = errors.New("fddhdb: not a repository of backups")
	// no backup has that id, or is that old
	ErrNotFound = errors.New("fddhdb: no such backup")
	// there are objects of backups, but no manifest
	ErrNoBackup = errors.New("fddhdb: no backup in the repository")
	// bytes that no version of fddhdb stores, or missing bytes
	ErrDamaged = errors.New("fddhdb: damaged backup")
	// a repository or a backup written by a newer fddhdb
	ErrVersion = errors.New("fddhdb: unsupported version")
	// the caller can correct it; nothing was changed
	ErrInvalid = errors.New("fddhdb: invalid argument of a backup")
)

// errNoStore is the error of a function whose store is nil.
var errNoStore = fmt.Errorf("%w: the store is nil: use one that Folder, or s3.Open, returns without an error",
	ErrInvalid)

// damaged returns an error that wraps ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// annotate adds the operation to an error, unless the error names one already.
func annotate(err error, format string, args ...any) error {
	if err == nil || strings.HasPrefix(err.Error(), "fddhdb: ") {
		return err
	}
	return fmt.Errorf("fddhdb: %s: %w", fmt.Sprintf(format, args...), err)
}
