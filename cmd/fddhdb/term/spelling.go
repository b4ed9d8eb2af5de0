package term

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Thousands returns a count with commas.
func Thousands[T int | int64 | uint32 | uint64](n T) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Plural returns a count with the right form of its noun.
func Plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Thousands(n) + " " + many
}

// Size returns a number of bytes with a unit.
func Size(n int64) string {
	x, unit := float64(n), 0
	for x >= 1000 && unit < 4 {
		x /= 1000
		unit++
	}
	units := []string{"bytes", "kB", "MB", "GB", "TB"}
	if unit == 0 {
		return Plural(int(n), "byte", "bytes")
	}
	return strconv.FormatFloat(x, 'f', 1, 64) + " " + units[unit]
}

// Seconds returns a duration with three digits.
func Seconds(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) + " s" }

// Setting returns a setting, short and as a user would type it.
func Setting(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// When returns a time to the minute, in the reader's time zone.
func When(t time.Time) string { return t.Local().Format("2006-01-02 15:04") }

// OrDash returns s, or a dash if it is empty, so that columns stay columns.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// FileKind returns the kind of a file by its name, for a message that another kind is
// expected.
func FileKind(path string) string {
	if ext := strings.ToLower(filepath.Ext(path)); ext != "" {
		return ext
	}
	return "one without an extension"
}

// Nearest returns the name that a mistyped word most likely means. It returns "" if
// none is close: if more than a third of the word is wrong, and more than one letter.
func Nearest(word string, names []string) string {
	best, least := "", max(1, len(word)/3)+1
	for _, name := range names {
		d := editDistance(word, name)
		if d < least && d < len(name) {
			best, least = name, d
		}
	}
	return best
}

// editDistance returns the number of letters to insert, delete, replace or swap with
// their neighbour to turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
