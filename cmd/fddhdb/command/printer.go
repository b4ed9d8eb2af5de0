package command

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/spf13/cobra"
)

// A printer is what verbs print with: results to stdout, in the mode that the user wants,
// and remarks to stderr. It is for one goroutine.
type printer struct {
	stdout *bufio.Writer // flushed at the end, and before stderr is written to
	stderr io.Writer
	colour bool // stdout is a terminal that shows colours
	charts bool // it is one that shows block characters

	layout layout      // of the verb that runs
	paging atomic.Bool // a pager has the terminal: no progress is shown. Progress reads it from other goroutines.
}

// newPrinter prints results to stdout and remarks to stderr.
func newPrinter(stdout, stderr io.Writer) *printer {
	return &printer{stdout: bufio.NewWriter(stdout), stderr: stderr, colour: inColour(stdout), charts: showsBlocks(stdout)}
}

// A layout is how the verb that runs prints its results.
type layout struct {
	mode   outputMode
	colour bool         // headings are set off: the output is a terminal that can do that
	charts bool         // small charts stand beside numbers, likewise
	tables int          // how many have been printed
	prose  bytes.Buffer // in csv: what is no table, and is printed only if there is none
	array  *jsonArray   // in json, of a verb that prints an object a line
}

// scope runs f, which prints what one verb does, and ends what it prints.
func (p *printer) scope(f func() error) error {
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

// beginOutput makes cmd print in a mode, which --json overrules.
func (p *printer) beginOutput(cmd *cobra.Command, mode outputMode) error {
	p.layout = layout{mode: mode, colour: p.colour, charts: p.charts && mode == modeTable}
	asJSON := cmd.Flags().Lookup("json")
	switch {
	case asJSON == nil:
		return nil
	case asJSON.Changed:
		p.layout.mode = modeJSONL
		return nil
	case mode != modeJSON && mode != modeJSONL:
		return nil
	}
	if cmd.Annotations[objectsPerLine] != "" && mode == modeJSON {
		p.layout.array = &jsonArray{out: p.stdout}
		p.stdout = bufio.NewWriter(p.layout.array)
	}
	return asJSON.Value.Set("true")
}

// endOutput prints what the mode puts at the end; ok says that the verb has done its work.
func (p *printer) endOutput(ok bool) error {
	l := &p.layout
	if l.tables == 0 {
		p.stdout.Write(l.prose.Bytes())
	}
	l.prose.Reset()
	if a := l.array; a != nil {
		err := p.stdout.Flush()
		p.stdout, l.array = a.out, nil
		if a.any {
			a.out.WriteString("]\n")
		} else if ok {
			a.out.WriteString("[]\n")
		}
		if err != nil {
			return err
		}
	}
	return p.stdout.Flush()
}

// redirect sends results to another writer, until the function that it returns is called.
// Elsewhere than on a terminal there are neither colours nor charts.
func (p *printer) redirect(to *bufio.Writer, isTerminal bool) (back func()) {
	stdout, colour, charts := p.stdout, p.colour, p.charts
	p.stdout, p.colour, p.charts = to, colour && isTerminal, charts && isTerminal
	return func() { p.stdout, p.colour, p.charts = stdout, colour, charts }
}

// flat says that everything goes into one table: there are no headings between.
func (p *printer) flat() bool {
	m := p.layout.mode
	return m == modeCSV || m == modeMarkdown || m == modeLine
}

// chartsShown says that small charts stand beside numbers.
func (p *printer) chartsShown() bool { return p.layout.charts }

// printf writes sentences to the output. In csv they are left out where there is a table.
func (p *printer) printf(format string, args ...any) {
	if p.layout.mode == modeCSV {
		fmt.Fprintf(&p.layout.prose, format, args...)
		return
	}
	fmt.Fprintf(p.stdout, format, args...)
}

// printJSON writes one object on a line.
func (p *printer) printJSON(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetEscapeHTML(false) // "image->text" stays readable
	return enc.Encode(v)
}

// notef writes what is no result, nor wrong, to stderr.
func (p *printer) notef(format string, args ...any) {
	fmt.Fprintf(p.stderr, format+"\n", args...)
}

// warnf writes a remark that is no result to stderr.
func (p *printer) warnf(format string, args ...any) {
	fmt.Fprintf(p.stderr, "fddhdb: "+format+"\n", args...)
}

// errorf writes why a verb has failed to stderr.
func (p *printer) errorf(format string, args ...any) {
	prefix := "fddhdb:"
	if inColour(p.stderr) {
		prefix = red(prefix)
	}
	fmt.Fprintln(p.stderr, prefix, fmt.Sprintf(format, args...))
}
