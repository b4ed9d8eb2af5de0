package db

import "github.com/fddhdb/fddhdb/db/fault"

// Errors to test for with errors.Is. Many come wrapped with what was being done.
var (
	ErrNotFound = fault.ErrNotFound // no such item, space or collection
	// the collection, modality or field to add, or the folder of a checkpoint
	ErrExists      = fault.ErrExists
	ErrNotDatabase = fault.ErrNotDatabase // the folder is missing or holds something else
	ErrClosed      = fault.ErrClosed      // Close was called
	ErrLocked      = fault.ErrLocked      // by another process, or opened twice in this one
	// a write to a snapshot, an index-only collection, or with Options.ReadOnly
	ErrReadOnly = fault.ErrReadOnly
	ErrNoModel  = fault.ErrNoModel  // codes are needed and there are none yet
	ErrCorrupt  = fault.ErrCorrupt  // stored bytes that no version of fddhdb writes
	ErrFormat   = fault.ErrFormat   // a database, backup or model of another format
	ErrInvalid  = fault.ErrInvalid  // the caller can mend it; nothing was changed
	ErrFull     = fault.ErrFull     // 2^32-1 rows, codes, spaces, labels or collections
	ErrConflict = fault.ErrConflict // an item is not what a batch expects
	ErrBusy     = fault.ErrBusy     // a training, or the building of a space, is going on
	ErrFailed   = fault.ErrFailed   // a write to disk failed; reopen to recover
	ErrDiskFull = fault.ErrDiskFull // nothing was changed; writes go on when there is room
)

// Errors that say more, for errors.As. Package fault has their fields.
type (
	DimensionError  = fault.DimensionError  // a vector of the wrong length, an ErrInvalid
	ItemError       = fault.ItemError       // which item an error is about
	FormatError     = fault.FormatError     // which formats are read, and which was found: an ErrFormat
	CorruptionError = fault.CorruptionError // which record is damaged, an ErrCorrupt
	WhereError      = fault.WhereError      // where an expression is wrong, an ErrInvalid
	DiskFullError   = fault.DiskFullError   // how much room there is and how much is needed, an ErrDiskFull
)
