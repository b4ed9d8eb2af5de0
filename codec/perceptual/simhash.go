package perceptual

import (
	"encoding/binary"
	"unicode"
)

// shingle is how many words in a row make a feature of a text.
const shingle = 3

// SimHash returns the SimHash of a text: 64 bits in 8 bytes. Texts that differ in a few words have codes that
// differ in a few bits; codes of unrelated texts differ in about 32. Case, punctuation and spaces do not
// count. The features are all three words in a row, each as often as it occurs. A text of fewer words has
// three characters in a row instead. In scripts without spaces, such as Chinese or Thai, a letter counts as a
// word. A text without a letter or digit has the code 0.
//
// Bytes that are not UTF-8 separate words. The code of a text never changes, unless later versions of Unicode
// give its characters another class. SimHash takes about 250 ns and 24 bytes of memory a word.
//
// Source: Charikar, STOC 2002; Manku et al., WWW 2007. The hash of a word is FNV-1a of 64 bits over its code
// points in lower case, that of a feature FNV-1a over the hashes of its words, mixed by the finalizer of
// MurmurHash3. FNV-1a reads a number as 8 bytes, the lowest first.
func SimHash(text string) []byte {
	parts := words(text)
	if len(parts) < shingle {
		parts = characters(text)
	}
	var votes [64]int
	for i := range parts[:max(min(len(parts), 1), len(parts)-shingle+1)] {
		h := fnvOffset
		for _, w := range parts[i:min(i+shingle, len(parts))] {
			h = fnv(h, w)
		}
		h = mixed(h)
		for b := range votes {
			votes[b] += int(h>>b&1)*2 - 1
		}
	}
	var code uint64
	for b, n := range votes {
		if n > 0 {
			code |= 1 << b
		}
	}
	return binary.BigEndian.AppendUint64(nil, code)
}

// unspaced are the scripts that are written without spaces between words.
var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai,
	unicode.Lao, unicode.Khmer, unicode.Myanmar}

// words returns the hashes of the words of a text.
func words(text string) (all []uint64) {
	inWord := false
	for _, r := range text {
		switch {
		case !isText(r):
			inWord = false
			continue
		case unicode.In(r, unspaced...):
			all, inWord = append(all, fnvOffset), false
		case !inWord:
			all, inWord = append(all, fnvOffset), true
		}
		last := &all[len(all)-1]
		*last = fnv(*last, uint64(unicode.ToLower(r)))
	}
	return all
}

// characters returns the hashes of the characters of words.
func characters(text string) (all []uint64) {
	for _, r := range text {
		if isText(r) {
			all = append(all, fnv(fnvOffset, uint64(unicode.ToLower(r))))
		}
	}
	return all
}

// isText reports whether a character belongs to a word.
func isText(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)
}

const fnvOffset uint64 = 14695981039346656037

// fnv adds the bytes of a number, the lowest first, to a hash.
func fnv(h, x uint64) uint64 {
	for range 8 {
		h = (h ^ x&0xff) * 1099511628211
		x >>= 8
	}
	return h
}

// mixed lets every bit of a hash depend on all its bits.
func mixed(h uint64) uint64 {
	for _, factor := range []uint64{0xff51afd7ed558ccd, 0xc4ceb9fe1a85ec53} {
		h = (h ^ h>>33) * factor
	}
	return h ^ h>>33
}
