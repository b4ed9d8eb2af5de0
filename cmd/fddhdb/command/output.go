package command

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// printf writes sentences to the output. In csv they are left out where there is a table.
func (e *env) printf(format string, args ...any) {
	if e.layout.mode == modeCSV {
		fmt.Fprintf(&e.layout.prose, format, args...)
		return
	}
	fmt.Fprintf(e.stdout, format, args...)
}

// printJSON writes one object on a line.
func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false) // "image->text" stays readable
	return enc.Encode(v)
}

// notef writes what is no result, nor wrong, to stderr.
func (e *env) notef(format string, args ...any) {
	fmt.Fprintf(e.stderr, format+"\n", args...)
}

// warnf writes a remark that is no result to stderr.
func (e *env) warnf(format string, args ...any) {
	fmt.Fprintf(e.stderr, "fddhdb: "+format+"\n", args...)
}

// plain spells text from the database so that it cannot move the cursor or begin a
// line: what is not printable is escaped as in Go.
func plain(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// thousands spells a count with commas.
func thousands[T int | int64 | uint32 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// plural spells a count of things.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + many
}

// size spells a number of bytes.
func size(n int64) string {
	x, unit := float64(n), 0
	for x >= 1000 && unit < 4 {
		x /= 1000
		unit++
	}
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	if unit == 0 {
		return thousands(n) + " bytes"
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[unit]
}

// seconds spells a duration with three digits.
func seconds(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) + " s" }

// number spells a setting: short, and as it would be typed.
func number(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }
