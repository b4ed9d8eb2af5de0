package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/attach"
)

// TestFinder builds the database once, like the program, and then asks the kept
// database.
func TestFinder(t *testing.T) {
	if testing.Short() {
		t.Skip("draws all emoji and trains on them")
	}
	dir := filepath.Join(t.TempDir(), "emoji.fddhdb")
	var first bytes.Buffer
	if err := run(t.Context(), options{db: dir}, &first); err != nil {
		t.Fatal(err)
	}
	t.Log(first.String())

	t.Run("figures", func(t *testing.T) {
		for _, direction := range []string{"picture -> words", "words -> picture"} {
			m := regexp.MustCompile(direction + ` +(0\.\d+)`).FindStringSubmatch(first.String())
			if m == nil {
				t.Fatalf("no mAP of %s", direction)
			}
			if mAP, _ := strconv.ParseFloat(m[1], 64); mAP < 0.6 {
				t.Errorf("%s: mAP %v, was at least .7", direction, mAP)
			}
		}
	})

	t.Run("encode", func(t *testing.T) {
		others, err := attach.Open(t.Context(), dir, attach.Options{}) // as fddhdb explore has it open
		if err != nil {
			t.Fatal(err)
		}
		defer others.Close()
		var out bytes.Buffer
		if err := encode(t.Context(), dir, strings.NewReader("red heart\nqqqq\n"), &out); err != nil {
			t.Fatal(err)
		}
		heart, refusal, _ := strings.Cut(out.String(), "\n")
		var vector db.Sparse
		if err := json.Unmarshal([]byte(heart), &vector); err != nil {
			t.Fatal(err)
		}
		emoji, err := others.Collection(t.Context(), "emoji")
		if err != nil {
			t.Fatal(err)
		}
		found, err := emoji.Search(t.Context(), db.Query{From: "words", To: "picture", Sparse: &vector})
		if err != nil || found.Hits[0].Key != "❤️" {
			t.Errorf("the vector of red heart finds %v, %v", found, err)
		}
		if !strings.HasPrefix(refusal, `{"error":"nothing in \"qqqq\"`) {
			t.Errorf("of qqqq there is %s", refusal)
		}
	})

	t.Run("reopened", func(t *testing.T) {
		var again bytes.Buffer
		if err := run(t.Context(), options{db: dir}, &again); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(again.String(), "Reusing") || strings.Contains(again.String(), "Training") {
			t.Errorf("the database was not reused:\n%s", again.String())
		}
		if got, want := demonstration(again.String()), demonstration(first.String()); got != want {
			t.Errorf("the second run answers\n%s\nthe first\n%s", got, want)
		}
	})

	t.Run("prompt", func(t *testing.T) {
		for _, test := range []struct{ typed, want string }{
			{"??\nred heart\n\ncat\n", "red heart, "},
			{"🐱", "cat face  "},
		} {
			var out bytes.Buffer
			if err := run(t.Context(), options{db: dir, prompt: strings.NewReader(test.typed)},
				&out); err != nil {
				t.Fatal(err)
			}
			_, answers, _ := strings.Cut(out.String(), "Now you")
			if !strings.Contains(answers, test.want) {
				t.Errorf("%q is answered\n%s", test.typed, answers)
			}
			if strings.Contains(answers, "  cat  ") {
				t.Error("an empty line does not end it")
			}
		}
	})

	f, err := openFinder(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.close(); err != nil {
			t.Error(err)
		}
	}()

	t.Run("ask", func(t *testing.T) {
		for _, test := range []struct {
			query  string
			groups string // groups of the right answers
			first  string // name of the first hit; "" for any
		}{
			{"cat face", "Animals & Nature, Smileys & Emotion", "cat face"},
			{"bug", "Animals & Nature", "bug"},
			{"red heart", "Smileys & Emotion", "red heart"},
			{"pizza", "Food & Drink", "pizza"},
			{"FLAG Germany!", "Flags", "flag: Germany"},
			{"Kenya", "Flags", "flag: Kenya"},
			{"tokyo", "Travel & Places", "Tokyo tower"},
			{"🐱", "Animals & Nature, Smileys & Emotion", ""},
			{"🌷", "Animals & Nature", ""}, // held out
			{"❤", "Smileys & Emotion", ""},
			{"👋🏽", "People & Body", ""},
		} {
			a, err := f.ask(t.Context(), test.query)
			if err != nil {
				t.Errorf("%s: %v", test.query, err)
				continue
			}
			if len(a.hits) != hitsPerQuery || len(a.unknown) > 0 {
				t.Errorf("%s: %d hits, unknown %q", test.query, len(a.hits), a.unknown)
			}
			fits := 0
			for _, e := range a.hits {
				if strings.Contains(test.groups, e.group) {
					fits++
				}
				if a.picture != nil && e == *a.picture {
					t.Errorf("%s finds itself", test.query)
				}
			}
			if fits < 8 {
				t.Errorf("%s: only %d hits are of %s: %s", test.query, fits, test.groups, a.names(1000))
			}
			if test.first != "" && a.hits[0].name != test.first {
				t.Errorf("%s finds %s, not %s", test.query, a.hits[0].name, test.first)
			}
		}
	})

	t.Run("unknown", func(t *testing.T) {
		var out strings.Builder
		queries := []string{"", "?", "🐱🐶", "xqxqx", "kitten heart"}
		answers, err := f.reply(t.Context(), queries, &out)
		if err != nil {
			t.Fatal(err)
		}
		if len(answers) != 1 || !slices.Equal(answers[0].unknown, []string{"kitten"}) {
			t.Errorf("answers are %+v", answers)
		}
		for _, query := range queries {
			if !strings.Contains(out.String(), query) {
				t.Errorf("nothing is said about %q:\n%s", query, out.String())
			}
		}
	})
}

// demonstration returns the part of an output with the answers.
func demonstration(output string) string {
	_, answers, _ := strings.Cut(output, "Words find pictures")
	answers, _, _ = strings.Cut(answers, "s in all")
	return strings.TrimRight(answers, "0123456789. \n")
}

// An interrupted build leaves no temporary folder.
func TestInterrupt(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp) // Unix uses it; on other systems the test checks nothing
	for _, at := range []string{"Drawing", "Training"} {
		ctx, cancel := context.WithCancel(t.Context())
		err := run(ctx, options{}, writerFunc(func(p []byte) {
			if bytes.Contains(p, []byte(at)) {
				cancel()
			}
		}))
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled at %q: %v", at, err)
		}
		left, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		if len(left) > 0 {
			t.Errorf("cancelled at %q, it leaves %v", at, left)
		}
	}
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestFolderOfOthers(t *testing.T) {
	taken := t.TempDir()
	if err := os.WriteFile(filepath.Join(taken, "letter.txt"), []byte("dear"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), options{db: taken}, &bytes.Buffer{}); err == nil {
		t.Error("no error")
	}
}

func TestParseArgs(t *testing.T) {
	var help bytes.Buffer
	opt, err := parseArgs([]string{"--db", "x", "red heart", "🐱"}, &help)
	if err != nil || !filepath.IsAbs(opt.db) || !slices.Equal(opt.queries, []string{"red heart", "🐱"}) {
		t.Errorf("got %+v, %v", opt, err)
	}
	for _, args := range [][]string{{"--bits", "3"}, {"cat", "--db", "x"}, {"--encode"},
		{"--db", "x", "--encode", "cat"}} {
		if _, err := parseArgs(args, &help); err == nil || help.Len() > 0 {
			t.Errorf("%q: error %v, help %q", args, err, help.String())
		}
	}
	if _, err := parseArgs([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) ||
		!strings.Contains(help.String(), "-encode") {
		t.Errorf("-h gives %v and %q", err, help.String())
	}
}
