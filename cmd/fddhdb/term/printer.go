package term

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// A Printer prints for verbs: results to stdout, in the mode that the user wants, and
// remarks to stderr. It belongs to one goroutine.
type Printer struct {
	Stdout *bufio.Writer // flushed at the end, and before writing to stderr; Plain where people see it
	Stderr io.Writer     // Plain
	colour bool          // stdout is a terminal with colours
	Charts bool          // stdout is a terminal with block characters

	terminal *os.File    // terminal that shows results; nil: none
	beneath  io.Writer   // of Stdout: takes colours
	remarks  io.Writer   // of Stderr: takes colours and progress
	sideways func() bool // reports whether lines wider than the terminal can be shown; nil: they cannot

	layout layout      // of the running verb
	Paging atomic.Bool // a pager has the terminal, so no progress is shown; Progress reads it from other goroutines
}

// NewPrinter prints results to stdout and remarks to stderr.
func NewPrinter(stdout, stderr io.Writer) *Printer {
	p := &Printer{
		Stdout: bufio.NewWriter(stdout), Stderr: &plainWriter{to: stderr}, beneath: stdout, remarks: stderr,
		colour: inColour(stdout), Charts: showsBlocks(stdout), terminal: File(stdout),
	}
	if p.terminal != nil {
		p.Stdout = bufio.NewWriter(&plainWriter{to: stdout})
	}
	return p
}

// A layout is how the running verb prints its results.
type layout struct {
	mode   Mode
	colour bool          // headings are coloured
	charts bool          // small charts stand beside numbers
	tables int           // number of tables so far
	prose  bytes.Buffer  // in csv: text outside of tables, printed only if there is no table
	json   *jsonDocument // in json: what Stdout writes to
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
	p.layout = layout{mode: mode, colour: p.colour, charts: p.Charts && mode == ModeTable}
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
	if mode == ModeJSON {
		p.layout.json = &jsonDocument{out: p.Stdout, array: cmd.Annotations[objectsPerLine] != ""}
		p.Stdout = bufio.NewWriter(p.layout.json)
	}
	return asJSON.Value.Set("true")
}

// endOutput prints the end of a document of the mode. ok says that the verb has
// succeeded.
func (p *Printer) endOutput(ok bool) error {
	l := &p.layout
	if l.tables == 0 {
		p.Stdout.Write(l.prose.Bytes())
	}
	l.prose.Reset()
	if d := l.json; d != nil {
		err := p.Stdout.Flush()
		p.Stdout, l.json = d.out, nil
		d.end(ok)
		if err != nil {
			return err
		}
	}
	return p.Stdout.Flush()
}

// RedirectToFile sends results to a file until back is called, without colours and charts.
func (p *Printer) RedirectToFile(to *bufio.Writer) (back func()) {
	return p.redirect(to, nil, nil)
}

// RedirectToPager sends results to a pager in front of the terminal until back is
// called. sideways is asked before lines that are wider than the terminal: it reports
// whether the pager shows them without wrapping.
func (p *Printer) RedirectToPager(to io.Writer, sideways func() bool) (back func()) {
	return p.redirect(bufio.NewWriter(&plainWriter{to: to}), to, sideways)
}

// redirect sends results to a writer. beneath is what it writes to if people see it.
func (p *Printer) redirect(to *bufio.Writer, beneath io.Writer, sideways func() bool) (back func()) {
	stdout, under, colour, charts, terminal := p.Stdout, p.beneath, p.colour, p.Charts, p.terminal
	p.Stdout, p.beneath, p.sideways = to, beneath, sideways
	if beneath == nil {
		p.colour, p.Charts, p.terminal = false, false, nil
	}
	return func() {
		p.Stdout, p.beneath, p.colour, p.Charts, p.terminal, p.sideways = stdout, under, colour, charts, terminal, nil
	}
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

// showsWide reports whether lines wider than the terminal can be shown.
func (p *Printer) showsWide() bool { return p.sideways != nil && p.sideways() }

// Flat reports whether everything goes into one table, without headings between.
func (p *Printer) Flat() bool {
	m := p.layout.mode
	return m == ModeCSV || m == ModeMarkdown || m == ModeLine
}

// ChartsShown reports whether small charts stand beside numbers.
func (p *Printer) ChartsShown() bool { return p.layout.charts }

// Printf writes sentences to the output. In csv they are left out if there is a table.
func (p *Printer) Printf(format string, args ...any) {
	if p.layout.mode == ModeCSV {
		fmt.Fprintf(&p.layout.prose, format, args...)
		return
	}
	fmt.Fprintf(p.Stdout, format, args...)
}

// LeavesOutSentences reports whether what Printf writes beside a table is left out.
func (p *Printer) LeavesOutSentences() bool { return p.layout.mode == ModeCSV }

// PrintJSON writes one object on a line; in ModeJSON that lays it out on several.
func (p *Printer) PrintJSON(v any) error {
	line, err := JSON(v)
	if err == nil {
		_, err = p.Stdout.Write(append(line, '\n'))
	}
	return err
}

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
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// Warnf writes a warning to stderr.
func (p *Printer) Warnf(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "fddhdb: "+format+"\n", args...)
}

// Errorf writes the error of a verb to stderr.
func (p *Printer) Errorf(format string, args ...any) {
	prefix := "fddhdb:"
	if inColour(p.remarks) {
		fmt.Fprint(p.remarks, "\x1b[31m"+prefix+"\x1b[0m")
		prefix = ""
	}
	fmt.Fprintf(p.Stderr, prefix+" "+format+"\n", args...)
}
