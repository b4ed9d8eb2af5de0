package fault

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model"
)

// Errors to test for with errors.Is. Many come wrapped with what was being done.
var (
	ErrNotFound    = errors.New("fddhdb: not found")                 // no such item, space or collection
	ErrExists      = errors.New("fddhdb: exists already")            // the collection, modality or field to add, or the folder of a checkpoint
	ErrNotDatabase = errors.New("fddhdb: not a database")            // the folder is missing or holds something else
	ErrClosed      = errors.New("fddhdb: database is closed")        // Close was called
	ErrLocked      = errors.New("fddhdb: database is in use")        // by another process, or opened twice in this one
	ErrReadOnly    = errors.New("fddhdb: read-only")                 // a write to a snapshot, an index-only collection, or with Options.ReadOnly
	ErrNoModel     = errors.New("fddhdb: collection is not trained") // codes are needed and there are none yet
	ErrCorrupt     = errors.New("fddhdb: corruption found")          // stored bytes that no version of fddhdb writes
	ErrStaged      = errors.New("fddhdb: staged items are damaged")  // what an import has staged; an ErrCorrupt too, though nothing that is stored is damaged
	ErrFormat      = errors.New("fddhdb: unsupported format")        // written by a newer version
	ErrInvalid     = errors.New("fddhdb: invalid argument")          // the caller can mend it; nothing was changed
	ErrFull        = errors.New("fddhdb: number space used up")      // 2^32-1 rows, codes, spaces, labels or collections
	ErrConflict    = errors.New("fddhdb: conflict")                  // an item is not what a batch expects
	ErrBusy        = errors.New("fddhdb: busy")                      // a training, or the building of a space, is going on
	ErrFailed      = errors.New("fddhdb: database has failed")       // a write to disk failed; reopen to recover
	ErrDiskFull    = errors.New("fddhdb: disk is full")              // nothing was changed; writes go on when there is room
)

// Invalid returns an error that wraps ErrInvalid.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// A DimensionError is about a vector of the wrong length. It is an ErrInvalid.
type DimensionError struct {
	Modality  string
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("%v: modality %q has %d dimensions, the vector has %d", ErrInvalid, e.Modality, e.Want, e.Got)
}

// Is makes a DimensionError an ErrInvalid.
func (e *DimensionError) Is(target error) bool { return target == ErrInvalid }

// A FormatError is about a database, or something in it, of a format that this version of
// fddhdb does not read. It is an ErrFormat.
type FormatError struct {
	Dir              string // of the database; "" where What says what it is about
	What             string // the record, in words; "" for the database as a whole
	Found, Supported int    // Supported is the newest format that is read
}

func (e *FormatError) Error() string {
	var parts []string
	for _, part := range []string{e.Dir, e.What} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("%v: %s has format %d, this version of fddhdb reads up to %d: use a newer one",
		ErrFormat, strings.Join(parts, ": "), e.Found, e.Supported)
}

// Is makes a FormatError an ErrFormat.
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// A CorruptionError names the record that is damaged. It is an ErrCorrupt.
type CorruptionError struct {
	What string // the record, in words
	Err  error
}

func (e *CorruptionError) Error() string {
	return strings.ReplaceAll(fmt.Sprintf("%v: %s: %v", ErrCorrupt, e.What, e.Err), detailCarrier, "")
}

// detailCarrier is what Pebble ends the texts of its errors about damage with.
const detailCarrier = "\n<corruption detail carrier>"

// Is makes a CorruptionError an ErrCorrupt.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns what the decoder said.
func (e *CorruptionError) Unwrap() error { return e.Err }

// Annotate says what was being done when an error came up, unless it is one of
// ours, which say that themselves. What is no file where one belongs is damage.
func Annotate(err error, format string, args ...any) error {
	if err == nil || strings.HasPrefix(err.Error(), "fddhdb: ") {
		return err
	}
	if odd := (*KindError)(nil); errors.As(err, &odd) {
		return Corrupt(err, format, args...)
	}
	return fmt.Errorf("fddhdb: %s: %w", fmt.Sprintf(format, args...), err)
}

// ReadError is about a record that could not be read: damage where Pebble or the
// merger says so, or where a record is missing that must be there; else the disk.
func ReadError(err error, format string, args ...any) error {
	var known *CorruptionError
	if err == nil || errors.As(err, &known) {
		return err
	}
	if errors.Is(err, ErrMissing) || errors.Is(err, codec.ErrCorrupt) || pebble.IsCorruptionError(err) {
		return Corrupt(err, format, args...)
	}
	return Annotate(err, "read "+format, args...)
}

// Corrupt is about a record that is damaged, or that a newer version has written.
func Corrupt(err error, format string, args ...any) error {
	if newer := newerRecord(err); newer != nil {
		newer.What = fmt.Sprintf(format, args...)
		return newer
	}
	return &CorruptionError{What: fmt.Sprintf(format, args...), Err: err}
}

// NotFound returns an error that wraps ErrNotFound.
func NotFound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
}

// ErrMissing is pebble.ErrNotFound under a name that cannot be mixed up.
var ErrMissing = pebble.ErrNotFound

// newerRecord returns what to say of a record whose version is not known, as it is newer;
// nil where an error is about something else.
func newerRecord(err error) *FormatError {
	var record *codec.VersionError
	var frame *model.FormatError
	switch {
	case errors.As(err, &record):
		return &FormatError{Found: record.Found, Supported: record.Newest}
	case errors.As(err, &frame):
		return &FormatError{Found: frame.Version, Supported: frame.Newest}
	}
	return nil
}

// OfItem says which item an error is about.
func OfItem(key string, err error) error {
	if key == "" {
		return err
	}
	return &ItemError{Key: key, Err: err}
}

// An ItemError names the item that an error is about.
type ItemError struct {
	Key string
	Err error
}

func (e *ItemError) Error() string { return e.Err.Error() + " (item " + e.Key + ")" }

// Unwrap returns the error itself.
func (e *ItemError) Unwrap() error { return e.Err }

// Problem returns what is wrong by an error, which a finding is known to be.
func Problem(err error) string {
	return plainProblem.Replace(err.Error())
}

var plainProblem = strings.NewReplacer(
	ErrCorrupt.Error()+": ", "", ErrInvalid.Error()+": ", "", codec.ErrCorrupt.Error()+": ", "",
	ErrMissing.Error(), "missing", detailCarrier, "", // of the storage engine
	"fddhdb: ", "", // which whoever tells of the finding begins with
)
