package fault

import (
	"fmt"
	"io/fs"

	"github.com/fddhdb/fddhdb/codec"
)

// A KindError is about something that is no file where one belongs, or no folder. It is
// damage, a codec.ErrCorrupt.
type KindError struct {
	Path   string
	Found  fs.FileMode // the type
	Folder bool        // belongs there
}

func (e *KindError) Error() string {
	want := "a file"
	if e.Folder {
		want = "a folder"
	}
	return fmt.Sprintf("%s is %s, and not %s: move it away", e.Path, kindName(e.Found), want)
}

// Is makes a KindError damage.
func (e *KindError) Is(target error) bool { return target == codec.ErrCorrupt }

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
