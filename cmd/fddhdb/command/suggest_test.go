package command

import (
	"slices"
	"testing"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// Suggestions can be run, and no verb is suggested for another existing verb.
func TestVerbsElsewhere(t *testing.T) {
	verbs := shell.VerbNames(rootCommand(newTestEnv()))
	for word, verb := range verbsElsewhere {
		if slices.Contains(verbs, word) || !slices.Contains(verbs, verb) {
			t.Errorf("%s for %s", verb, word)
		}
	}
	for word, want := range map[string]string{"LS": "scan", "Query": "search", "serch": "search", "SEARCH": "search", "xyzzy": ""} {
		if got := meant(word, verbs); got != want {
			t.Errorf("%s: %q, want %q", word, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	verbs := shell.VerbNames(rootCommand(newTestEnv()))
	for word, want := range map[string]string{
		"serch": "search", "imprt": "import", "exprot": "export", "cuont": "count", "stat": "stats",
		"ecnode": "encode", "colections": "collections", "evl": "eval", "gte": "get",
		"wiki.db": "", "/tmp/photos": "", "": "", "x": "",
	} {
		if got := term.Nearest(word, verbs); got != want {
			t.Errorf("nearest to %q: %q, want %q", word, got, want)
		}
	}
}
