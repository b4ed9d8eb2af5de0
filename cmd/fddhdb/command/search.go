package command

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/codec/vecfile"
	"github.com/fddhdb/fddhdb/db"
)

// searchOptions are the flags of search.
type searchOptions struct {
	common
	from, to                 string
	vectors, id, code, codes string
	row, k, radius, window   int
	rerank, after            string
	explain, excludeSelf     bool
	sheet, pictures          string
	where                    whereFlag
	hasRow, hasK, hasRadius  bool
	hasWindow                bool
}

func searchCommand(e *env) *cobra.Command {
	var o searchOptions
	cmd := &cobra.Command{
		Use:     "search DIR --from NAME --to NAME --vectors FILE",
		Short:   "Find the items whose codes are nearest",
		GroupID: groupLearn,
		Long: prose(`
			Search finds the items whose codes differ from that of the query in the fewest
			bits, exactly: no item that it leaves out is nearer.

			A query is one of
			  --vectors FILE  vectors of the modality --from, each row a query, or the one
			                  that --row N names, counted from 0
			  --id KEY        an item that is stored: its vector of --from, or else its
			                  code
			  --code HEX      a code, bytes in the order of the .npy
			  --codes FILE    a .npy of packed codes, each row a query
			--to keeps to items that have that modality. Where a training has made codes
			for each target modality (train --views target), it has to be given.

			The item of --id is a hit itself, as far away as its code is: the first of those
			with its code, and the first of all where its code is the query. By the vector of
			--from other codes may be nearer than its own. --exclude-self leaves it out, of
			the total as well.

			-k is how many hits to return, 10 if not given. --radius returns those that
			differ in so many bits at most, of which -k, then 10,000 if not given, are
			printed and all are counted in total. "next" is a cursor: the same search with
			--after CURSOR goes on behind the hits (of one query: see --row).

			Hits come by distance in bits, then by score: how well the projection of the
			query agrees with the code, the higher the better; queries by code have none.
			--rerank is the order:
			  projection  this; items that share a code come by the cosine between
			              projections
			  none        this; items that share a code come by age
			  asymmetric  by score, whatever the distance; then by cosine. Exact too, and
			              it finds what is relevant somewhat better; queries by code have
			              no scores and come by distance
			  features    the first --window hits of projection by the distance between
			              their vectors of --from and that of the query; those that lack
			              them behind the others. There is no "next".

			--sheet also makes a contact sheet: a row a query, with the pictures of the hits
			over their keys. A picture, a PNG, JPEG or GIF, is the payload of an item, or a
			file in the folder --pictures or below it that a string field names, or the key:
			a path or URL, or the end of one. Other items are shown as text. A .html file
			holds all that it shows. There is room for 1,000 queries and hits.`),
		Example: example(`
			fddhdb search wiki.db --from text --to image --vectors query_text.npy --row 0
			fddhdb search wiki.db --from image --to text --id 17 -k 5
			fddhdb search wiki.db --from image --to text --vectors query_image.npy --json
			fddhdb search hashes.db --code 9f3c01d2aa55e870 --radius 8
			fddhdb search wiki.db --from text --to image --id 17 --sheet hits.html --pictures jpg`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.hasRow, o.hasK, o.hasRadius = f.Changed("row"), f.Changed("k"), f.Changed("radius")
			o.hasWindow = f.Changed("window")
			rerank, err := o.check()
			if err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				return e.searchTo(cmd.Context(), c, &o, rerank)
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	f := cmd.Flags()
	f.StringVar(&o.from, "from", "", "modality `NAME` of the query")
	f.StringVar(&o.to, "to", "", "find items that have the modality `NAME`")
	f.StringVar(&o.vectors, "vectors", "", "query by the vectors in `FILE`, which are of the modality --from")
	f.IntVar(&o.row, "row", 0, "only row `N` of the file, from 0")
	f.StringVar(&o.id, "id", "", "query by the item with this `KEY`")
	f.StringVar(&o.code, "code", "", "query by a code in `HEX`")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.IntVarP(&o.k, "k", "k", 10, "number `N` of hits; with --radius 10,000 if not given")
	f.IntVar(&o.radius, "radius", 0, "only items within `R` bits")
	f.StringVar(&o.rerank, "rerank", "projection", "`ORDER` of the hits: projection, none, asymmetric or features")
	f.IntVar(&o.window, "window", 0, "put the first `N` hits in order, with --rerank features; 200, or twice -k, if not given")
	o.where.register(cmd)
	f.BoolVar(&o.excludeSelf, "exclude-self", false, "leave the item of --id out of the hits")
	f.StringVar(&o.after, "after", "", "go on behind the hits of the same search, whose next was `CURSOR`")
	f.BoolVar(&o.explain, "explain", false, "say how the search was done")
	f.StringVar(&o.sheet, "sheet", "", "make a contact sheet of the hits, a `FILE`.html or .png")
	f.StringVar(&o.pictures, "pictures", "", "with --sheet: the folder `DIR` that files of pictures are in")
	return cmd
}

// check finds flags that do not go together, or that no collection could take.
func (o *searchOptions) check() (db.Rerank, error) {
	given := 0
	for _, s := range []string{o.vectors, o.id, o.code, o.codes} {
		if s != "" {
			given++
		}
	}
	switch {
	case given == 0:
		return 0, exit.Usagef("search needs a query: --vectors FILE, --id KEY, --code HEX or --codes FILE")
	case given > 1:
		return 0, exit.Usagef("search takes one of --vectors, --id, --code and --codes, not several")
	case o.vectors != "" && o.from == "":
		return 0, exit.Usagef("--from NAME is missing: the modality that the vectors of %s are of", o.vectors)
	case o.from != "" && (o.code != "" || o.codes != ""):
		return 0, exit.Usagef("--from: a query by code is of no modality: leave it out")
	case o.hasRow && o.vectors == "" && o.codes == "":
		return 0, exit.Usagef("--row names a row of --vectors or --codes, neither of which is given")
	case o.excludeSelf && o.id == "":
		return 0, exit.Usagef("--exclude-self leaves out the item of --id, which is not given")
	case o.row < 0:
		return 0, exit.Usagef("--row %d: rows count from 0", o.row)
	case o.hasK && o.k < 1:
		return 0, exit.Usagef("-k %d: 1 or more hits are possible", o.k)
	case o.hasRadius && o.radius < 0:
		return 0, exit.Usagef("--radius %d: 0 or more bits are possible", o.radius)
	}
	if o.after != "" && (o.vectors != "" || o.codes != "") && !o.hasRow {
		return 0, exit.Usagef("--after is behind the hits of one query: say which with --row")
	}
	if o.hasRadius && !o.hasK {
		o.k = 10_000
	}
	if err := o.checkSheet(); err != nil {
		return 0, err
	}
	rerank, err := db.ParseRerank(o.rerank)
	switch features := rerank == db.RerankFeatures; {
	case err != nil:
		return 0, exit.Usagef("--rerank: %s", exit.Reason(err.Error()))
	case o.hasWindow && !features:
		return 0, exit.Usagef("--window is of --rerank features, which is not given")
	case o.hasWindow && o.window < 1:
		return 0, exit.Usagef("--window %d: 1 or more hits are possible", o.window)
	case features && o.from == "":
		return 0, exit.Usagef("--rerank features compares vectors: --from NAME is missing, the modality")
	case features && o.after != "":
		return 0, exit.Usagef("--rerank features has no cursors for --after: ask for more with -k")
	}
	return rerank, nil
}

// A queryName is what stands for a query in the output: the row number in a file,
// a key or a code.
type queryName any

// search answers the queries; to, if not nil, gets the hits, too.
func (e *env) search(ctx context.Context, c *db.Collection, o *searchOptions, rerank db.Rerank, to *sheet) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	for _, f := range []named{{"--from", o.from}, {"--to", o.to}} {
		if f.value == "" {
			continue
		}
		if _, err := modality(c, schema, f.name, f.value); err != nil {
			return err
		}
	}
	stats, err := c.Stats()
	if err != nil {
		return err
	}
	if !stats.Trained {
		return untrained(c)
	}
	if err := checkTarget(c, schema, stats, o.to); err != nil {
		return err
	}
	var table *term.Table // of the hits of all queries, in modes that have one
	var explains []*db.Explain
	defer func() {
		if table != nil {
			table.End()
		}
		for _, x := range explains {
			e.printExplain(x)
		}
	}()
	first := true
	answer := func(name queryName, q db.Query) error {
		q.To, q.Where, q.K, q.After = o.to, o.where.expr, o.k, o.after
		q.Rerank, q.Window = rerank, o.window
		r, explain, err := o.run(ctx, c, q)
		if worded := o.where.wrap(err); worded != err {
			return worded
		}
		if err != nil {
			// The flags are right: it is the item, or the file.
			return exit.Failedf("%w", err)
		}
		if to != nil {
			title := o.title(name)
			if o.hasRows() {
				title += " of " + term.Plain(o.vectors+o.codes)
			}
			if err := to.add(ctx, title, q.Key, r.Hits); err != nil {
				return err
			}
		}
		if o.json {
			return e.PrintJSON(jsonform.NewSearch(name, r, o.hasRadius, explain))
		}
		if e.Flat() {
			if table == nil {
				query := term.Left("query")
				if o.hasRows() {
					query = term.Right("query")
				}
				table = e.NewTable(append([]term.Column{query}, hitColumns...))
			}
			for _, cells := range hitRows(r) {
				table.Add(append([]any{name}, cells...)...)
			}
			explains = append(explains, explain)
			return nil
		}
		if !first {
			e.Printf("\n")
		}
		first = false
		e.printHits(name, r, o)
		e.printExplain(explain)
		return nil
	}
	switch {
	case o.id != "":
		return answer(o.id, db.Query{Key: o.id, From: o.from, ExcludeSelf: o.excludeSelf})
	case o.code != "":
		code, err := hex.DecodeString(o.code)
		if err != nil {
			return exit.Usagef("--code %q: not hexadecimal: two digits a byte are expected", o.code)
		}
		if 8*len(code) != stats.Bits {
			return exit.Usagef("--code %q has %d bits, collection %q has codes of %d", o.code, 8*len(code), c.Name(), stats.Bits)
		}
		return answer(o.code, db.Query{Code: code})
	case o.codes != "":
		return o.queryCodes(c, stats.Bits, answer)
	}
	m, err := modality(c, schema, "--from", o.from)
	if err != nil {
		return err
	}
	return o.queryVectors(m, answer)
}

// run answers one query.
func (o *searchOptions) run(ctx context.Context, c *db.Collection, q db.Query) (*db.Result, *db.Explain, error) {
	radius := -1
	if o.hasRadius {
		radius = o.radius
	}
	if o.explain {
		explain, r, err := c.Explain(ctx, q, radius)
		return r, explain, err
	}
	if !o.hasRadius {
		r, err := c.Search(ctx, q)
		return r, nil, err
	}
	runs, err := c.SearchRadius(ctx, q, radius)
	if err != nil {
		return nil, nil, err
	}
	defer runs.Close()
	r, err := runs.First(ctx, q.K)
	return r, nil, err
}

// untrained is what a verb says that needs codes where there are none.
func untrained(c *db.Collection) error {
	return fmt.Errorf("%w: collection %q has no codes yet: run fddhdb train", db.ErrNoModel, c.Name())
}

func (o *searchOptions) queryCodes(c *db.Collection, bits int, answer func(queryName, db.Query) error) error {
	s, err := openCodes(o.codes)
	if err != nil {
		return err
	}
	if err := s.checkBits(c, bits); err != nil {
		return err
	}
	if err := o.checkRow(s); err != nil {
		return err
	}
	for row := range s.rows() {
		if o.hasRow && row != o.row {
			continue
		}
		if err := answer(row, db.Query{Code: s.at(row)}); err != nil {
			return err
		}
	}
	return nil
}

func (o *searchOptions) queryVectors(m db.Modality, answer func(queryName, db.Query) error) error {
	s, err := openQueries(m.Name, o.vectors)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.checkDim(m); err != nil {
		return err
	}
	if err := o.checkRow(s); err != nil {
		return err
	}
	for row := 0; ; row++ {
		err := s.read()
		if err == io.EOF {
			return nil
		}
		if o.hasRow && row != o.row {
			// A row that nobody asks for may be bad.
			var bad *vecfile.Error
			if err != nil && !(errors.As(err, &bad) && bad.Col >= 0) {
				return err
			}
			continue
		}
		if err == nil {
			if err = answer(row, s.query()); o.after == "" { // which is wrong more likely than the row
				err = exit.AtRow(err, s.path(), row)
			}
		}
		if err != nil || o.hasRow {
			return err
		}
	}
}

func (o *searchOptions) checkRow(s source) error {
	if o.hasRow && o.row >= s.rows() {
		return exit.Usagef("--row %d: %s has %s, counted from 0", o.row, s.path(), term.Plural(s.rows(), "row", "rows"))
	}
	return nil
}

// title names a query for people.
func (o *searchOptions) title(name queryName) string {
	switch {
	case o.id != "":
		return "item " + term.Plain(o.id)
	case o.code != "":
		return fmt.Sprintf("code %s", name)
	}
	return fmt.Sprintf("row %d", name)
}

func (e *env) printHits(name queryName, r *db.Result, o *searchOptions) {
	e.Printf("%s", o.title(name))
	switch {
	case o.hasRadius && r.Total > len(r.Hits):
		e.Printf(": the first %s of %s within %s; -k prints more", term.Thousands(len(r.Hits)),
			term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case o.hasRadius:
		e.Printf(": %s within %s", term.Plural(r.Total, "item", "items"), term.Plural(o.radius, "bit", "bits"))
	case len(r.Hits) == 0:
		e.Printf(": no items")
	}
	e.Printf("\n")
	if len(r.Hits) == 0 {
		return
	}
	e.PrintTable(hitColumns, hitRows(r))
}

var hitColumns = []term.Column{term.Right("rank"), term.Left("id"), term.Right("distance"), term.Right("score")}

func hitRows(r *db.Result) [][]any {
	var rows [][]any
	for i, h := range r.Hits {
		score := term.NoCell
		if !math.IsNaN(h.Score) {
			score = term.NumberCell(h.Score, 3)
		}
		rows = append(rows, []any{i + 1, term.TextCell(h.Key), h.Distance, score})
	}
	return rows
}

// hasRows says whether queries are rows of a file.
func (o *searchOptions) hasRows() bool { return o.vectors != "" || o.codes != "" }

// printExplain says how a search was done, if that was asked for.
func (e *env) printExplain(x *db.Explain) {
	if x == nil {
		return
	}
	e.Printf("plan %s: %s of %s found", x.Plan, term.Plural(x.Codes, "code", "codes"), term.Thousands(x.Distinct))
	if x.Probes > 0 {
		e.Printf("; %s with %s, %s compared", term.Plural(x.Probes, "lookup", "lookups"), term.Plural(x.Candidates, "candidate", "candidates"), term.Thousands(x.Compared))
	}
	if x.Scanned > 0 {
		e.Printf("; %s read", term.Plural(x.Scanned, "code", "codes"))
	}
	if x.Abandoned {
		e.Printf("; lookups given up for a scan")
	}
	e.Printf("\nsubstrings %v, codes not indexed yet %s\n", x.Substrings, term.Thousands(x.Tail))
	e.Printf("took %.1f us to encode, %.1f us to find the codes, %.1f us for %s\n",
		x.EncodeUS, x.SearchUS, x.ResolveUS, term.Plural(x.Hits, "item", "items"))
	plans := slices.SortedFunc(maps.Keys(x.Predicted), func(a, b string) int {
		return cmp.Compare(x.Predicted[a], x.Predicted[b])
	})
	e.Printf("predicted")
	for i, plan := range plans {
		sep := ""
		if i > 0 {
			sep = ","
		}
		e.Printf("%s %s %.1f us", sep, plan, x.Predicted[plan])
	}
	e.Printf("\n")
}
