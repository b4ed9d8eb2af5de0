package words

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
)

// Two characters fold alike if and only if strings.EqualFold takes them for equal.
func TestFold(t *testing.T) {
	alike := map[rune][]rune{}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) {
			alike[Fold(r)] = append(alike[Fold(r)], r)
		}
	}
	for folded, all := range alike {
		orbit := 1
		for x := unicode.SimpleFold(folded); x != folded; x = unicode.SimpleFold(x) {
			orbit++
		}
		if orbit != len(all) {
			t.Errorf("%q: %d characters fold to it, %d are equal to it", folded, len(all), orbit)
		}
		for _, r := range all {
			if !strings.EqualFold(string(r), string(folded)) {
				t.Errorf("%q folds to %q", r, folded)
			}
		}
	}
}

func TestGrams(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := string(AppendFolded(nil, rapid.String().Draw(t, "text")))
		var want []string
		for r := []rune(text); len(r) >= 3; r = r[1:] {
			want = append(want, string(r[:3]))
		}
		slices.Sort(want)
		if got := Grams(text); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}

func TestWords(t *testing.T) {
	long := strings.Repeat("x", 200)
	for text, want := range map[string][]string{
		"":                          nil,
		" -- ":                      nil,
		"A red star, a RED Star!":   {"a", "red", "star"},
		"it's 2024-05, Größe":       {"05", "2024", "grÖße", "it", "s"},
		"\u212Aelvin":               {"kelvin"},
		"हिन्दी":                    {"हिन्दी"},
		"e\u0301t":                  {"e\u0301t"},
		long + " " + long[:3]:       {"xxx", long[:MaxRunes]},
		long[:MaxRunes] + "." + "y": {long[:MaxRunes], "y"},
	} {
		if got := Of(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Of(strings.Repeat("é ", MaxBytes) + "z"); !slices.Equal(got, []string{"É"}) {
		t.Errorf("a long text: %q", got)
	}
	if got := Of(strings.Repeat(" ", MaxBytes-1) + "é"); len(got) > 0 {
		t.Errorf("a character at the bound: %q", got)
	}
}

// Words are those that FieldsFunc finds.
func TestWordsAsFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("aAéÉ1 -_日\u0301")), 0, 60, -1).Draw(t, "text")
		want := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
		})
		for i := range want {
			want[i] = string(AppendFolded(nil, want[i]))
		}
		slices.Sort(want)
		if got := Of(text); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
	})
}
