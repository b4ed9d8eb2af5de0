package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/files/internal/matrix"
)

// maxDepth bounds the nesting of values, as scanning them recurses.
const maxDepth = 1000

// A Scanner reads one JSON text from start to end. The zero Scanner reads nothing; Reset starts it. It is not
// safe for concurrent use.
type Scanner struct {
	b     []byte // the text, which belongs to the caller
	at    int    // position of the next byte
	depth int    // nesting of the current value
}

// Reset starts with a text. The scanner keeps it until the next Reset.
func (s *Scanner) Reset(b []byte) { s.b, s.at, s.depth = b, 0, 0 }

// A Kind is the kind of a value by its first byte.
type Kind byte

// Kinds of values. Invalid is anything that starts no value, such as the end.
const (
	Invalid Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

func (k Kind) String() string {
	return [...]string{"no value", "an object", "an array", "a string", "a number", "a bool", "null"}[k]
}

// Kind returns the kind of the next value; it reads only blanks. NaN and the infinities as Python writes them
// are numbers.
func (s *Scanner) Kind() Kind {
	switch s.peek() {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'N', 'I':
		return Number
	}
	return Invalid
}

// peek returns the next byte that is not blank, or 0 at the end. No value starts with 0.
func (s *Scanner) peek() byte {
	if s.at < len(s.b) && s.b[s.at] > ' ' {
		return s.b[s.at]
	}
	return s.skipBlanks()
}

func (s *Scanner) skipBlanks() byte {
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// expected returns an error that names what should come here.
func (s *Scanner) expected(what string) error {
	if s.at >= len(s.b) {
		return fmt.Errorf("byte %d: %s is expected where the text ends", s.at, what)
	}
	return fmt.Errorf("byte %d: %s is expected, not %s", s.at, what, matrix.Quote(s.b[s.at:]))
}

// End checks that nothing follows.
func (s *Scanner) End() error {
	if s.peek(); s.at < len(s.b) {
		return s.expected("the end")
	}
	return nil
}

// Object reads an object. It calls member for each name; member reads the value. member must copy the name to
// keep it.
func (s *Scanner) Object(member func(name []byte) error) error {
	return s.list('{', '}', "an object", func() error {
		if s.peek() != '"' {
			return s.expected("a name in quotes")
		}
		name, err := s.text()
		if err != nil {
			return err
		}
		if s.peek() != ':' {
			return s.expected("':'")
		}
		s.at++
		return member(name)
	})
}

// Array reads an array. It calls element for each value; element reads it.
func (s *Scanner) Array(element func() error) error {
	return s.list('[', ']', "an array", element)
}

func (s *Scanner) list(open, end byte, what string, part func() error) error {
	if s.peek() != open {
		return s.expected(what)
	}
	if s.depth++; s.depth > maxDepth {
		return fmt.Errorf("byte %d: values nest deeper than %d", s.at, maxDepth)
	}
	s.at++
	for first := true; ; first = false {
		switch c := s.peek(); {
		case c == end:
			s.at++
			s.depth--
			return nil
		case first:
		case c == ',':
			s.at++
		default:
			return s.expected(fmt.Sprintf("',' or '%c'", end))
		}
		if err := part(); err != nil {
			return err
		}
	}
}

// String reads a string.
func (s *Scanner) String() (string, error) {
	b, err := s.text()
	return string(b), err
}

// Text reads a string. Without escapes it aliases the scanned text.
func (s *Scanner) Text() ([]byte, error) { return s.text() }

var errUTF8 = errors.New("a string is not UTF-8 text: save the file in that encoding")

// text returns the next string. Without escapes it aliases the scanned text.
func (s *Scanner) text() ([]byte, error) {
	if s.peek() != '"' {
		return nil, s.expected("a string")
	}
	end, plain, err := s.stringEnd()
	if err != nil {
		return nil, err
	}
	raw := s.b[s.at:end]
	s.at = end
	if !utf8.Valid(raw) {
		return nil, errUTF8
	}
	if plain {
		return raw[1 : len(raw)-1], nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil, fmt.Errorf("byte %d: %s is no string: %w", end-len(raw), matrix.Quote(raw), err)
	}
	// json.Unmarshal puts U+FFFD in the place of half a character, so that two keys could become one.
	if strings.ContainsRune(text, utf8.RuneError) && halfCharacter(raw) {
		return nil, fmt.Errorf("byte %d: %s: %w", end-len(raw), matrix.Quote(raw), errHalf)
	}
	return []byte(text), nil
}

var errHalf = errors.New("half a character: \\ud800 to \\udbff and \\udc00 to \\udfff come in pairs")

// halfCharacter reports whether a quoted string has an escaped surrogate without its other half. The string
// is valid JSON.
func halfCharacter(raw []byte) bool {
	unit := func(at int) rune { // the code unit escaped there, or -1
		if at+6 > len(raw) || raw[at] != '\\' || raw[at+1] != 'u' {
			return -1
		}
		n, err := strconv.ParseUint(string(raw[at+2:at+6]), 16, 16)
		if err != nil {
			return -1
		}
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		r := unit(i)
		switch {
		case !utf16.IsSurrogate(r):
			i++ // behind what is escaped
		case utf16.DecodeRune(r, unit(i+6)) == utf8.RuneError:
			return true
		default:
			i += 11
		}
	}
	return false
}

// stringEnd finds the end of the string that starts here. plain says that it has no escapes.
func (s *Scanner) stringEnd() (end int, plain bool, err error) {
	plain = true
	for i := s.at + 1; i < len(s.b); i++ {
		switch c := s.b[i]; {
		case c == '"':
			return i + 1, plain, nil
		case c == '\\':
			plain = false
			i++
		case c < ' ':
			return 0, false, fmt.Errorf(
				"byte %d: a string has the control character %q, which has to be escaped", i, c)
		}
	}
	return 0, false, fmt.Errorf("byte %d: a string does not end", s.at)
}

// Bool reads true or false.
func (s *Scanner) Bool() (bool, error) {
	switch {
	case s.word("true"):
		return true, nil
	case s.word("false"):
		return false, nil
	}
	return false, s.expected("true or false")
}

// Null reads null.
func (s *Scanner) Null() error {
	if !s.word("null") {
		return s.expected("null")
	}
	return nil
}

// NaN reads NaN, as Python writes a number that is missing. If anything else comes next it reads nothing and
// returns false.
func (s *Scanner) NaN() bool { return s.word("NaN") }

func (s *Scanner) word(w string) bool {
	s.peek()
	if !bytes.HasPrefix(s.b[s.at:], []byte(w)) {
		return false
	}
	s.at += len(w)
	return true
}

// Skip reads a value of any kind, and only checks that it is one.
func (s *Scanner) Skip() error {
	switch s.Kind() {
	case Object:
		return s.Object(func([]byte) error { return s.Skip() })
	case Array:
		return s.Array(s.Skip)
	case String:
		_, err := s.text()
		return err
	case Number:
		_, err := s.Number()
		return err
	case Bool:
		_, err := s.Bool()
		return err
	case Null:
		return s.Null()
	}
	return s.expected("a value")
}
