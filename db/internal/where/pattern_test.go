package where

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// folds reports whether two characters differ in case alone, by Go's own definition.
func folds(a, b rune) bool { return strings.EqualFold(string(a), string(b)) }

func same(a, b rune) bool { return a == b }

// likeByDefinition is LIKE by the definition: a % is nothing, or any character and the same % again.
func likeByDefinition(pattern, x []rune, equal func(a, b rune) bool) bool {
	// reach[i] says whether the pattern so far is true of the first i characters
	reach := make([]bool, len(x)+1)
	reach[0] = true
	for i := 0; i < len(pattern); i++ {
		next := make([]bool, len(x)+1)
		switch p := pattern[i]; p {
		case '%':
			for j, ok := range reach {
				next[j] = ok || j > 0 && next[j-1]
			}
		default:
			if p == '\\' {
				i++
			}
			for j, ok := range reach[:len(x)] {
				next[j+1] = ok && (p == '_' || equal(pattern[i], x[j]))
			}
		}
		reach = next
	}
	return reach[len(x)]
}

// checkPattern compares LIKE, ILIKE and CONTAINS of one pattern with their definitions.
func checkPattern(t require, pattern string, values []string) {
	var list []any
	for _, v := range values {
		list = append(list, v)
	}
	rows := newTable(list)
	literal := "'" + strings.ReplaceAll(pattern, "'", "''") + "'"
	tests := map[string]func(v string) bool{
		"CONTAINS": func(v string) bool {
			p, x := []rune(pattern), []rune(v)
			for i := 0; i+len(p) <= len(x); i++ {
				if slices.EqualFunc(p, x[i:i+len(p)], folds) {
					return true
				}
			}
			return false
		},
		"LIKE":  func(v string) bool { return likeByDefinition([]rune(pattern), []rune(v), same) },
		"ILIKE": func(v string) bool { return likeByDefinition([]rune(pattern), []rune(v), folds) },
	}
	if !regexp.MustCompile(`^(?s:[^\\]|\\[%_\\])*$`).MatchString(pattern) {
		delete(tests, "LIKE")
		delete(tests, "ILIKE")
	}
	for op, is := range tests {
		var want []uint32
		for row, v := range values {
			if is(v) {
				want = append(want, uint32(row))
			}
		}
		if got := evaluate(t, "s "+op+" "+literal, rows); !slices.Equal(got, want) {
			t.Fatalf("s %s %q of %q: rows %v, want %v", op, pattern, values, got, want)
		}
	}
}

// LIKE, ILIKE and CONTAINS are what their definitions say, of few characters, so that they often hold.
func TestPatterns(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune("abAB kK\u212Asſ ßéÉσςΣ日")), 0, 12, -1)
	pattern := rapid.StringOfN(rapid.SampledFrom([]rune(`abAkKſςÉ日%%__\'`)), 0, 8, -1)
	rapid.Check(t, func(t *rapid.T) {
		checkPattern(t, pattern.Draw(t, "pattern"), rapid.SliceOfN(text, 1, 6).Draw(t, "values"))
	})
	values := []string{"", "red star", "Red  Star", "a red starling", "RED STAR", "re\nd", "%", "a_b", `\`}
	for _, p := range []string{"red star", "%red%", "%r_d%st_r", "_", "%_%", "%%", "", `\%`, `a\_b`, `\\`,
		"R%r", "red star%", "red%star%", "%star%red%"} {
		checkPattern(t, p, values)
	}
}

// A hostile pattern takes no more than the time that the string and the bound of a piece allow: with
// backtracking this would never end.
func TestPatternsDoNotBacktrack(t *testing.T) {
	x := strings.Repeat("a", 1<<20)
	rows := newTable([]any{x})
	for _, p := range []string{
		strings.Repeat("%a", 10000) + "b", strings.Repeat("%a_", 1000) + "%b",
		"%" + strings.Repeat("a", 200) + "_b%", strings.Repeat("%", 30000) + "b",
		"%" + strings.Repeat("a", 30000) + "b%",
	} {
		if got := evaluate(t, "s LIKE '"+p+"' OR s ILIKE '"+p+"'", rows); len(got) > 0 {
			t.Errorf("%.20s...: rows %v", p, got)
		}
	}
}

func FuzzPattern(f *testing.F) {
	for _, s := range [][2]string{{"%a_%b", "xaybzab"}, {`\%K`, "%\u212A"}, {"a%a", "a"}, {"%_a", "aa"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, x string) {
		if len(pattern) <= 200 && len(x) <= 1000 && utf8.ValidString(pattern) && utf8.ValidString(x) {
			checkPattern(t, pattern, []string{x})
		}
	})
}
