package command

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// An outputMode is how results are printed.
type outputMode string

const (
	modeTable    outputMode = "table"    // for people: columns, and sentences around them
	modeCSV      outputMode = "csv"      // RFC 4180, but lines end as everywhere on Unix
	modeMarkdown outputMode = "markdown" // tables of GitHub
	modeLine     outputMode = "line"     // a line a value, for wide tables
	modeJSON     outputMode = "json"     // one JSON value: an object, or an array of them
	modeJSONL    outputMode = "jsonl"    // as --json: an object, or one a line
)

var outputModes = []string{"table", "csv", "json", "jsonl", "markdown", "line"}

func (m *outputMode) String() string { return string(*m) }
func (m *outputMode) Type() string   { return "MODE" }

// Set implements pflag.Value.
func (m *outputMode) Set(s string) error {
	if slices.Contains(outputModes, s) {
		*m = outputMode(s)
		return nil
	}
	if mode := nearest(s, outputModes); mode != "" {
		return fmt.Errorf("unknown mode: did you mean %s?", mode)
	}
	return fmt.Errorf("unknown mode: there is %s", strings.Join(outputModes, ", "))
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

// objectsPerLine is the annotation of the verbs that print an object a line with --json,
// where others print one object.
const objectsPerLine = "objects-per-line"

// printsObjects says so of a verb.
func printsObjects(cmd *cobra.Command) {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[objectsPerLine] = "yes"
}

// beginOutput makes cmd print in a mode, which --json overrules.
func (e *env) beginOutput(cmd *cobra.Command, mode outputMode) error {
	e.layout = layout{mode: mode, colour: e.colour, charts: e.charts && mode == modeTable}
	asJSON := cmd.Flags().Lookup("json")
	switch {
	case asJSON == nil:
		return nil
	case asJSON.Changed:
		e.layout.mode = modeJSONL
		return nil
	case mode != modeJSON && mode != modeJSONL:
		return nil
	}
	if cmd.Annotations[objectsPerLine] != "" && mode == modeJSON {
		e.layout.array = &jsonArray{out: e.stdout}
		e.stdout = bufio.NewWriter(e.layout.array)
	}
	return asJSON.Value.Set("true")
}

// endOutput prints what the mode puts at the end; ok says that the verb has done its work.
func (e *env) endOutput(ok bool) error {
	l := &e.layout
	if l.tables == 0 {
		e.stdout.Write(l.prose.Bytes())
	}
	l.prose.Reset()
	if a := l.array; a != nil {
		err := e.stdout.Flush()
		e.stdout, l.array = a.out, nil
		if a.any {
			a.out.WriteString("]\n")
		} else if ok {
			a.out.WriteString("[]\n")
		}
		if err != nil {
			return err
		}
	}
	return e.stdout.Flush()
}

// A jsonArray makes one array of objects that are written a line each.
type jsonArray struct {
	out    *bufio.Writer
	any    bool
	inLine bool
}

// Write implements io.Writer. An error of the writer behind it comes when that is flushed.
func (a *jsonArray) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		switch {
		case a.inLine:
		case a.any:
			a.out.WriteString(",\n")
		default:
			a.out.WriteString("[")
			a.any = true
		}
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		a.out.Write(text)
		a.inLine = !whole
	}
	return len(p), nil
}
