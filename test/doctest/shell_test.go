package doctest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
)

// A shell runs the commands of a document in a folder of its own.
type shell struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	folder string
	runs   int
	ended  bool
	code   int // exit code
}

// environment returns the environment of the commands of a document.
func environment(folder, path, programs, log string) []string {
	clone, err := filepath.Abs(root)
	if err != nil {
		panic(err)
	}
	return []string{"PATH=" + path, "HOME=" + folder, "TMPDIR=" + os.TempDir(), "LC_ALL=C", "NO_COLOR=1",
		"DOCTEST_CLONE=" + clone, "DOCTEST_FOLDER=" + folder, "DOCTEST_PROGRAMS=" + programs,
		"DOCTEST_LOG=" + log}
}

func needShell(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no sh to run commands with")
	}
}

func newShell(t *testing.T, commands, programs string) *shell {
	t.Helper()
	s := &shell{folder: t.TempDir()}
	for _, dir := range []string{"mnt", "srv"} {
		if err := os.Mkdir(filepath.Join(s.folder, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	s.cmd = exec.Command("sh")
	s.cmd.Dir = s.folder
	s.cmd.Env = environment(s.folder, commands+string(filepath.ListSeparator)+os.Getenv("PATH"), programs, "")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = w, w
	s.out = bufio.NewReader(r)
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		s.in.Close()
		if !s.ended {
			s.cmd.Wait()
		}
		r.Close()
	})
	s.run("export DOCTEST_PROGRAM=")
	return s
}

// run runs commands. It returns the lines that they print and their exit code.
func (s *shell) run(text string) (out []string, code int) {
	if s.ended {
		return nil, s.code
	}
	s.runs++
	mark := fmt.Sprintf("[end of run %d]", s.runs)
	// The newline before the mark puts it at the start of a line, whatever was printed
	// before.
	fmt.Fprintf(s.in, "{\n%s\n} </dev/null 2>&1\nprintf '\\n%s %%d\\n' $?\n", text, mark)
	for {
		line, err := s.out.ReadString('\n')
		if n, ok := strings.CutPrefix(line, mark); ok {
			code, err = strconv.Atoi(strings.TrimSpace(n))
			if err == nil {
				if last := len(out) - 1; last >= 0 && out[last] == "" {
					out = out[:last]
				}
				return out, code
			}
		}
		if line != "" || err == nil {
			line = strings.ReplaceAll(line, s.folder, "")
			out = append(out, strings.TrimRight(line, " \r\n"))
		}
		if err != nil {
			s.ended = true
			s.cmd.Wait()
			s.code = max(1, s.cmd.ProcessState.ExitCode())
			return out, s.code
		}
	}
}

// link links the files of the folder name of ../shared/data into the folder of the
// shell. It reports whether there is such a folder.
func (s *shell) link(t *testing.T, name string) bool {
	files, err := filepath.Glob(filepath.Join(root, "..", "shared", "data", name, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		file, err := filepath.Abs(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, filepath.Join(s.folder, filepath.Base(file))); err != nil {
			t.Fatal(err)
		}
	}
	return len(files) > 0
}

// lookThrough checks commands without running them. They have to parse, and fddhdb and
// go have to know their verbs, flags and packages. It returns the problems.
func lookThrough(t *testing.T, text, commands string) (problems string) {
	t.Helper()
	if out, err := exec.Command("sh", "-n", "-c", text).CombinedOutput(); err != nil {
		return fmt.Sprintf("%v\n%s", err, out)
	}
	folder := t.TempDir()
	log := filepath.Join(folder, "log")
	cmd := exec.Command("sh", "-c", text)
	cmd.Dir = folder
	cmd.Env = environment(folder, commands, "", log) // finds our commands alone
	// an error is no problem: commands that are not found fail
	cmd.Run()
	b, err := os.ReadFile(log)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// commandFolder returns a folder with our stand-ins for commands.
func commandFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append([]string{"fddhdb", "go"}, examples...) {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestShell(t *testing.T) {
	needShell(t)
	s := newShell(t, commandFolder(t), "")
	for _, test := range []struct {
		text, out string
		code      int
	}{
		{"x=1; mkdir a && cd a", "", 0},
		{"echo $x; pwd; cat", "1\n/a", 0}, // state stays; the input is empty
		{"printf 'no line end'", "no line end", 0},
		{"echo out; echo err >&2; false", "out\nerr", 1},
		{"cat <<end\none\n\nend", "one\n", 0},
		{"echo last; exit 3", "last", 3},
		{"echo after", "", 3},
	} {
		out, code := s.run(test.text)
		if strings.Join(out, "\n") != test.out || code != test.code {
			t.Errorf("%s: %q with %d, want %q with %d", test.text, out, code, test.out, test.code)
		}
	}
}
