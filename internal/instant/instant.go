package instant

import (
	"math"
	"strings"
	"time"
)

// Least and Most are the first and the last time that a field can have: RFC 3339 has four digits for
// the year.
var (
	Least = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	Most  = time.Date(9999, 12, 31, 23, 59, 59, 999_999_000, time.UTC).UnixMicro()
)

// Of returns the microseconds of a time. A part of a microsecond is cut off. It reports false
// if no field can have the time.
func Of(t time.Time) (micros int64, ok bool) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return 0, false
	}
	micros = t.Unix()*1e6 + int64(t.Nanosecond())/1000
	return micros, Has(micros)
}

// Has reports whether a field can have the time.
func Has(micros int64) bool { return Least <= micros && micros <= Most }

// Time returns the time, in UTC.
func Time(micros int64) time.Time { return time.UnixMicro(micros).UTC() }

// Format returns the text of a time by RFC 3339, in UTC, with as many decimals as it has:
// 2024-05-01T12:30:00.25Z.
func Format(micros int64) string { return string(Append(nil, micros)) }

// Append appends what Format returns.
func Append(dst []byte, micros int64) []byte { return Time(micros).AppendFormat(dst, time.RFC3339Nano) }

// Scale returns so many units of so many microseconds. It reports false if no field can have the time.
func Scale(n, unit int64) (micros int64, ok bool) {
	if n > math.MaxInt64/unit || n < math.MinInt64/unit {
		return 0, false
	}
	return n * unit, Has(n * unit)
}

// A Text is what Parse has read.
type Text struct {
	Micros int64 // the time; of a part of a microsecond the floor
	Whole  bool  // there is no such part
	Date   bool  // the text has the year, the month and the day
}

// Parse reads a time as ISO 8601 and databases write it: a date, and behind a T or a blank hours and
// minutes, seconds, decimals, and Z or an offset, of which the later ones may be missing. Without an
// offset it is UTC. A year, or a year and a month, is where that begins. It reports false if
// the text is no time, or one that no field can have.
func Parse(s string) (t Text, ok bool) {
	layout := "2006-01-02"
	switch n := len(s); {
	case n == len("2006") || n == len("2006-01"):
		layout = layout[:n]
	case n < len(layout) || s[4] != '-': // nearly all text that is no time
		return t, false
	case n > len(layout):
		if s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
			return t, false
		}
		clock, offset := s[11:], ""
		if i := strings.IndexAny(clock, "Zz+-"); i >= 0 {
			clock, offset = clock[:i], clock[i:]
		}
		layout += s[10:11] + "15:04"
		if len(clock) > len("15:04") {
			layout += ":05" // and decimals, if there are some
		}
		switch {
		case offset == "Z" || offset == "z":
			layout += offset
		case len(offset) == len("+01"):
			layout += "-07"
		case len(offset) == len("+0100"):
			layout += "-0700"
		case offset != "":
			layout += "-07:00"
		}
		// time.Parse takes a comma before decimals, too, and hours of one digit.
		if strings.Contains(clock, ",") || len(clock) < 2 || clock[1] == ':' {
			return t, false
		}
	}
	at, err := time.Parse(layout, s)
	if err != nil {
		return t, false
	}
	t.Micros, ok = Of(at)
	t.Whole, t.Date = at.Nanosecond()%1000 == 0, len(layout) >= len("2006-01-02")
	return t, ok
}

// IsDate reports whether a text is a time that says its day. Where nobody says what a column holds,
// such texts are taken for times, and years are not.
func IsDate(s string) bool {
	t, ok := Parse(s)
	return ok && t.Date
}

// IsFormatted reports whether a text is as Format writes it: taking it for a time loses nothing.
func IsFormatted(s string) bool {
	t, ok := Parse(s)
	return ok && Format(t.Micros) == s
}
