package fault

import (
	"fmt"
	"io/fs"

	"github.com/fddhdb/fddhdb/codec"
)

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
