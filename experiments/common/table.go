package common

import (
	"fmt"
	"io"
	"strings"
)

// Head begins a table in markdown. The first text columns are of text, the others of
// numbers, which are aligned on the right.
func Head(w io.Writer, text int, columns ...string) {
	Row(w, columns...)
	rule := make([]string, len(columns))
	for i := range rule {
		if rule[i] = "---"; i >= text {
			rule[i] = "---:"
		}
	}
	Row(w, rule...)
}

// Row adds a row to a table in markdown.
func Row(w io.Writer, cells ...string) {
	fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
}

// Share formats a number below 1 without its zero.
func Share(x float64) string {
	return strings.TrimPrefix(fmt.Sprintf("%.3f", x), "0")
}
