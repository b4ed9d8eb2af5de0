package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/command"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// addDataVerbs adds the verbs of fddhdb about collections and items.
func (e *env) addDataVerbs(root *cobra.Command) {
	verbs := command.AddVerbs(e.at, root, e.Printer, e.stdin)
	for name, c := range verbs {
		x := inCluster[name]
		c.Use, c.Short = cmp.Or(x.use, c.Use), cmp.Or(x.short, c.Short)
		c.Long = usage.Prose(x.text) + "\n\nfddhdb help " + name + " says of one database:\n\n" + c.Long
		if x.examples != "" {
			c.Example = usage.Example(x.examples)
		}
		for _, flag := range x.without {
			c.Flags().Lookup(flag).Hidden = true
		}
		run := c.RunE
		c.RunE = func(cmd *cobra.Command, args []string) error {
			return e.guarded(cmd.Context(), func(ctx context.Context) error {
				cmd.SetContext(ctx)
				return run(cmd, args)
			})
		}
	}
	verbs["search"].Flags().BoolVar(&e.partial, "partial", false,
		"answer without shards that do not, and warn of each such answer")
}

// A difference is what a verb of fddhdb does otherwise in a cluster. Its text stands first in the help. The
// flags that it is without have an error of package cluster; help does not show them.
type difference struct {
	use, short     string
	text, examples string
	without        []string
}

var inCluster = map[string]difference{
	"init": {short: "Create a collection", text: `
		In a cluster init creates a collection on every shard. If it is interrupted, call it
		again.`},
	"import": {text: `
		In a cluster items bring their keys, or get them with --number-from. Each shard stores
		its part of some hundred items in a commit of its own. After an interruption give the
		same command again: items with the same keys replace themselves.`},
	"put": {text: `
		In a cluster an item is durable, and later reads see it, when put ends.`},
	"get": {text: `
		A cluster prints items as one database does.`},
	"delete": {use: "delete KEY...", short: "Delete items by their keys", text: `
		A cluster deletes by keys, not by --where. Each key counts as deleted, whether or not it
		had an item. Each shard deletes its part in a commit of its own.`,
		examples: `fddhdb-cluster delete cat.jpg dog.jpg --collection hashes`,
		without:  []string{"where"}},
	"export": {use: "export --model FILE", short: "Write the model of a space to a file", text: `
		A cluster exports models alone, with --model.`,
		examples: `fddhdb-cluster export --model wiki.model`,
		without:  []string{"codes", "keys", "labels", "label-names", "vectors", "items", "where"}},
	"train": {text: `
		In a cluster nodes send sums over the items of their shards, and items stay there. One
		training of a collection runs at a time. If a node is lost meanwhile, it begins again
		with the others. Possible methods are labels, itq and cca-itq.`},
	"search": {
		use: "search (--from NAME --vectors FILE | --key KEY | --code HEX)",
		text: `
		In a cluster a shard of which no node answers fails the search. With --partial the answer
		comes without it, and a warning on stderr names it. Items that are equal in all that
		orders hits may come in another order than in one database. There are no encoders for
		--text and --picture, and there are no --words and no --explain.`,
		examples: `
			fddhdb-cluster search --from text --to image --vectors query_text.npy --row 0
			fddhdb-cluster search --from image --to text --key 17 -k 5 --where "year >= 2020"
			fddhdb-cluster search --collection hashes --code 9f3c01d2aa55e870 --radius 8`,
		without: []string{"text", "words", "explain"}},
	"index": {text: `
		In a cluster every replica makes an index for itself. Index waits until one replica of
		each shard has it, and says which shards cannot make it yet. Stats lists the indexes.`},
	"update": {text: `
		In a cluster all labelled items teach each time, and items without labels do not: auto
		is labels. One training or update of a collection runs at a time.`},
	"models": {short: "List the spaces of codes", text: `
		A cluster knows the state of a space, its bits, its revision and its items.`,
		examples: `fddhdb-cluster models --collection photos`},
	"activate": {text: `
		A cluster activates a space shard after shard, and no search fails meanwhile. There is no
		rollback: activate the space before.`, examples: `fddhdb-cluster activate --space 2`},
	"drop": {text: `
		A cluster drops a space or a collection on every shard.`},
	"count":  {text: `A cluster counts exactly.`},
	"facets": {text: `A cluster counts exactly.`},
	"stats": {short: "Print figures about collections", text: `
		A cluster counts items, labels and vectors, and tells of spaces and indexes. Status has
		the figures of nodes and shards.`},
	"collections": {text: `
		A cluster does not know how many codes are distinct.`},
}

// open opens the cluster as a database, for a verb.
func (e *env) open(ctx context.Context) (api.Database, error) {
	nc, err := e.connect()
	if err != nil {
		return nil, err
	}
	c, err := e.client(ctx, nc)
	if err != nil {
		nc.Close()
		return nil, err
	}
	var o cluster.DatabaseOptions
	if e.partial {
		o.AllowPartial = func(missing []int) {
			e.Warnf("without %s, of which no node answers",
				shards(missing))
		}
	}
	return opened{c.Database(o), c, nc}, nil
}

// opened is a database with the client and the connection that are its own.
type opened struct {
	api.Database
	client *cluster.Client
	nc     *nats.Conn
}

func (o opened) Close() error {
	defer o.nc.Close()
	return errors.Join(o.Database.Close(), o.client.Close())
}
