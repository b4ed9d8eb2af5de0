package fault

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A DiskFullError says how much space there is, and how much a write needs. It is an
// ErrDiskFull.
type DiskFullError struct {
	Dir     string // folder of the database; "" if the disk may be another one, which Err then names
	Free    int64  // free bytes; 0 if the file system cannot tell
	Reserve int64  // bytes that are kept free; 0 if the disk itself has refused
	Needed  int64  // approximate bytes; 0 if unknown
	Err     error  // error of the operating system; nil if a write was refused before it
	Stuck   bool   // there is no room to delete anything either, or no open database to delete from
}

// Error says which disk is full, how much space is missing if that is known, and what to do.
func (e *DiskFullError) Error() string {
	advice := "make room on that disk, or delete items or drop a collection"
	if e.Stuck || e.Dir == "" {
		advice = "make room on that disk"
	}
	var text strings.Builder
	text.WriteString(ErrDiskFull.Error())
	if e.Dir != "" {
		text.WriteString(": " + e.Dir)
	}
	if e.Err == nil {
		fmt.Fprintf(&text, ": %s are free, of which %s are kept in reserve, and this takes about %s: %s",
			byteSize(e.Free), byteSize(e.Reserve), byteSize(e.Needed), advice)
		return text.String()
	}
	fmt.Fprintf(&text, ": %s", strings.ReplaceAll(e.Err.Error(), "fddhdb: ", ""))
	if e.Free > 0 {
		fmt.Fprintf(&text, " (%s are free)", byteSize(e.Free))
	}
	return text.String() + ": " + advice
}

// Is makes errors.Is(err, ErrDiskFull) true.
func (e *DiskFullError) Is(target error) bool { return target == ErrDiskFull }

// Unwrap returns the error of the operating system, if there is one.
func (e *DiskFullError) Unwrap() error { return e.Err }

// byteSize spells a number of bytes for a message.
func byteSize(n int64) string {
	x, units := float64(n)/(1<<20), []string{"MiB", "GiB", "TiB"}
	for x >= 1024 && len(units) > 1 {
		x, units = x/1024, units[1:]
	}
	return fmt.Sprintf("%.1f %s", x, units[0])
}

// IsDiskFull reports whether an error of the operating system says that a disk, or a quota, is
// full.
func IsDiskFull(err error) bool {
	return vfs.IsNoSpaceError(err) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// DiskFullAnew reports whether an error says that a disk is full and is not yet a
// DiskFullError.
func DiskFullAnew(err error) bool {
	return IsDiskFull(err) && !errors.Is(err, ErrDiskFull) && !errors.Is(err, ErrFailed)
}

// DiskFullElsewhere returns a DiskFullError for an error that says that a disk is full, of an
// operation that also writes to other disks than that of the database, such as a checkpoint.
// Other errors, and nil, come back as they are.
func DiskFullElsewhere(err error) error {
	if !DiskFullAnew(err) {
		return err
	}
	return &DiskFullError{Err: err}
}

// DiskFullToOpen returns a DiskFullError for an error of opening the database in dir that says
// that a disk is full, and any other error as it is. The advice is to make room, as there is no
// open database to delete from. failure is the first vital failure of the store, nil if there
// is none; it replaces err, which may only follow from it.
func DiskFullToOpen(dir string, err error, failure *error) error {
	if !IsDiskFull(err) || errors.Is(err, ErrDiskFull) {
		return err
	}
	if failure != nil {
		err = *failure
	}
	return &DiskFullError{Dir: dir, Err: err, Stuck: true}
}
