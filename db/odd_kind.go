package db

import (
	"fmt"
	"io/fs"

	"github.com/fddhdb/fddhdb/codec"
)

// A kindError is about something that is no file where one belongs, or no folder. It is
// damage, a codec.ErrCorrupt.
type kindError struct {
	path   string
	found  fs.FileMode // the type
	folder bool        // belongs there
}

func (e *kindError) Error() string {
	want := "a file"
	if e.folder {
		want = "a folder"
	}
	return fmt.Sprintf("%s is %s, and not %s: move it away", e.path, kindName(e.found), want)
}

// Is makes a kindError damage.
func (e *kindError) Is(target error) bool { return target == codec.ErrCorrupt }

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
