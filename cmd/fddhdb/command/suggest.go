package command

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/shell"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// verbsElsewhere are names of verbs in other tools.
var verbsElsewhere = map[string]string{
	"add": "put", "set": "put", "insert": "put", "upsert": "put", "store": "put",
	"load": "import", "ingest": "import",
	"create": "init", "new": "init",
	"show": "get", "cat": "get", "fetch": "get",
	"list": "scan", "ls": "scan", "items": "scan",
	"find": "search", "query": "search", "select": "search", "knn": "search",
	"remove": "delete", "rm": "delete", "del": "delete",
	"learn": "train", "fit": "train",
	"evaluate": "eval", "benchmark": "bench",
	"dump": "export", "save": "export",
	"check": "verify", "fsck": "verify",
	"fix": "repair", "recover": "repair",
	"vacuum": "compact", "gc": "compact",
	"info": "stats", "status": "stats",
	"tables": "collections",
}

// meant returns the name that an unknown word most likely means: a name with a similar
// spelling, or the verb that other tools call so; "" if there is none.
func meant(word string, names []string) string {
	if verb, ok := verbsElsewhere[strings.ToLower(word)]; ok {
		return verb
	}
	return term.Nearest(strings.ToLower(word), names)
}

// unknownVerbFor returns the error for a verb that does not exist.
func unknownVerbFor(root *cobra.Command, word string) error {
	if strings.EqualFold(word, "shell") {
		return exit.Usagef("there is no verb %q: fddhdb DIR opens the shell, and .help explains it there", word)
	}
	if verb := meant(word, shell.VerbNames(root)); verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", word, verb)
	}
	return exit.Usagef("there is no verb %q: fddhdb help lists the verbs", word)
}
