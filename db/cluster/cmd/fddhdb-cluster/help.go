package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// verbsElsewhere maps verbs of other tools to ours.
var verbsElsewhere = map[string]string{
	"add": "put", "set": "put", "insert": "put", "upsert": "put", "load": "import", "show": "get", "cat": "get", "fetch": "get",
	"list": "collections", "ls": "collections", "find": "search", "query": "search", "remove": "delete", "rm": "delete", "del": "delete",
	"info": "status", "stats": "status", "nodes": "status", "shards": "status", "start": "node", "serve": "node", "run": "node", "new": "create",
	"models": "spaces", "rebalance": "move", "split": "grow", "reshard": "grow", "double": "grow",
}

// unknownVerb returns the error for a verb that does not exist.
func unknownVerb(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		names = append(names, c.Name())
	}
	verb := verbsElsewhere[strings.ToLower(word)]
	if verb == "" {
		verb = term.Nearest(strings.ToLower(word), names)
	}
	if verb != "" {
		return exit.Usagef("there is no verb %q: did you mean %s?", word, verb)
	}
	return exit.Usagef("there is no verb %q: fddhdb-cluster help lists the verbs", word)
}

// anyVerb names the flags of all verbs, for the help of one verb.
const anyVerb = `--servers, --cluster, --creds, --nkey, --user, --password-file, --tls-ca,
--tls-cert, --tls-key, --insecure, --timeout, --json: fddhdb-cluster help`
