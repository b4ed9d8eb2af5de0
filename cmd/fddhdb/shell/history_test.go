package shell

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peterh/liner"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "history")
	t.Setenv("FDDHDB_HISTORY", path)
	s := &Shell{out: term.NewPrinter(io.Discard, io.Discard)}
	if lines := s.readHistory(); lines != nil {
		t.Errorf("from no file: %q", lines)
	}
	var text strings.Builder
	for i := range 2*liner.HistoryLimit + 10 {
		fmt.Fprintf(&text, "count %d\n", i)
	}
	clitest.Check(t, appendHistory(path, []byte(text.String())))
	clitest.Check(t, appendHistory(path, []byte("bad \xff line\n\nlast\n")))
	for range 2 { // the second time from the file that was cut
		lines := s.readHistory()
		if len(lines) != liner.HistoryLimit || lines[len(lines)-1] != "last" ||
			lines[len(lines)-2] != "count 2009" {
			t.Fatalf("%d lines, the last %q", len(lines), lines[max(0, len(lines)-2):])
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
	t.Setenv("FDDHDB_HISTORY", "")
	if got := s.historyPath(); got != "" {
		t.Errorf("an empty name is for none: %q", got)
	}
	os.Unsetenv("FDDHDB_HISTORY") // restored at the end of the test
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	if got, want := s.historyPath(), filepath.Join(dir, "fddhdb", "history"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	if got := s.historyPath(); got != "" && !filepath.IsAbs(got) {
		t.Errorf("a relative folder: %s", got)
	}
}

// A statement of several lines is one entry, and means the same when it is recalled.
func TestHistoryEntries(t *testing.T) {
	for statement, want := range map[string]string{
		"scan \\\n--limit 1":            "scan --limit 1",
		"scan --where \"label =\n'x'\"": "scan --where \"label =␤'x'\"",
		"count \xff":                    "count \uFFFD",
	} {
		if got := historyEntry(statement); got != want {
			t.Errorf("%q: %q, want %q", statement, got, want)
		}
	}
	line := "put a --field 'x=1\n\n2'"
	if got := recalled(historyEntry(line)); got != line {
		t.Errorf("%q is recalled as %q", line, got)
	}
}
