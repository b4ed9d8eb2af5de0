package where

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fddhdb/fddhdb/db/internal/words"
)

// A Pattern is a test of strings by LIKE, ILIKE or CONTAINS: pieces of text in their order, with anything
// between them. The first piece begins the string, and the last one ends it; either may be empty.
//
// Each piece is taken where it stands first. That leaves the longest rest to the pieces behind it, so nothing
// is tried twice. A match takes the time of the string, for a piece with _ times the length of the piece,
// which maxAny bounds.
type Pattern struct {
	pieces []piece
	fold   bool // strings are folded first; the pieces are folded
}

// A piece is what stands between two % of a pattern.
type piece struct {
	text []byte // what it is; unused where it has a _
	any  []rune // its characters, anyRune for each _; nil: it has none
}

const (
	anyRune = -1
	maxAny  = 256 // characters of a piece that has a _
)

// matches reports whether the pattern is true of a string.
func (p *Pattern) matches(x []byte) bool {
	if p.fold {
		var room [256]byte
		x = words.AppendFolded(room[:0], x)
	}
	n, ok := p.pieces[0].begins(x)
	if !ok {
		return false
	}
	x = x[n:]
	last := len(p.pieces) - 1
	if last == 0 {
		return len(x) == 0
	}
	if n, ok = p.pieces[last].ends(x); !ok {
		return false
	}
	x = x[:len(x)-n]
	for _, piece := range p.pieces[1:last] {
		end := piece.find(x)
		if end < 0 {
			return false
		}
		x = x[end:]
	}
	return true
}

// mostGrams bounds how many sets of rows a pattern reads.
const mostGrams = 64

// grams returns folded trigrams that each string has of which the pattern is true: none if it may be true
// of strings without trigrams. p may be nil.
func (p *Pattern) grams() (all []string) {
	if p == nil {
		return nil
	}
	add := func(text string) {
		if !p.fold {
			text = string(words.AppendFolded(nil, text))
		}
		all = append(all, words.Grams(text)...)
	}
	for _, piece := range p.pieces {
		add(string(piece.text))
		for rest := piece.any; len(rest) > 0; {
			n := slices.Index(rest, anyRune)
			if n < 0 {
				n = len(rest)
			}
			add(string(rest[:n]))
			rest = rest[min(n+1, len(rest)):]
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), mostGrams)]
}

// begins reports whether the piece begins x, and how many bytes of it the piece is.
func (p *piece) begins(x []byte) (n int, ok bool) {
	if p.any == nil {
		return len(p.text), bytes.HasPrefix(x, p.text)
	}
	for _, want := range p.any {
		r, size := utf8.DecodeRune(x[n:])
		if size == 0 || want != anyRune && r != want {
			return 0, false
		}
		n += size
	}
	return n, true
}

// ends reports whether the piece ends x, and how many bytes of it the piece is.
func (p *piece) ends(x []byte) (n int, ok bool) {
	if p.any == nil {
		return len(p.text), bytes.HasSuffix(x, p.text)
	}
	for range p.any {
		_, size := utf8.DecodeLastRune(x[:len(x)-n])
		n += size
	}
	_, ok = p.begins(x[len(x)-n:])
	return n, ok
}

// find returns the place behind the first occurrence of the piece in x; -1 if there is none.
func (p *piece) find(x []byte) int {
	if p.any == nil {
		if i := bytes.Index(x, p.text); i >= 0 {
			return i + len(p.text)
		}
		return -1
	}
	for i := 0; i < len(x); {
		if n, ok := p.begins(x[i:]); ok {
			return i + n
		}
		_, size := utf8.DecodeRune(x[i:])
		i += size
	}
	return -1
}

// matching returns the strings of which a test by LIKE, ILIKE or CONTAINS is true. In a pattern of LIKE and
// ILIKE a % is any text, a _ any character; they and \ stand for themselves behind a \.
func (l literal) matching(op op) (Range, error) {
	if op == contains {
		if l.text == "" {
			return Range{Open: true}, nil
		}
		return Range{Open: true, Match: &Pattern{fold: true,
			pieces: []piece{{}, {text: words.AppendFolded(nil, l.text)}, {}}}}, nil
	}
	refused := func(reason string) (Range, error) {
		return Range{}, &Error{l.column, opText[op] + " " + shorten(quote(l.text)) + ": " + reason}
	}
	p := &Pattern{fold: op == ilike}
	var chars []rune // of the piece that goes on
	end := func() bool {
		if !slices.Contains(chars, anyRune) {
			p.pieces = append(p.pieces, piece{text: []byte(string(chars))})
		} else if len(chars) <= maxAny {
			p.pieces = append(p.pieces, piece{any: slices.Clone(chars)})
		} else {
			return false
		}
		chars = chars[:0]
		return true
	}
	escaped := false
	for _, r := range l.text {
		switch {
		case escaped && !strings.ContainsRune(`%_\`, r):
			return refused(`a \ stands before %, _ or another \`)
		case escaped || !strings.ContainsRune(`%_\`, r):
			if escaped = false; p.fold {
				r = words.Fold(r)
			}
			chars = append(chars, r)
		case r == '\\':
			escaped = true
		case r == '_':
			chars = append(chars, anyRune)
		case len(p.pieces) > 0 && len(chars) == 0: // %% is %
		case !end():
			return refused(fmt.Sprintf("between two %% are more than %d characters, with a _ among them", maxAny))
		}
	}
	if escaped {
		return refused(`a \ stands before %, _ or another \`)
	}
	if !end() {
		return refused(fmt.Sprintf("a part without a %% has more than %d characters, with a _ among them", maxAny))
	}
	return p.inRange(), nil
}

// inRange returns the strings that the pattern is true of, as the range of those with the prefix that it
// demands, and without the pattern where the range says all.
func (p *Pattern) inRange() Range {
	if p.fold {
		if len(p.pieces) == 2 && p.pieces[0].empty() && p.pieces[1].empty() {
			return Range{Open: true}
		}
		return Range{Open: true, Match: p}
	}
	first := p.pieces[0]
	if first.any == nil && len(p.pieces) == 1 {
		return Range{Lo: string(first.text), Hi: after(string(first.text))}
	}
	prefix := slices.Clone(first.text)
	if first.any != nil {
		prefix = []byte(string(first.any[:slices.Index(first.any, anyRune)]))
	}
	r := Range{Lo: string(prefix), Match: p}
	if first.any == nil && len(p.pieces) == 2 && p.pieces[1].empty() {
		r.Match = nil
	}
	if len(prefix) == 0 {
		r.Open = true
		return r
	}
	prefix[len(prefix)-1]++ // no byte of UTF-8 is the last one
	r.Hi = string(prefix)
	return r
}

func (p *piece) empty() bool { return p.any == nil && len(p.text) == 0 }
