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

// The modality "words" describes a text by two blocks of equal weight: its words, and
// the sequences of shortestRun to longestRun letters inside them. So "kitten" is near
// "kit", and a word that no name has is not quite lost.
const (
	shortestRun = 3
	longestRun  = 5

	// wordsDim is the dimension of the modality "words". Words and runs are hashed into
	// it. mAP of 128-bit codes, by four-fold cross-validation on the training emoji:
	// 1024 .67, 2048 .69, 4096 .70; a larger dimension has fewer collisions.
	wordsDim = 2048
)

// A vocabulary knows the words and letter runs of the training names, and how rare each
// is. Unknown ones get no weight at all: an unknown word would otherwise share the
// place of another word and be taken for it. So only the known words of a free query
// decide.
//
// A vocabulary does not change once it is learned, so goroutines may share it.
type vocabulary struct {
	weights map[string]float64  // by feature; see wordFeature and runFeatures
	having  map[string][]string // by word: the names that have it
}

// learnVocabulary counts the features of the names. A weight is the square root of the
// usual inverse document frequency. The full frequency gives little weight to the words
// that name a group ("face", "flag", "button"), and costs nearly .01 mAP.
func learnVocabulary(names []string) *vocabulary {
	v := &vocabulary{weights: make(map[string]float64), having: make(map[string][]string)}
	seenIn := make(map[string]int)
	for _, name := range names {
		distinct := make(map[string]bool)
		for _, word := range tokens(name) {
			if !distinct[wordFeature(word)] {
				v.having[word] = append(v.having[word], name)
			}
			distinct[wordFeature(word)] = true
			for _, run := range runFeatures(word) {
				distinct[run] = true
			}
		}
		for feature := range distinct {
			seenIn[feature]++
		}
	}
	for feature, n := range seenIn {
		// A run of a single name says no more than its word does. More than half of all
		// runs are of this kind, and would only collide with others.
		if n == 1 && isRun(feature) {
			continue
		}
		v.weights[feature] = math.Sqrt(1 + math.Log(float64(1+len(names))/float64(1+n)))
	}
	return v
}

// embed describes text by wordsDim numbers, together of length 1. ok is false, and the
// numbers are zeros, if it knows nothing of the text.
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
		// The features are added in order, because floats that meet on one place must
		// add up the same every time.
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

// mostNames is how many names may stand for a question.
const mostNames = 3

// embedQuestion describes the text of somebody who asks. Where few names have all the words of it that
// are known, it takes in these names: what "Kenya" is, a code cannot tell, as one name has the word; but
// that name says that it is a flag.
func (v *vocabulary) embedQuestion(text string) (features []float32, ok bool) {
	var names []string
	for i, word := range slices.DeleteFunc(tokens(text),
		func(word string) bool { return v.having[word] == nil }) {
		if i == 0 {
			names = slices.Clone(v.having[word])
		}
		names = slices.DeleteFunc(names,
			func(name string) bool { return !slices.Contains(v.having[word], name) })
	}
	if len(names) <= mostNames {
		text += " " + strings.Join(names, " ")
	}
	return v.embed(text)
}

// unknownWords returns the words of text that no training name has. Their known letter
// runs still count.
func (v *vocabulary) unknownWords(text string) []string {
	var unknown []string
	for _, word := range tokens(text) {
		if v.weights[wordFeature(word)] == 0 {
			unknown = append(unknown, word)
		}
	}
	return unknown
}

// tokens splits text into lower-case words, without accents and without the s of a
// plural.
func tokens(text string) []string {
	letters := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1 // an accent that NFD has separated from its letter
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

// wordFeature and runFeatures name the features of a word. The edges of a word are part
// of its runs, so "<cat" is not in "scatter".
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

// hashFeature gives a feature its place and a sign. So two features on one place cancel
// each other as often as they add up (Weinberger et al. 2009).
func hashFeature(feature string) (place int, sign float64) {
	h := fnv.New64a()
	h.Write([]byte(feature))
	// FNV-1a keeps the last bytes in the low bits. The product carries them up.
	mixed := h.Sum64() * 0x9E3779B97F4A7C15
	sign = 1
	if mixed>>63 == 1 {
		sign = -1
	}
	return int(mixed >> 32 % wordsDim), sign
}
