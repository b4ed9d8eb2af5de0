package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A Mode is a form of results.
type Mode string

const (
	ModeTable    Mode = "table"    // for people: columns, and sentences around them
	ModeCSV      Mode = "csv"      // RFC 4180, but with the line ends of Unix
	ModeMarkdown Mode = "markdown" // tables of GitHub
	ModeLine     Mode = "line"     // a line a value, for wide tables
	ModeJSON     Mode = "json"     // one JSON value on many lines: an object, or an array of objects
	ModeJSONL    Mode = "jsonl"    // like --json: an object, or one on each line
)

// Modes are the names of all modes.
var Modes = []string{"table", "csv", "json", "jsonl", "markdown", "line"}

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
