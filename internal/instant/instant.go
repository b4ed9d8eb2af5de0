package instant

import (
	"errors"
	"fmt"
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

// Errors about a time that is given. They begin with a verb: the caller names the time.
var (
	ErrNoTime = errors.New("is no time: YYYY-MM-DD is one, and YYYY-MM-DDThh:mm:ssZ; behind the seconds there may be decimals, and an offset such as +02:00 in place of Z")
	ErrFar    = errors.New("is beyond the times that a field can have, those of the years 0 to 9999")
)

// Of returns the microseconds of a time. What is finer than a microsecond is cut off. The error is
// ErrFar.
func Of(t time.Time) (micros int64, err error) {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return 0, ErrFar
	}
	return t.Unix()*1e6 + int64(t.Nanosecond())/1000, nil
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

// Scale returns n units of a number of microseconds. The error is ErrFar.
func Scale(n, unit int64) (micros int64, err error) {
	if n > math.MaxInt64/unit || n < math.MinInt64/unit || !Has(n*unit) {
		return 0, ErrFar
	}
	return n * unit, nil
}

// Parse reads a time in the forms of ISO 8601 that databases and programs write. A date comes first: a year,
// a year and a month, or all three. Behind a whole date there may be T or a blank, and hours and minutes;
// behind these seconds, with decimals or without; at the end Z or an offset. Where a part is missing the time
// is the first of what is named: 2024 is 2024-01-01T00:00:00Z. Without an offset it is in UTC.
//
// What is finer than a microsecond is cut off. The error is ErrNoTime or ErrFar.
func Parse(s string) (micros int64, err error) {
	at, err := parse(s)
	if err != nil {
		return 0, err
	}
	return Of(at)
}

func parse(s string) (time.Time, error) {
	layout := "2006-01-02"
	switch n := len(s); {
	case n == len("2006") || n == len("2006-01"):
		layout = layout[:n]
	case n < len(layout):
		return time.Time{}, ErrNoTime
	case s[4] != '-': // of text that is no time nearly all ends here
		if strings.Trim(s[:5], "0123456789") == "" && strings.HasPrefix(strings.TrimLeft(s, "0123456789"),
			"-") {
			return time.Time{}, ErrFar // a year of five digits or more
		}
		return time.Time{}, ErrNoTime
	case n > len(layout):
		if s[10] != 'T' && s[10] != 't' && s[10] != ' ' {
			return time.Time{}, ErrNoTime
		}
		clock, offset := s[11:], ""
		if i := strings.IndexAny(clock, "Zz+-"); i >= 0 {
			clock, offset = clock[:i], clock[i:]
		}
		layout += s[10:11] + "15:04"
		if len(clock) > len("15:04") {
			layout += ":05" // time.Parse takes decimals behind it
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
			return time.Time{}, ErrNoTime
		}
	}
	at, err := time.Parse(layout, s)
	if err != nil {
		return time.Time{}, ErrNoTime
	}
	return at, nil
}

// IsDate reports whether a text is a time that says its day, and no finer than a microsecond. Where
// nobody says what a column holds, such texts are taken for times: nothing is lost by that. Years are not.
func IsDate(s string) bool {
	if len(s) < len("2006-01-02") {
		return false
	}
	at, err := parse(s)
	if err != nil || at.Nanosecond()%1000 != 0 || decimals(s) > 9 {
		return false
	}
	_, err = Of(at)
	return err == nil
}

// decimals returns how many digits stand behind the point, of which time.Parse reads nine.
func decimals(s string) int {
	_, behind, _ := strings.Cut(s, ".")
	return len(behind) - len(strings.TrimLeft(behind, "0123456789"))
}

// IsFormatted reports whether a text is as Format writes it: taking it for a time loses nothing.
func IsFormatted(s string) bool {
	micros, err := Parse(s)
	return err == nil && Format(micros) == s
}

// ValueOf returns the microseconds of a value that a user gives: a time.Time, or text that Parse reads.
// Errors are as those of Parse.
func ValueOf(given any) (micros int64, err error) {
	switch x := given.(type) {
	case time.Time:
		return Of(x)
	case string:
		return Parse(x)
	}
	return 0, fmt.Errorf("of type %T is neither a time.Time nor the text of a time", given)
}

// TextOf returns the text of a time.Time, for Parse to read. It reports false of all other values.
func TextOf(given any) (text string, is bool) {
	t, is := given.(time.Time)
	if is {
		text = t.UTC().Format(time.RFC3339Nano)
	}
	return text, is
}
