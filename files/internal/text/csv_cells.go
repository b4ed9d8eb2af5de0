package text

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/files/table"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// textIs says what a value is whose text is cell. Three kinds of digits are strings and not numbers: digits
// with a leading zero, as in a postal code; digits behind a plus, as in a telephone number; and more digits
// than an int holds.
func textIs(cell string) table.Is {
	switch cell {
	case "true", "false", "True", "False", "TRUE", "FALSE":
		return table.Bool
	}
	if instant.IsDate(cell) { // also of the year 1, which has leading zeros
		return table.Time
	}
	digits := strings.TrimLeft(cell, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' || strings.ContainsAny(digits, "_xXpP") {
		return table.Text
	}
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		if _, err := strconv.ParseInt(cell, 10, 64); err != nil || cell[0] == '+' {
			return table.Text
		}
		return table.Int
	}
	if x, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		return table.Float
	}
	return table.Text
}

// stringList reads a list of strings, in the quotes of JSON or of Python, or bare as textList has it.
func stringList(cell []byte) (list []string, bare, ok bool) {
	if json.Unmarshal(cell, &list) == nil {
		return list, false, list != nil
	}
	return textList(string(cell))
}

// textList reads a cell that holds a list of strings. DuckDB quotes a string only if it has special
// characters: [red, very new, 'x: y', NULL]. NULL is left out of the list. bare reports that some element has
// no quotes, ok that the cell is a list.
func textList(cell string) (list []string, bare, ok bool) {
	rest := strings.TrimSpace(cell)
	if len(rest) < 2 || rest[0] != '[' || rest[len(rest)-1] != ']' {
		return nil, false, false
	}
	list = []string{}
	if rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest == "" {
		return list, false, true
	}
	for {
		if rest == "" {
			return nil, false, false
		}
		if rest[0] == '"' || rest[0] == '\'' {
			var b strings.Builder
			i := 1
			for ; i < len(rest) && rest[i] != rest[0]; i++ {
				if rest[i] == '\\' && i+1 < len(rest) && strings.IndexByte(`\'"`, rest[i+1]) >= 0 {
					i++
				}
				b.WriteByte(rest[i])
			}
			if i == len(rest) {
				return nil, false, false
			}
			list, rest = append(list, b.String()), strings.TrimSpace(rest[i+1:])
		} else {
			end := strings.IndexByte(rest, ',')
			if end < 0 {
				end = len(rest)
			}
			s := strings.TrimSpace(rest[:end])
			if s == "" || strings.ContainsAny(s, "()[]{}:=\"'\\") {
				return nil, false, false
			}
			if bare = true; s != "NULL" {
				list = append(list, s)
			}
			rest = rest[end:]
		}
		if rest == "" {
			return list, bare, true
		}
		if rest[0] != ',' {
			return nil, false, false
		}
		rest = strings.TrimSpace(rest[1:])
	}
}
