package instant

import (
	"errors"
	"time"
)

var (
	errNoTime = errors.New("is no time: YYYY-MM-DD is one, and YYYY-MM-DDThh:mm:ssZ; behind the seconds there may be decimals, and an offset such as +02:00 in place of Z")
	errFar    = errors.New("is beyond the times that a field can have, those of the years 0 to 9999")
)

// ValueOf returns the microseconds of a value that a user gives: a time.Time, or text that Parse reads.
// The error begins with a verb: the caller names the value.
func ValueOf(given any) (micros int64, err error) {
	switch x := given.(type) {
	case time.Time:
		micros, ok := Of(x)
		if !ok {
			return 0, errFar
		}
		return micros, nil
	case string:
		if t, ok := Parse(x); ok {
			return t.Micros, nil
		}
	}
	return 0, errNoTime
}

// TextOf returns the text of a time.Time, with all its decimals, for Parse to read. It reports false
// of all other values.
func TextOf(given any) (text string, is bool) {
	t, is := given.(time.Time)
	if is {
		text = t.UTC().Format(time.RFC3339Nano)
	}
	return text, is
}
