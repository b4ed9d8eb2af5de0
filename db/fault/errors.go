package fault

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// Errors to test for with errors.Is. Many come wrapped with the operation that failed.
var (
	ErrNotFound = errors.New("fddhdb: not found") // no such item, space or collection
	// the collection, modality or field to add, or the folder of a checkpoint
	ErrExists = errors.New("fddhdb: exists already")
	// the folder is missing or holds something else
	ErrNotDatabase = errors.New("fddhdb: not a database")
	ErrClosed      = errors.New("fddhdb: database is closed") // Close was called
	// by another process, or opened twice in this one
	ErrLocked = errors.New("fddhdb: database is in use")
	// a write to a snapshot, an index-only collection, or with Options.ReadOnly
	ErrReadOnly = errors.New("fddhdb: read-only")
	// codes are needed and there are none yet
	ErrNoModel = errors.New("fddhdb: collection is not trained")
	// stored bytes that no version of fddhdb writes
	ErrCorrupt = errors.New("fddhdb: corruption found")
	// a database, backup or model of another format
	ErrFormat = errors.New("fddhdb: unsupported format")
	// the caller can correct it; nothing was changed
	ErrInvalid = errors.New("fddhdb: invalid argument")
	// 2^32-1 rows, codes, spaces, labels or collections
	ErrFull     = errors.New("fddhdb: number space used up")
	ErrConflict = errors.New("fddhdb: conflict") // an item is not as a batch expects it
	// a training, or the building of a space, is running
	ErrBusy = errors.New("fddhdb: busy")
	// a write to disk failed; reopen to recover
	ErrFailed = errors.New("fddhdb: database has failed")
	// nothing was changed; writes go on when there is space
	ErrDiskFull = errors.New("fddhdb: disk is full")
)

// Invalid returns an error that wraps ErrInvalid, and what %w in the format stands for.
func Invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// A DimensionError is about a vector of the wrong length. It is an ErrInvalid.
type DimensionError struct {
	Modality  string // name
	Got, Want int    // numbers of the vector, and of the modality
}

// Error names the modality and both lengths.
func (e *DimensionError) Error() string {
	return fmt.Sprintf("%v: modality %q has %d dimensions, the vector has %d", ErrInvalid, e.Modality, e.Want,
		e.Got)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *DimensionError) Is(target error) bool { return target == ErrInvalid }

// A FormatError is about a database, or a backup of one, in another format than this version of fddhdb reads.
// It is an ErrFormat.
type FormatError struct {
	Where            string // the folder of the database, or which backup
	Found, Supported int    // its format, and the one that this version reads
}

// Error names the folder or backup, and both formats.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%v: %s has format %d, this version of fddhdb reads format %d alone: use the version that has written it",
		ErrFormat, e.Where, e.Found, e.Supported)
}

// Is makes errors.Is(err, ErrFormat) true.
func (e *FormatError) Is(target error) bool { return target == ErrFormat }

// A CorruptionError names a damaged record. It is an ErrCorrupt.
type CorruptionError struct {
	What string // the record in words
	Err  error  // what is wrong with it, mostly an error of its decoder
}

// Error names the record and what is wrong with it, without what Pebble adds for machines.
func (e *CorruptionError) Error() string {
	return strings.ReplaceAll(fmt.Sprintf("%v: %s: %v", ErrCorrupt, e.What, e.Err), detailCarrier, "")
}

// detailCarrier is what Pebble puts at the end of the text of an error about damage. It tells
// a user nothing.
const detailCarrier = "\n<corruption detail carrier>"

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptionError) Is(target error) bool { return target == ErrCorrupt }

// Unwrap returns the error of the decoder.
func (e *CorruptionError) Unwrap() error { return e.Err }

// Annotate adds the operation to an error from below, and the prefix. An error that begins
// with the prefix is worded already and stays as it is, as does nil. A KindError is damage.
func Annotate(err error, format string, args ...any) error {
	if err == nil || strings.HasPrefix(err.Error(), "fddhdb: ") {
		return err
	}
	if odd := (*KindError)(nil); errors.As(err, &odd) {
		return Corrupt(err, format, args...)
	}
	return fmt.Errorf("fddhdb: %s: %w", fmt.Sprintf(format, args...), err)
}

// ReadError returns the error of reading a record, which the format names; nil for nil. It is
// damage if Pebble or the merger says so, or if the record is missing: callers that can do
// without ask for ErrMissing first. Otherwise the disk has failed. A CorruptionError stays as
// it is.
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

// Corrupt returns the error of a record, which the format names, that cannot be decoded. err is not nil.
func Corrupt(err error, format string, args ...any) error {
	return &CorruptionError{What: fmt.Sprintf(format, args...), Err: err}
}

// NotFound returns an error that wraps ErrNotFound.
func NotFound(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrNotFound, fmt.Sprintf(format, args...))
}

// ErrMissing is pebble.ErrNotFound, under a name that cannot be confused with
// ErrNotFound.
var ErrMissing = pebble.ErrNotFound

// OfItem adds the key of an item to an error, which is not nil. An item without a key has the
// error as it is.
func OfItem(key string, err error) error {
	if key == "" {
		return err
	}
	return &ItemError{Key: key, Err: err}
}

// An ItemError names the item of an error, in calls with several items.
type ItemError struct {
	Key string // of the item
	Err error  // the error itself
}

// Error puts the key behind the text of the error, which begins with the prefix.
func (e *ItemError) Error() string { return e.Err.Error() + " (item " + e.Key + ")" }

// Unwrap returns the error without the item.
func (e *ItemError) Unwrap() error { return e.Err }

// Problem returns the text of an error for report.Finding.Problem: without prefixes and the
// texts of sentinels, as the finding itself says that something is damaged.
func Problem(err error) string {
	text := plainProblem.Replace(err.Error())
	for _, w := range engineWords {
		text = w.said.ReplaceAllString(text, w.means)
	}
	return text
}

// engineWords translates what the storage engine says of tables.
var engineWords = []struct {
	said  *regexp.Regexp
	means string
}{
	{regexp.MustCompile(`L\d+: (\d+): file \d+ \(type sstable\) unknown to the objstorage provider: file does not exist`), "table $1.sst is missing"},
	{regexp.MustCompile(`L\d+: (\d+): object size mismatch \(.*?\): (\d+) \(disk\) != (\d+) \(MANIFEST\)`),
		"table $1.sst has $2 bytes, and should have $3"},
	{regexp.MustCompile(`pebble/table: invalid table \d+: \((.*?)\)`), "it is no table: $1"},
	{regexp.MustCompile(`pebble/table: invalid table \d+`), "it is no table"},
}

// plainProblem takes away what Problem leaves out.
var plainProblem = strings.NewReplacer(
	ErrCorrupt.Error()+": ", "", ErrInvalid.Error()+": ", "", codec.ErrCorrupt.Error()+": ", "",
	ErrMissing.Error(), "missing", detailCarrier, "", // from the storage engine
	"fddhdb: ", "", // findings have their own prefix
)

// A WhereError says what is wrong with an expression of Query.Where and its like,
// and where. It is an ErrInvalid.
type WhereError struct {
	Column int    // of the first character in question, from 1; characters, not bytes
	Reason string // what is wrong there
}

// Error names the column and what is wrong there.
func (e *WhereError) Error() string {
	return fmt.Sprintf("%v: where: column %d: %s", ErrInvalid, e.Column, e.Reason)
}

// Is makes errors.Is(err, ErrInvalid) true.
func (e *WhereError) Is(target error) bool { return target == ErrInvalid }

// A KindError is about something other than a file or a folder in the place of one. It
// is damage: a codec.ErrCorrupt.
type KindError struct {
	Path   string
	Found  fs.FileMode // type of what is there; other bits do not count
	Folder bool        // a folder belongs there, not a file
}

// Error says what is there and what belongs there. It has no prefix: Annotate wraps it.
func (e *KindError) Error() string {
	want := "a file"
	if e.Folder {
		want = "a folder"
	}
	return fmt.Sprintf("%s is %s, and not %s: move it away", e.Path, kindName(e.Found), want)
}

// Is makes errors.Is(err, codec.ErrCorrupt) true.
func (e *KindError) Is(target error) bool { return target == codec.ErrCorrupt }

// kindName spells the type of a file for a message.
func kindName(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeDir != 0:
		return "a folder"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&(fs.ModeDevice|fs.ModeCharDevice) != 0:
		return "a device"
	}
	return "a file"
}
