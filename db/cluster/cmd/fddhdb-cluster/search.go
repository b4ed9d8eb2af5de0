package main

import (
	"context"
	"encoding/hex"
	"math"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// searchOptions are the flags of search.
type searchOptions struct {
	code, key, vector  string
	radius             int
	hasRadius, partial bool
	rerank, facets     string
	include            flags.Include
	where              whereFlag
	q                  db.Query
	space              db.Space
}

func searchCommand(e *env) *cobra.Command {
	var o searchOptions
	cmd := &cobra.Command{
		Use:     "search COLLECTION (--code HEX | --key KEY | --vector v,v,...)",
		Short:   "Find the items whose codes are nearest",
		GroupID: groupFind,
		Long: usage.Prose(`
			Search finds the items whose codes differ from that of the query in the fewest
			bits, exactly, as in one database: fddhdb help search explains queries, orders
			and similarities. Ties, items that are equal in all of these, may come in another
			order than in one database.

			A query is one of
			  --code HEX       a code, bytes in the order of the .npy
			  --key KEY        an item that is stored: its vector of --from, or else its code
			  --vector v,v,..  a vector of --from; of a sparse one i:v,i:v,...
			--to keeps to items that have that modality.

			-k is how many hits to return, 10 if not given. --radius returns those that
			differ in so many bits at most, of which -k, then 10,000 if not given, are
			printed and all are counted in total. "next" is a cursor: the same search with
			--after CURSOR goes on behind the hits.

			A shard of which no node answers fails the search. With --partial the answer comes
			without it, and "missing" names it; a warning goes to stderr.`),
		Example: usage.Example(`
			fddhdb-cluster search hashes --code 9f3c01d2aa55e870 --radius 8
			fddhdb-cluster search wiki --key 17 --from image --to text -k 5
			fddhdb-cluster search wiki --from text --vector .1,.2,0,.4 --where "year >= 2020"
			fddhdb-cluster search hashes --key 17 --include labels,fields --facets label --json`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.hasRadius = f.Changed("radius")
			if err := o.check(f.Changed("k"), e.json); err != nil {
				return err
			}
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					err := o.run(e, cmd, coll)
					return e.noCollection(ctx, c, args[0], err)
				})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.code, "code", "", "query by a code in `HEX`")
	f.StringVar(&o.key, "key", "", "query by the item with this `KEY`")
	f.StringVar(&o.vector, "vector", "", "query by a vector of the modality --from, `v,v,...` or i:v,i:v,...")
	f.StringVar(&o.q.From, "from", "", "modality `NAME` of the query")
	f.StringVar(&o.q.To, "to", "", "find items that have the modality `NAME`")
	f.IntVarP(&o.q.K, "k", "k", 10, "number `N` of hits; with --radius 10,000 if not given")
	f.IntVar(&o.radius, "radius", 0, "only items within `R` bits")
	f.StringVar(&o.rerank, "rerank", "auto", "`ORDER` of the hits: auto, projection, none or asymmetric")
	flags.Recall(f, &o.q.Recall, "search by vectors, and find the part `X` of the nearest, such as .95")
	f.BoolVar(&o.q.ExcludeSelf, "exclude-self", false, "leave the item of --key out of the hits")
	f.StringVar(&o.q.After, "after", "", "go on behind the hits of the same search, whose next was `CURSOR`")
	f.Uint32Var((*uint32)(&o.space), "space", 0,
		"search by the codes of space `N` (default: the active one)")
	o.where.register(cmd)
	f.Var(&o.include, "include",
		"print parts of the items with the hits, a `LIST` of labels, fields, payload and vectors")
	f.StringVar(&o.facets, "facets", "", "count the items of the answer by a `LIST` of label and fields")
	f.BoolVar(&o.partial, "partial", false, "answer without shards that do not")
	return cmd
}

// check checks the combination of flags.
func (o *searchOptions) check(hasK, json bool) error {
	given := 0
	for _, is := range []bool{o.code != "", o.key != "", o.vector != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return exit.Usagef("search needs a query: --code HEX, --key KEY, or --from NAME --vector v,v,...")
	case given > 1:
		return exit.Usagef("search takes one of --code, --key and --vector, not several")
	case o.vector != "" && o.q.From == "":
		return exit.Usagef("--from NAME is missing: the modality that the vector is of")
	case o.q.From != "" && o.code != "":
		return exit.Usagef("--from: a query by code is of no modality: leave it out")
	case o.q.ExcludeSelf && o.key == "":
		return exit.Usagef("--exclude-self leaves out the item of --key, which is not given")
	case hasK && o.q.K < 1:
		return exit.Usagef("-k %d: 1 or more hits are possible", o.q.K)
	case o.hasRadius && o.radius < 0:
		return exit.Usagef("--radius %d: 0 or more bits are possible", o.radius)
	case !json && o.include.Parts&(db.IncludePayload|db.IncludeVectors) != 0:
		return exit.Usagef("--include %s: a table has labels and fields alone: --json has payloads and vectors, too", &o.include)
	}
	var err error
	if o.q.Rerank, err = db.ParseRerank(o.rerank); err != nil {
		return exit.Usagef("--rerank: %s", exit.Reason(err.Error()))
	}
	if o.hasRadius && !hasK {
		o.q.K = 10_000
	}
	if o.code != "" {
		if o.q.Code, err = hex.DecodeString(o.code); err != nil {
			return exit.Usagef("--code %q: not hexadecimal: two digits a byte are expected", o.code)
		}
	}
	o.q.Key, o.q.Where, o.q.Include = o.key, o.where.Expr, o.include.Parts
	o.q.Facets = flags.SplitList(o.facets)
	return nil
}

// A searchJSON is an answer as fddhdb search --json prints it, with the shards that did not answer.
type searchJSON struct {
	forms.Search
	Missing []int `json:"missing,omitempty"`
}

func (o *searchOptions) run(e *env, cmd *cobra.Command, coll *cluster.Collection) error {
	ctx := cmd.Context()
	var schema db.Schema
	if o.vector != "" || !e.json && o.include.Parts&db.IncludeFields != 0 {
		var err error
		if schema, err = coll.Schema(ctx); err != nil {
			return err
		}
	}
	name := any(o.key + o.code)
	if o.vector != "" {
		name = 0
		m, err := source.FindModality(coll.Name(), schema, "--from", o.q.From)
		if err != nil {
			return err
		}
		v, err := source.ParseQuery(m, o.vector)
		if err != nil {
			return exit.Usagef("--vector: %w", err)
		}
		o.q.Vector, o.q.Sparse = v.Vector, v.Sparse
	}
	q := cluster.Query{Query: o.q, Space: o.space, AllowPartial: o.partial}
	var r *cluster.Result
	var err error
	if o.hasRadius {
		r, err = coll.SearchRadius(ctx, q, o.radius)
	} else {
		r, err = coll.Search(ctx, q)
	}
	if err != nil {
		return o.where.wrap(err)
	}
	forms.CutFacets(&r.Result, e.json)
	if len(r.Missing) > 0 {
		e.warnf("without %s, of which no node answers", shards(r.Missing))
	}
	if e.json {
		return e.PrintJSON(searchJSON{forms.NewSearch(name, &r.Result, o.hasRadius, nil), r.Missing})
	}
	o.print(e, r, schema)
	return nil
}

func (o *searchOptions) print(e *env, r *cluster.Result, schema db.Schema) {
	switch {
	case o.key != "":
		e.Printf("item %s", term.Plain(o.key))
	case o.code != "":
		e.Printf("code %s", o.code)
	default:
		e.Printf("vector")
	}
	switch {
	case o.hasRadius && r.Total > len(r.Hits):
		e.Printf(": the first %s of %s within %s; -k prints more", term.Thousands(len(r.Hits)),
			term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case o.hasRadius:
		e.Printf(": %s within %s", term.Plural(r.Total, "item", "items"),
			term.Plural(o.radius, "bit", "bits"))
	case len(r.Hits) == 0:
		e.Printf(": no items")
	}
	e.Printf("\n")
	if len(r.Hits) > 0 {
		o.printHits(e, &r.Result, schema)
	}
	forms.PrintFacets(e.Printer, &r.Result)
}

// printHits prints the table of the hits. Hits of an answer by vectors have neither distance nor score.
func (o *searchOptions) printHits(e *env, r *db.Result, schema db.Schema) {
	t := forms.NewHitTable(schema, o.include.Parts)
	t.Similarity = forms.HasSimilarity(r)
	t.Codes = !math.IsNaN(r.Hits[0].Score) || math.IsNaN(float64(r.Hits[0].Similarity))
	e.PrintTable(t.Columns(), t.Rows(r))
}
