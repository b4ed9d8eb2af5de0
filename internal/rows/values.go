package rows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// Value converts a value of a file to the type of a field.
func Value(typ db.FieldType, v any) (any, error) {
	switch x := v.(type) {
	case string:
		switch typ {
		case db.String:
			return x, nil
		case db.Time:
			return parseTime(x)
		}
	case bool:
		if typ == db.Bool {
			return x, nil
		}
	case json.Number:
		switch typ {
		case db.Int, db.Float:
			return ParseValue(typ, x.String())
		case db.Time:
			return nil, fmt.Errorf("%v is a number, and a time is text, as 2024-05-01T12:30:00Z", v)
		}
	case int64:
		switch typ {
		case db.Int:
			return x, nil
		case db.Float:
			return float64(x), nil
		}
	case float64:
		if typ == db.Float {
			return x, nil
		}
	case time.Time:
		switch typ {
		case db.Time:
			return x, nil
		case db.String:
			return x.Format(time.RFC3339Nano), nil
		}
	}
	return nil, fmt.Errorf("%v is not of type %s", v, typ)
}

// ParseValue parses the text of a value of a field.
func ParseValue(typ db.FieldType, s string) (any, error) {
	switch typ {
	case db.String:
		return s, nil
	case db.Int:
		v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%q does not fit into an int, of 64 bits", s)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not an int", s)
		}
		return v, nil
	case db.Float:
		v, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if errors.Is(err, strconv.ErrRange) {
			return nil, fmt.Errorf("%q does not fit into a float, of 64 bits", s)
		}
		if err != nil {
			return nil, fmt.Errorf("%q is not a float", s)
		}
		return v, nil
	case db.Bool:
		switch strings.ToLower(strings.TrimSpace(s)) {
		case "true", "1":
			return true, nil
		case "false", "0":
			return false, nil
		}
		return nil, fmt.Errorf("%q is neither true nor false", s)
	case db.Time:
		return parseTime(strings.TrimSpace(s))
	}
	return nil, fmt.Errorf("unknown type %q", typ)
}

// parseTime parses the text of a time.
func parseTime(s string) (any, error) {
	micros, err := instant.ValueOf(s)
	if err != nil {
		return nil, fmt.Errorf("%q %w", s, err)
	}
	return instant.Time(micros), nil
}
