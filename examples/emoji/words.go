package main

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// The modality "words" describes a text by two blocks of equal weight: its
// words, and the letter sequences of shortestRun to longestRun inside them, so
// that "kitten" is near "kit" and a word that no name has is not quite lost.
const (
	shortestRun = 3
	longestRun  = 5

	// wordsDim is the dimension of the modality "words". Words and runs are
	// hashed into it. mAP of 128-bit codes, by four-fold cross-validation on
	// the training emoji: 1024 .67, 2048 .69, 4096 .70; collisions get rarer.
	wordsDim = 2048
)

// A vocabulary knows the words and letter runs of the training names and how
// rare each is. What it does not know gets no weight at all: an unknown word
// would otherwise fall on the place of some other word and pass for it. So
// the known words of a free query decide, whatever stands around them.
//
// A vocabulary does not change once learned and may be shared.
type vocabulary struct {
	weights map[string]float64 // by feature, see wordFeature and runFeatures
}

// learnVocabulary counts the names' features. A weight is the root of the
// usual inverse document frequency: the full one plays down just the words
// that name a group ("face", "flag", "button") and loses nearly .01 mAP.
func learnVocabulary(names []string) *vocabulary {
	seenIn := make(map[string]int)
	for _, name := range names {
		distinct := make(map[string]bool)
		for _, word := range tokens(name) {
			distinct[wordFeature(word)] = true
			for _, run := range runFeatures(word) {
				distinct[run] = true
			}
		}
		for feature := range distinct {
			seenIn[feature]++
		}
	}
	v := &vocabulary{weights: make(map[string]float64)}
	for feature, n := range seenIn {
		// A run of a single name tells nothing that its word does not, and
		// more than half of all runs are such: they would only collide.
		if n == 1 && isRun(feature) {
			continue
		}
		v.weights[feature] = math.Sqrt(1 + math.Log(float64(1+len(names))/float64(1+n)))
	}
	return v
}

// embed describes text in wordsDim numbers, together of length 1. It answers
// false, and zeros, when it knows nothing of the text.
func (v *vocabulary) embed(text string) (features []float32, ok bool) {
	words, runs := make(map[string]int), make(map[string]int)
	for _, word := range tokens(text) {
		words[wordFeature(word)]++
		for _, run := range runFeatures(word) {
			runs[run]++
		}
	}
	var all [wordsDim]float64
	for _, counts := range []map[string]int{words, runs} {
		var block [wordsDim]float64
		// In order, because floats that meet on one place must add up the same every time.
		for _, feature := range slices.Sorted(maps.Keys(counts)) {
			place, sign := hashFeature(feature)
			block[place] += sign * v.weights[feature] * (1 + math.Log(float64(counts[feature])))
		}
		scaleToUnit(block[:])
		for i, x := range block {
			all[i] += x
		}
	}
	scaleToUnit(all[:])
	features = make([]float32, wordsDim)
	for i, x := range all {
		features[i] = float32(x)
		ok = ok || x != 0
	}
	return features, ok
}

// embedAll describes all texts; a text without anything known gives zeros.
func (v *vocabulary) embedAll(texts []string) [][]float32 {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i], _ = v.embed(text)
	}
	return all
}

// unknownWords returns the words of text that no training name has. They
// still count by their letter runs, as far as those are known.
func (v *vocabulary) unknownWords(text string) []string {
	var unknown []string
	for _, word := range tokens(text) {
		if v.weights[wordFeature(word)] == 0 {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

// tokens splits text into lower-case words, each without accents and without
// a plural's s.
func tokens(text string) []string {
	letters := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1 // an accent, once NFD has taken it off its letter
		}
		return r
	}, norm.NFD.String(strings.ToLower(text)))
	words := strings.FieldsFunc(letters, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	for i, w := range words {
		if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			words[i] = w[:len(w)-1]
		}
	}
	return words
}

// wordFeature and runFeatures name the features of a word. The edges of a
// word are part of its runs: "<cat" is not in "scatter".
func wordFeature(word string) string { return "=" + word }

func runFeatures(word string) []string {
	letters := []rune("<" + word + ">")
	var runs []string
	for length := shortestRun; length <= longestRun; length++ {
		for i := 0; i+length <= len(letters); i++ {
			runs = append(runs, "~"+string(letters[i:i+length]))
		}
	}
	return runs
}

func isRun(feature string) bool { return feature[0] == '~' }

// hashFeature gives a feature its place and a sign, so that two features on
// one place cancel as often as they add up (Weinberger et al. 2009).
func hashFeature(feature string) (place int, sign float64) {
	h := fnv.New64a()
	h.Write([]byte(feature))
	// FNV-1a leaves the last bytes in the low bits; the product carries them up.
	mixed := h.Sum64() * 0x9E3779B97F4A7C15
	sign = 1
	if mixed>>63 == 1 {
		sign = -1
	}
	return int(mixed >> 32 % wordsDim), sign
}
