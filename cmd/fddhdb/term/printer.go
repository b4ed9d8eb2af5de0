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

// A Printer is what verbs print with: results to stdout, in the mode that the user wants,
// and remarks to stderr. It is for one goroutine.
type Printer struct {
	Stdout *bufio.Writer // flushed at the end, and before stderr is written to
	Stderr io.Writer
	colour bool // stdout is a terminal that shows colours
	Charts bool // it is one that shows block characters

	layout layout      // of the verb that runs
	Paging atomic.Bool // a pager has the terminal: no progress is shown. Progress reads it from other goroutines.
}

// NewPrinter prints results to stdout and remarks to stderr.
func NewPrinter(stdout, stderr io.Writer) *Printer {
	return &Printer{Stdout: bufio.NewWriter(stdout), Stderr: stderr, colour: inColour(stdout), Charts: showsBlocks(stdout)}
}

// A layout is how the verb that runs prints its results.
type layout struct {
	mode   Mode
	colour bool         // headings are set off: the output is a terminal that can do that
	charts bool         // small charts stand beside numbers, likewise
	tables int          // how many have been printed
	prose  bytes.Buffer // in csv: what is no table, and is printed only if there is none
	array  *jsonArray   // in json, of a verb that prints an object a line
}

// Scope runs f, which prints what one verb does, and ends what it prints.
func (p *Printer) Scope(f func() error) error {
	outer := p.layout
	defer func() { p.layout = outer }()
	p.layout = layout{}
	err := f()
	// What was found before an error is of use too.
	if ended := p.endOutput(err == nil); err == nil && ended != nil {
		err = fmt.Errorf("write the output: %w", ended)
	}
	return err
}

// BeginOutput makes cmd print in a mode, which --json overrules.
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

// endOutput prints what the mode puts at the end; ok says that the verb has done its work.
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

// Redirect sends results to another writer, until the function that it returns is called.
// Elsewhere than on a terminal there are neither colours nor charts.
func (p *Printer) Redirect(to *bufio.Writer, isTerminal bool) (back func()) {
	stdout, colour, charts := p.Stdout, p.colour, p.Charts
	p.Stdout, p.colour, p.Charts = to, colour && isTerminal, charts && isTerminal
	return func() { p.Stdout, p.colour, p.Charts = stdout, colour, charts }
}

// Flat says that everything goes into one table: there are no headings between.
func (p *Printer) Flat() bool {
	m := p.layout.mode
	return m == ModeCSV || m == ModeMarkdown || m == ModeLine
}

// ChartsShown says that small charts stand beside numbers.
func (p *Printer) ChartsShown() bool { return p.layout.charts }

// Printf writes sentences to the output. In csv they are left out where there is a table.
func (p *Printer) Printf(format string, args ...any) {
	if p.layout.mode == ModeCSV {
		fmt.Fprintf(&p.layout.prose, format, args...)
		return
	}
	fmt.Fprintf(p.Stdout, format, args...)
}

// PrintJSON writes one object on a line.
func (p *Printer) PrintJSON(v any) error {
	enc := json.NewEncoder(p.Stdout)
	enc.SetEscapeHTML(false) // "image->text" stays readable
	return enc.Encode(v)
}

// Notef writes what is no result, nor wrong, to stderr.
func (p *Printer) Notef(format string, args ...any) {
	fmt.Fprintf(p.Stderr, format+"\n", args...)
}

// Warnf writes a remark that is no result to stderr.
func (p *Printer) Warnf(format string, args ...any) {
	fmt.Fprintf(p.Stderr, "fddhdb: "+format+"\n", args...)
}

// Errorf writes why a verb has failed to stderr.
func (p *Printer) Errorf(format string, args ...any) {
	prefix := "fddhdb:"
	if inColour(p.Stderr) {
		prefix = red(prefix)
	}
	fmt.Fprintln(p.Stderr, prefix, fmt.Sprintf(format, args...))
}
