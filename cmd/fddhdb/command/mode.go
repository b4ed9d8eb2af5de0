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
