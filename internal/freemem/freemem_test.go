package freemem

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestAvailable(t *testing.T) {
	bytes, known := Available()
	switch runtime.GOOS {
	case "linux", "darwin", "windows":
		if !known || bytes < 1<<20 || bytes > 1<<50 {
			t.Errorf("%d bytes, %v", bytes, known)
		}
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(1 << 20)) // less than the process has
	if limited, known := Available(); !known || limited > 64<<20 {
		t.Errorf("with a limit that is used up: %d bytes, %v", limited, known)
	}
}
