package perceptual

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// page returns a text of so many words, each seed another one.
func page(seed uint64, n int) []string {
	r := rand.New(rand.NewPCG(seed, 2))
	words := make([]string, n)
	for i := range words {
		// Few words are frequent and most are rare, as in a language.
		words[i] = fmt.Sprintf("word%d", int(float64(n)*r.Float64()*r.Float64()*r.Float64()))
	}
	return words
}

// A page with one other word is near the page, and another page is not.
func TestEditedPagesAreNear(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	total := 0
	for seed := range uint64(40) {
		words := page(seed, 400)
		code := SimHash(strings.Join(words, " "))
		if d := distance(code, SimHash(strings.Join(page(seed+1000, 400), " "))); d < 12 {
			t.Errorf("page %d: another page is %d bits away", seed, d)
		}
		words[r.IntN(len(words))] = "edited"
		d := distance(code, SimHash(strings.Join(words, " ")))
		if total += d; d > 9 {
			t.Errorf("page %d: one other word changes %d bits", seed, d)
		}
	}
	if total > 40*3 {
		t.Errorf("one other word changes %d bits in 40 pages", total)
	}
}

func TestSimHashSeesWords(t *testing.T) {
	same := func(a, b string) {
		t.Helper()
		if x, y := SimHash(a), SimHash(b); !bytes.Equal(x, y) {
			t.Errorf("%q has %x, %q has %x", a, x, b, y)
		}
	}
	same("The quick brown fox jumps.", "  the QUICK, brown\r\n\tfox -- jumps!")
	same("ÄRGER über alles hier", "ärger Über Alles Hier")
	same("Hello!", "hello")
	same("", " \t.,;\xff\xfe")
	same("a\xffb c d", "a b c d")
	for _, others := range [][2]string{{"one two three four", "four three two one"}, {"ab", "ba"}, {"x", "y"},
		{"今天天气很好我们去公园", "昨天晚上下了一场大雨"}} {
		if d := distance(SimHash(others[0]), SimHash(others[1])); d < 10 {
			t.Errorf("%q and %q are %d bits apart", others[0], others[1], d)
		}
	}
	if code := SimHash("..."); !bytes.Equal(code, make([]byte, 8)) {
		t.Errorf("no words: %x", code)
	}
}

// Scripts without spaces have near codes, too, when a word changes.
func TestSimHashWithoutSpaces(t *testing.T) {
	const text = "今天天气很好，我们一起去公园散步，看见很多人在湖边放风筝，孩子们在草地上跑来跑去，" +
		"老人坐在树下下棋聊天，大家都很开心，傍晚的时候我们才慢慢走回家，路上买了一些水果和面包"
	edited := strings.Replace(text, "傍晚", "中午", 1)
	if d := distance(SimHash(text), SimHash(edited)); d == 0 || d > 14 {
		t.Errorf("%d bits differ", d)
	}
}

// The codes of texts are stored, so they must never change.
func TestSimHashIsStable(t *testing.T) {
	for text, want := range map[string]string{
		"the quick brown fox jumps over the lazy dog": "ad4c153458ed91fb",
		"Äpfel":  "d3748898eb6cbecc",
		"今天天气很好": "99e1e7cc40b4c050",
		"a":      "5aa6712953ceca55",
	} {
		if got := fmt.Sprintf("%x", SimHash(text)); got != want {
			t.Errorf("%q: %s, was %s", text, got, want)
		}
	}
}

func BenchmarkSimHash(b *testing.B) {
	text := strings.Join(page(1, 1000), " ")
	b.ReportAllocs()
	for b.Loop() {
		SimHash(text)
	}
}
