package main

import (
	"math"
	"slices"
	"testing"
)

// The names nearest to a query must be the ones that share its words.
func TestEmbedFindsNames(t *testing.T) {
	d := dataForTest(t)
	var names []string
	for _, e := range d.items {
		names = append(names, e.name)
	}
	v := learnVocabulary(names)
	vectors := v.embedAll(names)
	for _, test := range []struct{ query, want string }{
		{"red heart", "red heart"},
		{"Red Hearts!", "red heart"},
		{"cat", "cat"},
		{"cats", "cat"},
		{"please find me a cat", "cat"},
		{"sad face", "sad but relieved face"},
		{"france", "flag: France"},
		{"flag reunion", "flag: Réunion"},
		{"astronaut woman", "woman astronaut"},
		{"tacos", "taco"},
	} {
		f, ok := v.embed(test.query)
		if !ok {
			t.Errorf("nothing is known of %q", test.query)
		}
		order := make([]int, len(names))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int {
			return int(math.Copysign(1, dot(f, vectors[b])-dot(f, vectors[a])))
		})
		var top []string
		for _, i := range order[:3] {
			top = append(top, names[i])
		}
		if !slices.Contains(top, test.want) {
			t.Errorf("%q finds %q, not %q", test.query, top, test.want)
		}
	}
}

// A question that few names answer takes them in; every other one is described as a name is.
func TestEmbedQuestion(t *testing.T) {
	v := learnVocabulary([]string{"red heart", "flag: Kenya", "red car", "red rose", "red apple",
		"flag: Peru", "flag: Oman", "flag: Chad"})
	for question, name := range map[string]string{
		"Kenya":                "Kenya flag: Kenya",
		"the heart":            "the heart red heart",
		"red heart":            "red heart red heart",
		"red":                  "red", // many
		"flag":                 "flag",
		"heart rose":           "heart rose", // none has both
		"zzz":                  "zzz",
		"":                     "",
		"red Kenya, Kenya red": "red Kenya, Kenya red",
	} {
		got, ok := v.embedQuestion(question)
		if want, known := v.embed(name); ok != known || !slices.Equal(got, want) {
			t.Errorf("%q is not described as %q", question, name)
		}
	}
}

func TestEmbedIsOfUnitLengthAndRepeatable(t *testing.T) {
	d := dataForTest(t)
	train, held := d.split()
	v, again := learnVocabulary(d.names(train)), learnVocabulary(d.names(train))
	unknown := 0
	for _, name := range d.names(held) {
		f, ok := v.embed(name)
		if g, _ := again.embed(name); !slices.Equal(f, g) {
			t.Fatalf("%q is embedded in two ways", name)
		}
		want := 1.0
		if !ok {
			want = 0
			unknown++
		}
		if n := dot(f, f); len(f) != wordsDim || math.Abs(n-want) > 1e-5 {
			t.Errorf("%q: %d numbers of squared length %v", name, len(f), n)
		}
	}
	t.Logf("nothing is known of %d of %d held-out names", unknown, len(held))
}

func TestUnknownWords(t *testing.T) {
	v := learnVocabulary([]string{"red heart", "grinning cat", "red apple"})
	for _, test := range []struct {
		query   string
		unknown []string
		ok      bool
	}{
		{"red cat", nil, true},
		{"a REDDISH cat", []string{"a", "reddish"}, true},
		{"reddish", []string{"reddish"}, true}, // found by "<red", which two names have
		{"zzz", []string{"zzz"}, false},
		{"", nil, false},
		{"?!", nil, false},
	} {
		f, ok := v.embed(test.query)
		if ok != test.ok {
			t.Errorf("embed(%q) answers %v", test.query, ok)
		}
		if !ok && dot(f, f) != 0 {
			t.Errorf("embed(%q) is not zero", test.query)
		}
		if got := v.unknownWords(test.query); !slices.Equal(got, test.unknown) {
			t.Errorf("unknownWords(%q) = %q, want %q", test.query, got, test.unknown)
		}
	}
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"flag: Côte d’Ivoire":    {"flag", "cote", "d", "ivoire"},
		"smiling cat heart-eyes": {"smiling", "cat", "heart", "eye"},
		"glass of bus":           {"glass", "of", "bus"},
		"Hot Springs":            {"hot", "spring"},
		"keycap: 10":             {"keycap", "10"},
	} {
		if got := tokens(text); !slices.Equal(got, want) {
			t.Errorf("tokens(%q) = %q, want %q", text, got, want)
		}
	}
}

// embedAll describes all texts. A text without any known feature gives zeros.
func (v *vocabulary) embedAll(texts []string) [][]float32 {
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i], _ = v.embed(text)
	}
	return all
}
