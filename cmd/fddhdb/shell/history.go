package shell

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/peterh/liner"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/userdir"
)

// historyPath returns the file of the lines of earlier dialogues, "" for none:
// $FDDHDB_HISTORY, else history in the folder of userdir.State.
func (s *Shell) historyPath() string {
	if path, set := os.LookupEnv("FDDHDB_HISTORY"); set {
		return path
	}
	dir, err := userdir.State()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "history")
}

// readHistory returns the last lines, and cuts a file that has grown too long.
func (s *Shell) readHistory() []string {
	path := s.historyPath()
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxStatement {
		return nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		s.out.Warnf("warning: the history is not read: %v", err)
		return nil
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, "\r\n"); line != "" && utf8.ValidString(line) {
			lines = append(lines, line)
		}
	}
	if len(lines) <= 2*liner.HistoryLimit {
		return lines
	}
	lines = lines[len(lines)-liner.HistoryLimit:]
	tmp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	err = os.WriteFile(tmp, []byte(strings.Join(lines, "\n")+"\n"), 0o600)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
	}
	return lines
}

// remember adds a line to the history, at once, so that it survives a crash and the
// next shell has it. A line that begins with a blank is not remembered.
func (s *Shell) remember(statement string) {
	if s.terminal.editor == nil || strings.TrimSpace(statement) == "" || strings.HasPrefix(statement, " ") {
		return
	}
	entry := historyEntry(statement)
	s.terminal.editor.AppendHistory(entry)
	path := s.historyPath()
	if path == "" {
		return
	}
	if err := appendHistory(path, []byte(entry+"\n")); err != nil && !s.historyWarned {
		s.historyWarned = true
		s.out.Warnf("warning: the history is not kept: %v", err)
	}
}

// lineEnd stands for the end of a line within an entry of the history, which the editor
// and the file have on one line.
const lineEnd = "␤"

// historyEntry returns a statement on one line. Lines that a backslash continues are
// one; in quotes the end of a line counts.
func historyEntry(statement string) string {
	line := strings.ReplaceAll(statement, "\\\n", "")
	return strings.ToValidUTF8(strings.ReplaceAll(line, "\n", lineEnd), "\uFFFD")
}

// recalled returns a line of the editor with the ends of lines that an entry of the
// history had.
func recalled(line string) string { return strings.ReplaceAll(line, lineEnd, "\n") }

func appendHistory(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return fmt.Errorf("%s is a named pipe, and would wait for a reader", path)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
