package term

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// A Printer prints for verbs: results to stdout, in the mode that the user wants, and
// remarks to stderr. It belongs to one goroutine.
type Printer struct {
	Stdout *bufio.Writer // flushed at the end, and before writing to stderr
	Stderr io.Writer
	colour bool // stdout is a terminal with colours
	Charts bool // stdout is a terminal with block characters

	layout layout      // of the running verb
	Paging atomic.Bool // a pager has the terminal, so no progress is shown; Progress reads it from other goroutines
}

// NewPrinter prints results to stdout and remarks to stderr.
func NewPrinter(stdout, stderr io.Writer) *Printer {
	return &Printer{Stdout: bufio.NewWriter(stdout), Stderr: stderr, colour: inColour(stdout), Charts: showsBlocks(stdout)}
}

// A layout is how the running verb prints its results.
type layout struct {
	mode   Mode
	colour bool         // headings are coloured
	charts bool         // small charts stand beside numbers
	tables int          // number of tables so far
	prose  bytes.Buffer // in csv: text outside of tables, printed only if there is no table
	array  *jsonArray   // in json: array for a verb that prints an object a line
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
	if cmd.Annotations[objectsPerLine] != "" && mode == ModeJSON {
		p.layout.array = &jsonArray{out: p.Stdout}
		p.Stdout = bufio.NewWriter(p.layout.array)
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
	if a := l.array; a != nil {
		err := p.Stdout.Flush()
		p.Stdout, l.array = a.out, nil
		if a.any {
			a.out.WriteString("]\n")
		} else if ok {
			a.out.WriteString("[]\n")
		}
		if err != nil {
			return err
		}
	}
	return p.Stdout.Flush()
}

// Redirect sends results to another writer until back is called. Colours and charts
// appear only if that is a terminal.
func (p *Printer) Redirect(to *bufio.Writer, isTerminal bool) (back func()) {
	stdout, colour, charts := p.Stdout, p.colour, p.Charts
	p.Stdout, p.colour, p.Charts = to, colour && isTerminal, charts && isTerminal
	return func() { p.Stdout, p.colour, p.Charts = stdout, colour, charts }
}

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

// PrintJSON writes one object on a line.
func (p *Printer) PrintJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false) // keeps "image->text" readable
	return enc.Encode(v)
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
	if inColour(p.Stderr) {
		prefix = red(prefix)
	}
	fmt.Fprintln(p.Stderr, prefix, fmt.Sprintf(format, args...))
}
