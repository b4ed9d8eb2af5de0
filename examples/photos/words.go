package main

import (
	"slices"
	"strings"
)

// vocabulary lists the words of captions, one for each column of the texts. Small words
// such as "the" say nothing and are left out.
func vocabulary() []string {
	var words []string
	for _, things := range [][]thing{places, times, subjects} {
		for _, t := range things {
			for _, phrase := range t.words {
				words = append(words, content(phrase)...)
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// content returns the words of a text without the small ones.
func content(text string) []string {
	small := []string{"a", "above", "at", "below", "by", "in", "my", "on", "our", "the", "under"}
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' })
	return slices.DeleteFunc(words, func(w string) bool { return slices.Contains(small, w) })
}

// textVector returns a vector with 1 for each word of the vocabulary that is in the
// text, otherwise 0; and the words of the text that the vocabulary lacks.
func textVector(text string) (x []float32, unknown []string) {
	words := vocabulary()
	x = make([]float32, len(words))
	for _, w := range content(text) {
		if i, ok := slices.BinarySearch(words, w); ok {
			x[i] = 1
		} else {
			unknown = append(unknown, w)
		}
	}
	return x, unknown
}
