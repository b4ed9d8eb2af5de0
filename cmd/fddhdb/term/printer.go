package term

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A Printer prints for verbs: results to stdout, in the mode that the user wants, and
// remarks to stderr. It belongs to one goroutine.
type Printer struct {
	Program string // its name, which stands before warnings and errors

	Stdout *bufio.Writer // flushed at the end, and before writing to stderr; Plain where people see it
	Stderr io.Writer     // Plain
	colour bool          // stdout is a terminal with colours

	terminal *os.File  // terminal that shows results; nil: none
	beneath  io.Writer // of Stdout: takes colours
	remarks  io.Writer // of Stderr: takes colours and progress
	bar      *Progress // nil if stderr is no terminal: a log should have no bars

	layout layout // of the running verb
}

// NewPrinter prints results to stdout and remarks to stderr.
func NewPrinter(stdout, stderr io.Writer) *Printer {
	p := &Printer{
		Program: "fddhdb",
		Stdout:  bufio.NewWriter(stdout), Stderr: &plainWriter{to: stderr}, beneath: stdout, remarks: stderr,
		colour: inColour(stdout), terminal: File(stdout),
	}
	if f := File(stderr); f != nil {
		p.bar = NewProgress(f)
	}
	if p.terminal != nil {
		p.Stdout = bufio.NewWriter(&plainWriter{to: stdout})
	}
	return p
}

// Progress returns the bar of the running verb, which is gone as soon as anything is printed.
func (p *Printer) Progress() *Progress { return p.bar }

// A layout is how the running verb prints its results.
type layout struct {
	mode    Mode
	colour  bool         // headings are coloured
	tables  int          // number of tables so far
	prose   bytes.Buffer // in csv: text outside of tables, printed only if there is no table
	array   bool         // in json: the objects are elements of one array
	objects int          // in json: number of them so far
}

// Scope runs f, which prints the output of one verb, and completes that output.
func (p *Printer) Scope(f func() error) error {
	outer := p.layout
	defer func() { p.layout = outer }()
	p.layout = layout{}
	err := f()
	// Results from before an error are useful, too.
	if ended := p.endOutput(err == nil); err == nil && ended != nil {
		err = fmt.Errorf("write the output: %w", ended)
	}
	return err
}

// BeginOutput sets the mode for cmd; --json overrules it.
func (p *Printer) BeginOutput(cmd *cobra.Command, mode Mode) error {
	p.layout = layout{mode: mode, colour: p.colour, array: cmd.Annotations[objectsPerLine] != ""}
	asJSON := cmd.Flags().Lookup("json")
	switch {
	case asJSON == nil:
		return nil
	case asJSON.Changed:
		p.layout.mode = ModeJSONL
		return nil
	case mode != ModeJSON && mode != ModeJSONL:
		return nil
	}
	return asJSON.Value.Set("true")
}

// endOutput prints the end of a document of the mode. ok says that the verb has
// succeeded.
func (p *Printer) endOutput(ok bool) error {
	p.bar.End()
	l := &p.layout
	switch {
	case l.tables == 0 && l.prose.Len() > 0:
		p.Stdout.Write(l.prose.Bytes())
	case l.mode == ModeJSON && l.array && l.objects > 0:
		p.Stdout.WriteString("\n]\n")
	case l.mode == ModeJSON && l.array && ok:
		p.Stdout.WriteString("[]\n")
	}
	return p.Stdout.Flush()
}

// RedirectToFile sends results to a file until back is called, without colours.
func (p *Printer) RedirectToFile(to *bufio.Writer) (back func()) {
	stdout, under, colour, terminal := p.Stdout, p.beneath, p.colour, p.terminal
	p.Stdout, p.beneath, p.colour, p.terminal = to, nil, false, nil
	return func() { p.Stdout, p.beneath, p.colour, p.terminal = stdout, under, colour, terminal }
}

// terminalWidth returns the width of the terminal that shows results, 0 if none does.
func (p *Printer) terminalWidth() int {
	if p.terminal == nil {
		return 0
	}
	columns, _, err := term.GetSize(int(p.terminal.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Flat reports whether everything goes into one table, without sentences between.
func (p *Printer) Flat() bool { return p.layout.mode == ModeCSV }

// Printf writes sentences to the output. In csv they are left out if there is a table.
func (p *Printer) Printf(format string, args ...any) {
	p.bar.End()
	if p.layout.mode == ModeCSV {
		fmt.Fprintf(&p.layout.prose, format, args...)
		return
	}
	fmt.Fprintf(p.Stdout, format, args...)
}

// PrintJSON writes one object on a line. In ModeJSON it lays the object out on several, but an array of plain
// values, such as a vector, on one.
func (p *Printer) PrintJSON(v any) error {
	line, err := JSON(v)
	if err != nil {
		return err
	}
	p.bar.End()
	l := &p.layout
	if l.mode != ModeJSON {
		_, err = p.Stdout.Write(append(line, '\n'))
		return err
	}
	indent := ""
	if l.array {
		indent = "  "
		p.Stdout.WriteString([]string{"[\n  ", ",\n  "}[min(l.objects, 1)])
	}
	l.objects++
	var out bytes.Buffer
	if err := json.Indent(&out, line, indent, "  "); err != nil {
		return err
	}
	// An end of a line is never within a string.
	plain := plainArray.ReplaceAllFunc(out.Bytes(), func(b []byte) []byte {
		return lineEnd.ReplaceAll(commaEnd.ReplaceAll(b, []byte(", ")), nil)
	})
	if !l.array {
		plain = append(plain, '\n')
	}
	if _, err := p.Stdout.Write(plain); err != nil {
		return err
	}
	return p.Stdout.Flush()
}

var (
	plainArray = regexp.MustCompile(`\[\n(?:[^\[\]{}"]|"(?:[^"\\]|\\.)*")*\]`)
	commaEnd   = regexp.MustCompile(`,\n *`)
	lineEnd    = regexp.MustCompile(`\n *`)
)

// bold prints a line, in bold where there are colours.
func (p *Printer) bold(line string) {
	if !p.layout.colour {
		fmt.Fprintln(p.Stdout, line)
		return
	}
	p.Stdout.Flush() // which keeps the error
	fmt.Fprintln(p.beneath, "\x1b[1m"+Plain(line)+"\x1b[0m")
}

// Notef writes a remark that is neither a result nor a warning to stderr.
func (p *Printer) Notef(format string, args ...any) {
	p.bar.End()
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// Warnf writes a warning to stderr.
func (p *Printer) Warnf(format string, args ...any) {
	p.bar.End()
	fmt.Fprintf(p.Stderr, p.Program+": "+format+"\n", args...)
}

// Errorf writes the error of a verb to stderr.
func (p *Printer) Errorf(format string, args ...any) {
	p.bar.End()
	prefix := p.Program + ":"
	if inColour(p.remarks) {
		fmt.Fprint(p.remarks, "\x1b[31m"+prefix+"\x1b[0m")
		prefix = ""
	}
	fmt.Fprintf(p.Stderr, prefix+" "+format+"\n", args...)
}

// unseen reports whether a terminal obeys a character instead of showing it: controls,
// and what turns the direction of text. n is its number of bytes: an invalid byte may be
// a control of a terminal without UTF-8.
func unseen(r rune, n int) bool { return !unicode.IsPrint(r) || r == utf8.RuneError && n == 1 }

// Plain returns text from a database or a file such that it cannot move the cursor or
// begin a line: unprintable characters are escaped as in Go.
func Plain(s string) string { return escaped(s, "") }

// escaped is Plain, but for some characters.
func escaped(s, but string) string {
	var b strings.Builder
	done := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if unseen(r, n) && !strings.ContainsRune(but, r) {
			quoted := strconv.Quote(s[i : i+n])
			b.WriteString(s[done:i])
			b.WriteString(quoted[1 : len(quoted)-1])
			done = i + n
		}
		i += n
	}
	if done == 0 {
		return s
	}
	return b.String() + s[done:]
}

// A plainWriter writes text that people see. All of it is Plain, but for ends of lines
// and tabs.
type plainWriter struct {
	mu   sync.Mutex
	to   io.Writer
	part []byte // the beginning of a character, the rest of which comes with the next Write
}

// Write implements io.Writer.
func (w *plainWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	whole := append(w.part, p...)
	cut := len(whole)
	for back := 1; back < utf8.UTFMax && back <= len(whole); back++ {
		if start := len(whole) - back; utf8.RuneStart(whole[start]) {
			if !utf8.FullRune(whole[start:]) {
				cut = start
			}
			break
		}
	}
	w.part = bytes.Clone(whole[cut:])
	if _, err := io.WriteString(w.to, escaped(string(whole[:cut]), "\n\t")); err != nil {
		return 0, err
	}
	return len(p), nil
}

// JSON returns an object on a line. Characters that Plain escapes are escapes in it, also
// where JSON would leave them as they are.
func JSON(v any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // keeps "image->text" readable
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	b := bytes.TrimSpace(line.Bytes())
	if bytes.IndexFunc(b, func(r rune) bool { return unseen(r, 0) }) < 0 {
		return b, nil
	}
	var out bytes.Buffer
	for _, r := range string(b) {
		switch {
		case !unseen(r, 0):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes(), nil
}

// A Mode is a form of results.
type Mode string

const (
	ModeTable Mode = "table" // for people: columns, and sentences around them
	ModeCSV   Mode = "csv"   // RFC 4180, but with the line ends of Unix
	ModeJSON  Mode = "json"  // one JSON value on many lines: an object, or an array of objects
	ModeJSONL Mode = "jsonl" // like --json: an object, or one on each line
)

// Modes are the names of all modes.
var Modes = []string{"table", "csv", "json", "jsonl"}

// String implements pflag.Value.
func (m *Mode) String() string { return string(*m) }

// Type implements pflag.Value.
func (m *Mode) Type() string { return "MODE" }

// Set implements pflag.Value.
func (m *Mode) Set(s string) error {
	if slices.Contains(Modes, s) {
		*m = Mode(s)
		return nil
	}
	if mode := Nearest(s, Modes); mode != "" {
		return fmt.Errorf("unknown mode: did you mean %s?", mode)
	}
	return fmt.Errorf("unknown mode: there is %s", strings.Join(Modes, ", "))
}

// objectsPerLine is the annotation of verbs that print an object a line with --json.
// Other verbs print one object.
const objectsPerLine = "objects-per-line"

// PrintsObjects marks a verb as such.
func PrintsObjects(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[objectsPerLine] = "yes"
}

// File returns f as a terminal, or nil if it is none.
func File(f any) *os.File {
	file, ok := f.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return nil
	}
	return file
}

// inColour reports whether output to f may use colours: on terminals that have them,
// unless NO_COLOR is set (https://no-color.org).
func inColour(f io.Writer) bool {
	if File(f) == nil || os.Getenv("NO_COLOR") != "" {
		return false
	}
	switch os.Getenv("TERM") {
	case "dumb":
		return false
	case "":
		return runtime.GOOS == "windows" && os.Getenv("WT_SESSION") != "" // Windows Terminal
	}
	return true
}
