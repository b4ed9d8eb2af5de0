package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/peterh/liner"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// runScript runs a script in the shell on a database.
func runScript(t *testing.T, ctx context.Context, dir, script string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(ctx, []string{dir}, &env{Printer: term.NewPrinter(&out, &errs), stdin: strings.NewReader(script)})
	return code, out.String(), errs.String()
}

func TestScriptInterrupted(t *testing.T) {
	f := newFixture(t, 20, false)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	code, stdout, stderr := runScript(t, ctx, f.db, "\ncount\ncount\n")
	if code != exit.Failed || stdout != "" || stderr != "fddhdb: line 1: interrupted\n" {
		t.Errorf("exit code %d, %q, %q", code, stdout, stderr)
	}
}

// A script that does not go on does not keep the shell, which closes its database.
func TestScriptThatWaits(t *testing.T) {
	f := newFixture(t, 4, false)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	defer w.Close()
	go func() {
		io.WriteString(w, "count\n")
		cancel()
	}()
	var errs bytes.Buffer
	if code := run(ctx, []string{f.db}, &env{Printer: term.NewPrinter(io.Discard, &errs), stdin: r}); code != exit.Failed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit code %d, %q", code, &errs)
	}
	must(t, "put", f.db, "x") // nobody has it open
}

// A database that was closed for a verb and is not there any more is missed by the next
// verb, and found again when it is back.
func TestSessionIsOpenedAgain(t *testing.T) {
	f := newFixture(t, 20, false)
	e := newTestEnv()
	if err := e.openSession(f.db, false); err != nil {
		t.Fatal(err)
	}
	defer e.closeSession()
	s := newShell(e, &shellOptions{mode: term.ModeTable})
	away := f.path("away")
	err := e.whileClosed(f.db, func() error { return os.Rename(f.db, away) })
	if err == nil {
		t.Error("the database is gone, and nobody says so")
	}
	if err := s.run(context.Background(), "count"); exit.Code(err) != exit.Usage {
		t.Errorf("count without a database: %v", err)
	}
	if err := os.Rename(away, f.db); err != nil {
		t.Fatal(err)
	}
	if err := s.run(context.Background(), "count"); err != nil {
		t.Error(err)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "history")
	t.Setenv("FDDHDB_HISTORY", path)
	s := &shell{env: newTestEnv()}
	if lines := s.readHistory(); lines != nil {
		t.Errorf("from no file: %q", lines)
	}
	var text strings.Builder
	for i := range 2*liner.HistoryLimit + 10 {
		fmt.Fprintf(&text, "count %d\n", i)
	}
	if err := appendHistory(path, []byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if err := appendHistory(path, []byte("bad \xff line\n\nlast\n")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time from the file that was cut
		lines := s.readHistory()
		if len(lines) != liner.HistoryLimit || lines[len(lines)-1] != "last" || lines[len(lines)-2] != "count 2009" {
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
	os.Unsetenv("FDDHDB_HISTORY") // it comes back with the end of the test
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

// What fills the terminal is counted as it is shown.
func TestPagerCounts(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "a\n": 1, "a\nb\n": 2, "1234567890": 0, "1234567890\n": 1, "12345678901\n": 2, "üüüüüüüüüü\n": 1} {
		p := &pager{columns: 10}
		p.count([]byte(text))
		if p.lines != want {
			t.Errorf("%q: %d lines, want %d", text, p.lines, want)
		}
	}
}
