// Package words folds texts, and cuts them into the terms of an index of words. Filters (package where) and
// items (package record) cut alike.
//
// Fold has the equivalence of strings.EqualFold, Unicode's simple folding: a character stays one character,
// so ß and ss differ. TestFold compares the two.
package words

import (
	"slices"
	"unicode"
	"unicode/utf8"
)

// Bounds of an index of words.
const (
	// MaxBytes is the length of the longest text whose trigrams are indexed, and how much of a longer text
	// is cut into words. It bounds what a write costs.
	MaxBytes = 16 << 10
	// MaxRunes is how many characters of a word count.
	MaxRunes = 64
	// GramRunes is the length of a trigram, in characters.
	GramRunes = 3
)

// Terms begin with one of these bytes.
const (
	Long = 0x00 // nothing follows: the text is longer than MaxBytes, and its trigrams are no terms
	Gram = 0x01 // a trigram of the folded text
	Word = 0x02 // a folded word
)

// Terms returns the terms of a text, ascending, each once.
func Terms(text string) []string {
	var out []string
	folded := string(AppendFolded(nil, start(text)))
	if len(text) > MaxBytes {
		out = append(out, string([]byte{Long}))
	} else {
		for _, g := range Grams(folded) {
			out = append(out, string([]byte{Gram})+g)
		}
	}
	for _, w := range wordsOf(folded) {
		out = append(out, string([]byte{Word})+w)
	}
	return out
}

// start returns the first MaxBytes of a text, or a little less: whole characters.
func start(text string) string {
	if len(text) <= MaxBytes {
		return text
	}
	n := MaxBytes
	for n > MaxBytes-utf8.UTFMax && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// Fold returns the one character that stands for all that differ from r in case alone.
func Fold(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	least := r
	for x := unicode.SimpleFold(r); x != r; x = unicode.SimpleFold(x) {
		least = min(least, x)
	}
	if least < utf8.RuneSelf { // the Kelvin sign, and the long s
		return Fold(least)
	}
	return least
}

// AppendFolded appends a folded text. What is not UTF-8 becomes U+FFFD.
func AppendFolded[T string | []byte](dst []byte, text T) []byte {
	for _, r := range string(text) {
		dst = utf8.AppendRune(dst, Fold(r))
	}
	return dst
}

// Grams returns the trigrams of a folded text, ascending, each once. Each is a part of text.
func Grams(text string) []string {
	var starts [GramRunes]int // of the last characters
	var out []string
	n := 0
	for i, r := range text {
		starts[n%GramRunes] = i
		if n++; n >= GramRunes {
			out = append(out, text[starts[n%GramRunes]:i+utf8.RuneLen(r)])
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Of returns the words of a text, folded, ascending, each once. Whatever is no letter, digit or mark stands
// between words. Of reads the first MaxBytes of text, and MaxRunes of a word.
func Of(text string) []string { return wordsOf(string(AppendFolded(nil, start(text)))) }

// wordsOf returns the words of a folded text, each a part of it.
func wordsOf(folded string) []string {
	var out []string
	from, runes := -1, 0 // of the word that goes on
	end := func(i int) {
		if from >= 0 {
			out = append(out, folded[from:i])
		}
		from = -1
	}
	for i, r := range folded {
		switch {
		case !unicode.In(r, unicode.L, unicode.M, unicode.N):
			end(i)
			runes = 0
		case runes == MaxRunes:
			end(i)
		default:
			if runes == 0 {
				from = i
			}
			runes++
		}
	}
	end(len(folded))
	slices.Sort(out)
	return slices.Compact(out)
}
