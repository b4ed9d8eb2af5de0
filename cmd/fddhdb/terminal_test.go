//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/clitest"
)

// A screen is a terminal with a shell in it.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	mu   sync.Mutex
	more *sync.Cond
	text []byte
	end  bool
	seen int // end of the last expected text
}

// openScreen runs fddhdb in a terminal.
func openScreen(t *testing.T, env []string, args ...string) *screen {
	t.Helper()
	return openTerminal(t, env, append([]string{"fddhdb"}, args...)...)
}

// openTerminal runs a program in a terminal.
func openTerminal(t *testing.T, env []string, program ...string) *screen {
	t.Helper()
	s := &screen{t: t, cmd: exec.Command(program[0], program[1:]...)}
	s.more = sync.NewCond(&s.mu)
	s.cmd.Env = append(os.Environ(), append([]string{"TERM=xterm", "NO_COLOR="}, env...)...)
	var err error
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
		t.Fatal(err)
	}
	go func() {
		buf := make([]byte, 4096)
		for {
			n, err := s.tty.Read(buf)
			s.mu.Lock()
			s.text = append(s.text, buf[:n]...)
			s.end = err != nil
			s.more.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.tty.Close()
	})
	return s
}

// sends types text, and waits until the terminal has shown the expected texts.
func (s *screen) sends(text string, expected ...string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
	s.shows(expected...)
}

// shows waits for texts, in this order.
func (s *screen) shows(expected ...string) {
	s.t.Helper()
	late := false
	timer := time.AfterFunc(time.Minute, func() {
		s.mu.Lock()
		late = true
		s.more.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, want := range expected {
		for {
			if i := bytes.Index(s.text[s.seen:], []byte(want)); i >= 0 {
				s.seen += i + len(want)
				break
			}
			if s.end || late {
				s.t.Fatalf("%q is not shown after %q", want, s.text[s.seen:])
			}
			s.more.Wait()
		}
	}
}

// leaves waits for the exit code.
func (s *screen) leaves(code int) {
	s.t.Helper()
	_ = s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("exit code %d, want %d: %q", got, code, s.all())
	}
}

// all returns what has been shown.
func (s *screen) all() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.text)
}

// whole returns what has been shown, once nobody shows more.
func (s *screen) whole() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.end {
		s.more.Wait()
	}
	return string(s.text)
}

const (
	enter = "\r"
	tab   = "\t"
	ctrlA = "\x01"
	ctrlC = "\x03"
	ctrlD = "\x04"
	ctrlK = "\x0b"
	ctrlP = "\x10" // the line before; the editor recognises an arrow key only if its bytes arrive together
)

func makeDatabase(t *testing.T, dir string, lines ...string) string {
	t.Helper()
	path := filepath.Join(dir, "a.db")
	for _, args := range [][]string{
		{"init", path, "--modality", "image:2", "--modality", "text:2"},
		{path, "-c", strings.Join(lines, "\n")},
	} {
		if out, err := exec.Command("fddhdb", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	return path
}

// TestTerminal drives the shell as a user at a terminal does.
func TestTerminal(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes and their terminals")
	}
	dir := t.TempDir()
	var lines []string
	for i := range 30 {
		x := []string{"0,1", "1,0"}[i%2]
		lines = append(lines, fmt.Sprintf("put item%02d --vector image=%s --vector text=%[2]s --labels %s", i,
			x, []string{"cat", "dog"}[i%2]))
	}
	lines = append(lines, "init --collection hashes --codes 8",
		"train --bits 8 --features image=raw --features text=raw --map image=linear --map text=linear --gamma image=1 --gamma text=1 --fusion sum --start 1")
	path := makeDatabase(t, dir, lines...)
	history := filepath.Join(dir, "state", "fddhdb", "history")
	env := []string{"XDG_STATE_HOME=" + filepath.Join(dir, "state")}
	clitest.Check(t, os.Unsetenv("FDDHDB_HISTORY"))

	s := openScreen(t, env, path)
	s.shows("a.db> ")
	// Editing and completion.
	s.sends("cou"+tab, "count ")
	s.sends(enter, "\n30\r\n", "a.db> ")
	s.sends("ount"+ctrlA+"c"+enter, "\n30\r\n", "a.db> ")
	s.sends("count;"+enter, "\n30\r\n", "a.db> ")
	s.sends("get item29"+tab+enter, "dog", "a.db> ")
	s.sends("search --fr"+tab+"te"+tab+"--to i"+tab, "--from text --to image ")
	s.sends("--key item00 -k 1"+enter, "rank", "item00", "a.db> ")
	s.sends(".use ha"+tab+enter, "a.db/hashes> ")
	s.sends(".use"+enter, "a.db> ")
	s.sends(".tim"+tab+tab+tab, "off", "on")
	// Ctrl-C drops the line; a line typed on two is one.
	s.sends(ctrlC, "^C", "a.db> ")
	s.sends("count \\"+enter, "...> ")
	s.sends("--where \"label = 'dog'"+enter, "...> ")
	s.sends("\""+enter, "\n15\r\n", "a.db> ")
	s.sends(ctrlP, "label = 'dog'␤\"") // it comes back as one
	s.sends(enter, "\n15\r\n", "a.db> ")
	s.sends("count 'x"+enter, "...> ")
	s.sends("yz", "yz") // the editor has the terminal; earlier, Ctrl-C would be a signal
	s.sends(ctrlC, "a.db> ")
	s.sends("count 'x"+enter, "...> ")
	s.sends(ctrlD, "a.db> ")
	// An error does not end the shell.
	s.sends("cuont"+enter, "fddhdb:", "did you mean count?", "a.db> ")
	// Ctrl-C ends the running verb, not the shell.
	s.sends("explore"+enter, "http://", "Ctrl-C ends it.")
	s.sends(ctrlC, "a.db> ")
	s.sends("count"+enter, "\n30\r\n", "a.db> ")
	// A line longer than the terminal, whose size changes meanwhile.
	s.sends("count --where \"label = 'cat' OR label = 'dog' OR label", "OR label")
	clitest.Check(t, pty.Setsize(s.tty, &pty.Winsize{Rows: 24, Cols: 40}))
	s.sends(" = 'x'\""+enter, "\n30\r\n", "a.db> ")
	s.sends(ctrlD)
	s.leaves(0)

	// The next shell has the lines of this one, and nobody else may read them.
	info, err := os.Stat(history)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the history: %v, %v", info, err)
	}
	s = openScreen(t, env, path)
	s.shows("a.db> ")
	s.sends(ctrlP+enter, "OR label = 'x'", "\n30\r\n", "a.db> ")
	s.sends("\x12cuo", "cuont") // Ctrl-R
	s.sends(ctrlC, "a.db> ")
	s.sends(" count"+enter, "\n30\r\n", "a.db> ") // is not remembered
	s.sends(".quit" + enter)
	s.leaves(0)
	text := clitest.Must(os.ReadFile(history))(t)
	if kept := strings.Split(strings.TrimSpace(string(text)), "\n"); kept[0] != "count " ||
		kept[len(kept)-1] != ".quit" || strings.Contains(string(text), "\n count") {
		t.Errorf("the history is %q", kept)
	}
}

// TestTerminalObeysNothing: whatever a database, a file or an encoder has, a terminal shows and does not
// obey, in all modes.
func TestTerminalObeysNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes and their terminals")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "a.db")
	const hostile = "\x1b]0;title\x07\r\u009b2J\u202eend"
	in := func(stdin string, args ...string) {
		t.Helper()
		cmd := exec.Command("fddhdb", args...)
		cmd.Stdin = strings.NewReader(stdin)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%q: %s", args, out)
		}
	}
	in("", "init", path, "--modality", "image:5", "--field", "note:string:index")
	const key = "\x1b\u009b\u202ekey"
	item, err := json.Marshal(map[string]any{"key": key, "labels": []string{key + "\nline"},
		"fields":  map[string]string{"note": key + "\nline"},
		"vectors": map[string]any{"image": []int{1, 2, 3, 4, 5}}})
	clitest.Check(t, err)
	in(string(item), "import", path, "--items", "-")
	in("", "encoder", path, "--set", "image=letters '"+hostile+"'")
	names := filepath.Join(dir, hostile)
	clitest.Check(t, os.WriteFile(names, nil, 0o600))
	for _, c := range []struct {
		code int
		args []string
	}{
		{0, []string{"scan", path}}, {0, []string{"get", path, key}},
		{0, []string{"search", path, "--from", "image", "--key", key}},
		{0, []string{"search", path, "--text", "like " + hostile}},
		{0, []string{"facets", path, "--by", "note"}},
		{0, []string{"encoder", path}}, {1, []string{"search", path, "--text", "obey"}},
		{1, []string{"get", path, hostile}},
		{2, []string{"count", path, "--where", hostile}},
		{2, []string{"count", path, "--collection", hostile}}, {2, []string{hostile}},
		{2, []string{"scan", path, "--" + hostile}},
		{0, []string{"verify", path}}, {0, []string{"stats", path}},
		{1, []string{"search", path, "--vectors", names}},
		{0, []string{"export", path, "--keys", "-"}}, {0, []string{"export", path, "--items", "-"}},
		{0, []string{path, "-c", "scan --mode csv", "-c", ".schema"}},
		{1, []string{path, "-c", "get '" + hostile + "'"}},
	} {
		modes := []string{""}
		if c.code == 0 && len(c.args) > 2 && c.args[0] != "export" && c.args[0] != path {
			modes = []string{"table", "csv", "json", "jsonl"}
		}
		for _, mode := range modes {
			args := c.args
			if mode != "" {
				args = append(args[:len(args):len(args)], "--mode", mode)
			}
			s := openTerminal(t, []string{"NO_COLOR=1", "FDDHDB_HISTORY="},
				append([]string{"fddhdb"}, args...)...)
			s.leaves(c.code)
			all := s.whole()
			for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\nline"} {
				if strings.Contains(all, bad) {
					t.Errorf("%q: the terminal gets %q: %q", args, bad, all)
				}
			}
		}
	}
}

// TestTerminalKinds: terminals that cannot edit, or that are closed.
func TestTerminalKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes and their terminals")
	}
	dir := t.TempDir()
	var lines []string
	for i := range 30 {
		lines = append(lines, fmt.Sprintf("put k%02d --labels a", i))
	}
	path := makeDatabase(t, dir, lines...)

	t.Run("colours", func(t *testing.T) {
		t.Parallel()
		s := openScreen(t, []string{"FDDHDB_HISTORY="}, "--readonly", path)
		s.shows("a.db> ")
		s.sends("collections"+enter, "\x1b[1mcollection", "a.db> ")
		s.sends("nosuch"+enter, "\x1b[31mfddhdb:", "a.db> ")
		clitest.Check(t, s.cmd.Process.Signal(syscall.SIGTERM))
		s.shows("ended by a signal")
		s.leaves(1)
	})
	t.Run("tab", func(t *testing.T) {
		t.Parallel()
		s := openScreen(t, []string{"FDDHDB_HISTORY="}, "--readonly", path)
		s.shows("a.db> ")
		s.sends("count --where \"label = 'a, b'\""+tab+enter, "\n0\r\n", "a.db> ")
		s.sends("scan --li"+tab+"1"+enter, "k00", "a.db> ")
		s.sends(ctrlD)
		s.leaves(0)
	})
	t.Run("dumb", func(t *testing.T) {
		t.Parallel()
		s := openScreen(t, []string{"FDDHDB_HISTORY=", "TERM=dumb"}, "--readonly", path)
		s.shows("a.db> ")
		s.sends("count\n", "\n30\r\n", "a.db> ")
		s.sends("nosuch "+ctrlC, "a.db> ")
		s.sends("count\n", "\n30\r\n", "a.db> ")
		s.sends(ctrlD)
		s.leaves(0)
		if all := s.all(); strings.Contains(all, "\x1b[") {
			t.Errorf("escapes on a dumb terminal: %q", all)
		}
	})
}

// TestSecondSignal: a verb that waits for a pipe ends at once after a second signal.
func TestSecondSignal(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for processes")
	}
	dir := t.TempDir()
	path := makeDatabase(t, dir)
	pipe := filepath.Join(dir, "pipe")
	clitest.Check(t, syscall.Mkfifo(pipe, 0o600))
	cmd := exec.Command("fddhdb", path, "-c", ".read "+pipe)
	clitest.Check(t, cmd.Start())
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // when the verb reads it
	clitest.Check(t, err)
	defer w.Close()
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for sent := false; ; sent = true {
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); !sent || code != 128+int(syscall.SIGTERM) {
				t.Errorf("exit code %d", code)
			}
			return
		default: // a signal that is not taken yet and the next one are one
			_ = cmd.Process.Signal(syscall.SIGTERM)
		}
	}
}
