package run

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// Unwritable reports whether a folder could not be opened to write because this user may not,
// or nobody can, as its medium is mounted for reading only.
func Unwritable(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}

// OpenError adds advice to the error of a database that cannot be opened.
func OpenError(dir string, err error) error {
	switch {
	case errors.Is(err, db.ErrNotDatabase) && IsEmpty(dir):
		return exit.Wrap(err, "fddhdb init %s --modality NAME:DIM creates one, import --init one of files",
			dir)
	case errors.Is(err, db.ErrNotDatabase) && IsDatabase(dir) && !HasStore(dir):
		return err // it says what is missing
	case errors.Is(err, db.ErrNotDatabase) && HasStore(dir):
		return exit.Wrap(err, "fddhdb repair %s", dir)
	case errors.Is(err, db.ErrNotDatabase):
		return exit.Wrap(err, "give the folder of a database, or a new one to init")
	case errors.Is(err, db.ErrLocked):
		return exit.Wrap(err, "end that process, or wait for it")
	}
	return err
}

// Untrained returns the error of a verb that needs codes in a collection without codes.
func Untrained(c api.Collection) error {
	return fmt.Errorf("%w: collection %q has no codes yet: run fddhdb train", db.ErrNoModel, c.Name())
}

// RightLine turns db.ErrInvalid into a failure with exit code 1: the flags are well-formed, but the stored
// data does not allow the request.
func RightLine(err error) error {
	if errors.Is(err, db.ErrInvalid) {
		return exit.Failedf("%w", err)
	}
	return err
}

// A PartlyError is the error of an import that has stored some of its items.
type PartlyError struct {
	Err error
	In  string // what is stored, and how to go on
}

func (e *PartlyError) Error() string { return e.Err.Error() + "; " + e.In }
func (e *PartlyError) Unwrap() error { return e.Err }
