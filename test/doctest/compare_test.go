package doctest

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// varies lists what differs from run to run, and what stands for it when lines are
// compared.
var varies = []struct {
	pattern *regexp.Regexp
	mark    string
}{
	{regexp.MustCompile(`^seconds +\d.*`), "<seconds>"}, // durations of phases, the longest first
	{regexp.MustCompile(`"([a-z_]*(?:seconds|second|_us|bytes|created|time|checksum|next)[a-z_]*)":("[^"]*"|[-+.\deE]+|null)`), `"$1":<varies>`},
	{regexp.MustCompile(`"seconds":\{[^}]*\}`), `"seconds":<varies>`},
	{regexp.MustCompile(`\d{8}t\d{6}-\d+-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{8}T\d{6}Z`), "<time>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[-+]\d\d:\d\d)?)?`), "<time>"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\b([0-9a-f]{8}|[0-9a-f]{12}|[0-9a-f]{32})\b`), "<id>"},
	{regexp.MustCompile(`[A-Za-z0-9_+/-]{48,}=*`), "<text>"},
	{regexp.MustCompile(`\d[\d.,]*(e[-+]?\d+)? ?(ns|µs|us|ms|s|min)\b`), "<duration>"},
	{regexp.MustCompile(`\d[\d.,]* ?([kMGT]i?)?(B|bytes)\b`), "<size>"},
	{regexp.MustCompile(`\d[\d,]* (items|rows) a second`), "<rate>"},
}

var (
	spaces  = regexp.MustCompile(` {2,}`)
	decimal = regexp.MustCompile(`[-+]?\d*\.\d+(e[-+]?\d+)?|\b\d+(\.\d+)?e[-+]?\d+\b`)
)

// plain replaces the varying parts of a line.
func plain(line string) string {
	for _, v := range varies {
		line = v.pattern.ReplaceAllString(line, v.mark)
	}
	return strings.TrimSpace(spaces.ReplaceAllString(line, " "))
}

// sameLine reports whether the line got agrees with the line want of a document.
func sameLine(want, got string) bool {
	want, got = plain(want), plain(got)
	if strings.Contains(want, "...") {
		parts := strings.Split(decimal.ReplaceAllString(want, "<number>"), "...")
		for i, part := range parts {
			parts[i] = regexp.QuoteMeta(part)
		}
		pattern := regexp.MustCompile("^" + strings.Join(parts, ".*") + "$")
		return pattern.MatchString(decimal.ReplaceAllString(got, "<number>"))
	}
	if decimal.ReplaceAllString(want, "<number>") != decimal.ReplaceAllString(got, "<number>") {
		return false
	}
	numbers := decimal.FindAllString(got, -1)
	for i, text := range decimal.FindAllString(want, -1) {
		if !near(text, numbers[i]) {
			return false
		}
	}
	return true
}

// near reports whether two numbers agree but for rounding, which depends on the
// processor: to two units of the last digit, or 1 in 1,000.
func near(a, b string) bool {
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return a == b || errX == nil && errY == nil &&
		math.Abs(x-y) <= max(2.001*max(lastDigit(a), lastDigit(b)), .001*max(math.Abs(x), math.Abs(y)))
}

// lastDigit returns what a unit of the last digit of a number is worth.
func lastDigit(number string) float64 {
	digits, power, _ := strings.Cut(number, "e")
	_, decimals, _ := strings.Cut(digits, ".")
	exponent, _ := strconv.Atoi(power) // 0 without one
	return math.Pow10(exponent - len(decimals))
}

// difference returns the number of the first line of want that is not in its place in
// got, or -1 if all lines are. A line "..." stands for any lines.
func difference(want, got []string) int {
	furthest := 0
	var match func(w, g int) bool
	match = func(w, g int) bool {
		for ; w < len(want) && want[w] != "..."; w, g = w+1, g+1 {
			furthest = max(furthest, w)
			if g == len(got) || !sameLine(want[w], got[g]) {
				return false
			}
		}
		if w == len(want) {
			furthest = max(furthest, w)
			return g == len(got)
		}
		for ; g <= len(got); g++ {
			if match(w+1, g) {
				return true
			}
		}
		return false
	}
	if match(0, 0) {
		return -1
	}
	return furthest
}

func TestCompare(t *testing.T) {
	for _, test := range []struct {
		want, got string
		first     int
	}{
		{"imported 10 items in 0.0305 s", "imported 10 items in 12 ms", -1},
		{"imported 10 items in 0.0305 s", "imported 11 items in 0.0305 s", 0},
		{"backed up a.db as 20261121t174359-459-2858cb58c426\n8.3 MB, of which 1.3 kB had to be stored",
			"backed up a.db as 20270121t174359-1-00000b58c426\n83.3 kB, of which 1 B had to be stored", -1},
		{"a   0.97  x", "a 0.98   x", -1},
		{"a 0.97", "a 0.91", 0},
		{"score 53.9", "score 54.1", -1},
		{"score 53.9", "score 54.2", 0},
		{"score 6.490001812683726", "score 6.4900018126837296", -1},
		{"map 0.9917", "map 0.9919", -1},
		{"map 0.9917", "map 0.9959", 0},
		{"map 0.3324", "map 0.3445", 0},
		{"7e+06", "7.1e+06", -1},
		{"2026-11-21 17:43  9b1ef0a4", "2027-01-01 00:00  12345678", -1},
		{`{"hits":1,"next":"AaSR6jPd","seconds":{"scan":1,"solve":2}}`,
			`{"hits":1,"next":null,"seconds":{"solve":1}}`, -1},
		{`{"hits":1,"seconds":1}`, `{"hits":2,"seconds":1}`, 0},
		{"code 9f3c01d2aa55e870", "code 9f3c01d2aa55e870", -1},
		{"code 9f3c01d2aa55e870", "code 9f3c01d2aa55e871", 0},
		{"code 1111111111111e99", "code 1111111111111e99", -1},
		{"seconds  0.77: choose 0.61, solve 0.04", "seconds 1: solve 0.5", -1},
		{"a\n...\nz", "a\nb\nc\nz", -1},
		{"a\n...\nz", "a\nz", -1},
		{"a\n...\nz", "a\nz\ny", 3},
		{"a\n...", "a\nb", -1},
		{"a ... z 1.5", "a b c z 2.5", -1},
		{"a\nb", "a", 1},
		{"a", "a\nb", 1},
	} {
		if got := difference(strings.Split(test.want, "\n"),
			strings.Split(test.got, "\n")); got != test.first {
			t.Errorf("%q against %q: %d, want %d", test.want, test.got, got, test.first)
		}
	}
}
