package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/jsontext"
	"github.com/fddhdb/fddhdb/internal/instant"
)

// lookAt looks at a cell.
func (t *csvTable) lookAt(l *Look, cell string) {
	if !l.Enough() {
		if _, _, ok := textList(cell); ok {
			l.lists++
		} else {
			l.others++
		}
	}
	if cell[0] != '[' {
		if l.Type == "string" { // which holds any text
			if !l.Enough() {
				t.cell = append(t.cell[:0], cell...)
				l.Scalar("string", t.cell)
			}
			return
		}
		t.cell = append(t.cell[:0], cell...)
		l.Scalar(textType(cell), t.cell)
		return
	}
	if l.Enough() && l.Kind != Scalars {
		return
	}
	place := fmt.Sprintf("line %d", t.line)
	if list, ok := stringList(cell); ok {
		l.List(Strings, len(list), place, list[:min(len(list), ListStart)])
		return
	}
	t.cell = append(t.cell[:0], cell...)
	t.scan.Reset(t.cell)
	n := 0
	var start []string
	err := t.scan.Array(func() error {
		text, err := t.scan.Number()
		l.Element(text)
		if n++; n <= ListStart {
			start = append(start, string(text))
		}
		return err
	})
	if err == nil {
		err = t.scan.End()
	}
	switch {
	case err != nil && l.Kind == Numbers: // an error of the row, when it is read
	case err != nil:
		l.Scalar("string", t.cell)
	default:
		l.List(Numbers, n, place, start)
	}
}

// textType returns the type of a field that has the text of cell among its values. Three kinds of digits
// are strings and not numbers: digits with a leading zero, as in a postal code; digits behind a plus, as
// in a telephone number; and more digits than an int holds.
func textType(cell string) string {
	switch cell {
	case "true", "false", "True", "False", "TRUE", "FALSE":
		return "bool"
	}
	if instant.IsDate(cell) { // also of the year 1, which has leading zeros
		return "time"
	}
	digits := strings.TrimLeft(cell, "+-")
	if len(digits) > 1 && digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9' || strings.ContainsAny(digits, "_xXpP") {
		return "string"
	}
	if digits != "" && strings.Trim(digits, "0123456789") == "" {
		if _, err := strconv.ParseInt(cell, 10, 64); err != nil || cell[0] == '+' {
			return "string"
		}
		return "int"
	}
	if x, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		return "float"
	}
	return "string"
}

// stringList reads a list of strings, all in the quotes of JSON or of Python.
func stringList(cell string) ([]string, bool) {
	var list []string
	if json.Unmarshal([]byte(cell), &list) == nil {
		return list, len(list) > 0
	}
	list, bare, ok := textList(cell)
	return list, ok && !bare && len(list) > 0
}

// textList reads a cell that holds a list of strings. DuckDB quotes a string only if it has special
// characters: [red, very new, 'x: y', NULL]. NULL is left out of the list. bare reports that some element has no
// quotes, ok that the cell is a list.
func textList(cell string) (list []string, bare, ok bool) {
	rest := strings.TrimSpace(cell)
	if len(rest) < 2 || rest[0] != '[' || rest[len(rest)-1] != ']' {
		return nil, false, false
	}
	if rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest == "" {
		return nil, false, true
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

// take puts a cell into the item.
func (t *csvTable) take(i int, cell string, it *Item) (err error) {
	u := &t.uses[i]
	if u.Role != AsVector && u.Role != LeftAside && !utf8.ValidString(cell) {
		return errors.New("is not UTF-8 text: save the file in that encoding")
	}
	switch u.Role {
	case AsKey:
		if cell == "" {
			return errNoKey
		}
		it.Key = cell
	case AsLabels:
		if list, ok := stringList(cell); ok {
			it.Labels = append(it.Labels, list...)
			return nil
		}
		if t.looks[i].Kind == Numbers {
			return t.labels(i, cell, it)
		}
		if t.looks[i].Listed {
			list, _, ok := textList(cell)
			if !ok {
				return fmt.Errorf("is %s, and no list such as [a, b], as the first cells are", quote([]byte(cell)))
			}
			it.Labels = append(it.Labels, list...)
			return nil
		}
		label := cell
		if typ := t.looks[i].Type; typ == "int" || typ == "float" {
			if label, err = WholeLabel([]byte(cell)); err != nil || label == "" {
				return err
			}
		}
		if label != "[]" {
			it.Labels = u.Labels(it.Labels, label)
		}
	case AsLabel:
		on, err := strconv.ParseBool(cell)
		if err != nil {
			return errFlag
		}
		if on {
			it.Labels = append(it.Labels, u.Name)
		}
	case AsVector:
		t.cell = append(t.cell[:0], cell...)
		t.scan.Reset(t.cell)
		if t.scan.Kind() != jsontext.Array {
			return fmt.Errorf("is %s, where a vector is expected, such as [0.5,1]", quote(t.cell))
		}
		x, err := t.scan.Float32s(t.dense[i][:0], maxDim)
		if err == nil {
			err = t.scan.End()
		}
		if t.dense[i] = x; len(x) > 0 {
			it.Vectors[u.Name] = x
		}
		return err
	case AsField:
		it.Fields[u.Name], err = textValue(u.Type, cell)
	}
	return err
}

// labels adds the labels of a list of numbers to the item.
func (t *csvTable) labels(i int, cell string, it *Item) error {
	t.cell = append(t.cell[:0], cell...)
	t.scan.Reset(t.cell)
	n := -1
	err := t.scan.Array(func() error {
		n++
		text, err := t.scan.Number()
		if err != nil {
			return err
		}
		label, err := WholeLabel(text)
		if t.looks[i].Hot() {
			if label != "0" && label != "1" {
				return errFlag
			}
			label = map[string]string{"1": strconv.Itoa(n)}[label]
		}
		if label != "" {
			it.Labels = append(it.Labels, label)
		}
		return err
	})
	if err == nil {
		err = t.scan.End()
	}
	return err
}

// textValue returns a value of a field of a type. Of a type that this package does not
// know it is the text.
func textValue(typ, cell string) (any, error) {
	switch typ {
	case "int", "float":
		return json.Number(strings.TrimSpace(cell)), nil
	case "bool":
		b, err := strconv.ParseBool(strings.TrimSpace(cell))
		if err != nil {
			return nil, fmt.Errorf("%s is neither true nor false", quote([]byte(cell)))
		}
		return b, nil
	}
	return cell, nil
}
