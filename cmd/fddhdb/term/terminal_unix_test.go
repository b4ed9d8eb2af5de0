//go:build linux || darwin

package term

import (
	"os"
	"testing"

	"github.com/creack/pty"
)

// Only terminals that have blocks get them: not a file, another locale or a dumb
// terminal.
func TestShowsBlocks(t *testing.T) {
	leader, tty, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	defer leader.Close()
	defer tty.Close()
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		to              *os.File
		term, all, lang string
		want            bool
	}{
		{tty, "xterm", "", "en_GB.UTF-8", true},
		{tty, "xterm", "C.utf8", "C", true},
		{tty, "xterm", "C", "en_GB.UTF-8", false},
		{tty, "xterm", "", "", false},
		{tty, "dumb", "", "en_GB.UTF-8", false},
		{file, "xterm", "", "en_GB.UTF-8", false},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("LC_ALL", c.all)
		t.Setenv("LC_CTYPE", "")
		t.Setenv("LANG", c.lang)
		if got := showsBlocks(c.to); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
