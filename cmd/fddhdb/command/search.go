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
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/sheet"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// searchOptions are the flags of search.
type searchOptions struct {
	common
	dir                       string // of the database
	from, to                  string
	vectors, key, code, codes string
	vector                    string
	texts, images             []string    // for the encoder
	encoder                   *db.Encoder // of texts or images, when it has been chosen
	row, k, radius            int
	rerank, after             string
	explain, excludeSelf      bool
	sheet, pictures           string
	where                     whereFlag
	hasRow, hasK, hasRadius   bool

	minSimilarity    float32
	hasMinSimilarity bool
	hasRecall        bool
	recall           float64
	include          flags.Include
	facets           string
}

func searchCommand(e *env) *cobra.Command {
	var o searchOptions
	cmd := &cobra.Command{
		Use:     "search DIR (--text TEXT | --image FILE | --from NAME --vectors FILE | --key KEY | --code HEX)",
		Short:   "Find the items whose codes are nearest",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Search finds the items whose codes differ from the code of the query in the fewest
			bits. It is exact: no item that it leaves out is nearer.

			A query is one of
			  --text TEXT       a text, of which an encoder makes a vector (see encoder); repeat
			                    it for several queries
			  --image FILE      a file, such as a picture, for an encoder of files
			  --vectors FILE    vectors of the modality --from, each row a query, or only the row
			                    --row N, counted from 0. - is standard input: a .npy, or text, a
			                    vector a line, each answered as it comes
			  --vector v,v,...  a vector of --from; of a sparse one i:v,i:v,...
			  --key KEY         an item: its vector of --from, else its code. The item itself is
			                    the first hit of its code; --exclude-self leaves it out,
			                    of the total too
			  --code HEX        a code, bytes in the order of the .npy
			  --codes FILE      a .npy of packed codes, each row a query
			Where one modality has an encoder, --text and --image need no --from. --to keeps to
			items that have that modality.

			-k is the number of hits, by default 10. --radius finds all items within so many bits:
			it counts all of them (total) and prints the first -k, by default 10,000. For the hits
			that follow, give the same query with --after CURSOR: "next" is that cursor.

			Where nothing is trained, search compares vectors, by the metric of the modality (see
			init):
			  without --to             all vectors of the space of --from; an item counts as its
			                           nearest vector
			  --to in the same space   the vectors of --to
			  another --to             the vectors of --from
			There are no distances and scores then. An index of vectors (see index) makes it
			faster, and may leave items out: --recall X asks for the part X of the nearest, on
			average; 1 compares all. In a trained collection --recall asks for an answer by vectors.

			--rerank is the order of hits by codes. The score says how well the projection of the
			query agrees with a code; queries by code have none.
			  projection  by distance in bits, then by score, then by the cosine between
			              projections
			  auto        as projection, but in a small collection items that share a code come by
			              the cosine between vectors: if all items, up to 40,000, have a vector of
			              --from, and these take up to 16 MiB at a byte a dimension
			  none        by distance, then by score, then by age
			  asymmetric  by score, whatever the distance, then by the cosine between projections
			"similarity" is the cosine that has decided last; by vectors the cosine, the inner
			product, or by l2 1 / (1 + d) for the squared distance d. --min-similarity leaves out
			hits with less. By codes it needs --rerank projection or asymmetric.

			--include adds labels and fields of the items to the hits, with --json also payload and
			vectors. --facets counts the items of the answer by label and by fields: of -k the hits,
			of --radius all items. A table has 10 values of each, --json 1,000. --explain says how
			the answer was found.

			--sheet makes a contact sheet: a row a query, with the pictures of the hits. A picture
			is a PNG, JPEG or GIF: the payload of an item, or a file below the folder --pictures
			that a string field or the key names, by a path or URL, or the end of one. Other items
			are shown as text. There is room for 1,000 queries and hits.`),
		Example: usage.Example(`
			fddhdb search photos.db --text "red car at night"
			fddhdb search wiki.db --from text --to image --vectors query_text.npy --row 0
			fddhdb search wiki.db --from image --to text --key 17 -k 5
			fddhdb search wiki.db --from image --to text --vectors query_image.npy --json
			fddhdb search wiki.db --from text --key 17 --recall 1 --min-similarity .9
			fddhdb search hashes.db --code 9f3c01d2aa55e870 --radius 8
			fddhdb search wiki.db --from text --to image --key 17 --sheet hits.html --pictures jpg`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.hasRow, o.hasK, o.hasRadius = f.Changed("row"), f.Changed("k"), f.Changed("radius")
			o.hasMinSimilarity, o.hasRecall = f.Changed("min-similarity"), f.Changed("recall")
			rerank, err := o.check()
			if err != nil {
				return err
			}
			o.dir = args[0]
			return e.lookAtCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				o.where.warnOfLabels(e, c)
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
	f.StringArrayVar(&o.texts, "text", nil, "query by a `TEXT`; repeat it for several queries")
	f.StringArrayVar(&o.images, "image", nil,
		"query by a `FILE`, such as a picture; repeat it for several queries")
	f.StringVar(&o.vectors, "vectors", "",
		"query by the vectors in `FILE`, which are of the modality --from; -: standard input")
	f.StringVar(&o.vector, "vector", "", "query by a vector of the modality --from, `v,v,...` or i:v,i:v,...")
	f.IntVar(&o.row, "row", 0, "only row `N` of the file, from 0")
	f.StringVar(&o.key, "key", "", "query by the item with this `KEY`")
	f.StringVar(&o.code, "code", "", "query by a code in `HEX`")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.IntVarP(&o.k, "k", "k", 10, "number `N` of hits; with --radius 10,000 if not given")
	f.IntVar(&o.radius, "radius", 0, "only items within `R` bits")
	f.StringVar(&o.rerank, "rerank", "auto", "`ORDER` of the hits: auto, projection, none or asymmetric")
	f.Float32Var(&o.minSimilarity, "min-similarity", 0,
		"only hits of similarity `X` or more, from -1 to 1; by the metric dot any number")
	f.Float64Var(&o.recall, "recall", 0,
		"by vectors, find the part `X` of the first -k hits or more, on average; 1: all (default: that of the index, see index)")
	o.where.register(cmd)
	f.Var(&o.include, "include",
		"print parts of the items with the hits, a `LIST` of labels, fields, payload and vectors")
	f.StringVar(&o.facets, "facets", "", "count the items of the answer by a `LIST` of label and fields")
	f.BoolVar(&o.excludeSelf, "exclude-self", false, "leave the item of --key out of the hits")
	f.StringVar(&o.after, "after", "", "go on behind the hits of the same search, whose next was `CURSOR`")
	f.BoolVar(&o.explain, "explain", false, "say how the search was done")
	f.StringVar(&o.sheet, "sheet", "", "make a contact sheet of the hits, a `FILE`.html")
	f.StringVar(&o.pictures, "pictures", "", "with --sheet: the folder `DIR` that files of pictures are in")
	usage.Matter(cmd.Flags(), "text", "image", "from", "vectors", "row", "vector", "key", "code", "to", "k",
		"radius", "where", "recall", "rerank", "include", "explain", "json")
	return cmd
}

// check checks that flags go together and are possible for some collection.
func (o *searchOptions) check() (db.Rerank, error) {
	given := 0
	for _, is := range []bool{len(o.texts) > 0, len(o.images) > 0, o.vectors != "", o.vector != "",
		o.key != "", o.code != "", o.codes != ""} {
		if is {
			given++
		}
	}
	switch {
	case given == 0:
		return 0, exit.Usagef("search needs a query: --text TEXT, --image FILE, --vectors FILE, --vector v,v,..., --key KEY, --code HEX or --codes FILE")
	case given > 1:
		return 0, exit.Usagef("search takes one of --text, --image, --vectors, --vector, --key, --code and --codes, not several")
	case o.vectors != "" && o.from == "":
		return 0, exit.Usagef("--from NAME is missing: the modality that the vectors of %s are of", o.vectors)
	case o.vector != "" && o.from == "":
		return 0, exit.Usagef("--from NAME is missing: the modality that the vector is of")
	case o.from != "" && (o.code != "" || o.codes != ""):
		return 0, exit.Usagef("--from: a query by code is of no modality: leave it out")
	case o.hasRow && o.vectors == "" && o.codes == "":
		return 0, exit.Usagef("--row names a row of --vectors or --codes, neither of which is given")
	case o.excludeSelf && o.key == "":
		return 0, exit.Usagef("--exclude-self leaves out the item of --key, which is not given")
	case o.row < 0:
		return 0, exit.Usagef("--row %d: rows count from 0", o.row)
	case o.hasK && o.k < 1:
		return 0, exit.Usagef("-k %d: 1 or more hits are possible", o.k)
	case o.hasRecall && !(o.recall > 0 && o.recall <= 1):
		return 0, exit.Usagef("--recall %v: above 0, up to 1, are possible", o.recall)
	case o.hasRecall && (o.code != "" || o.codes != "" || o.hasRadius || o.rerank != "auto"):
		return 0, exit.Usagef("--recall is of answers by vectors: leave out --radius, --rerank and queries by code")
	case o.hasRadius && o.radius < 0:
		return 0, exit.Usagef("--radius %d: 0 or more bits are possible", o.radius)
	}
	if o.after != "" && (o.vectors != "" || o.codes != "") && !o.hasRow {
		return 0, exit.Usagef("--after is behind the hits of one query: say which with --row")
	}
	if o.after != "" && len(o.texts)+len(o.images) > 1 {
		return 0, exit.Usagef("--after is behind the hits of one query: give one --text or --image")
	}
	if err := o.checkInputs(); err != nil {
		return 0, err
	}
	if o.hasRadius && !o.hasK {
		o.k = 10_000
	}
	switch {
	case o.sheet == "" && o.pictures != "":
		return 0, exit.Usagef("--pictures is for --sheet FILE, which is not given")
	case o.sheet != "":
		if err := sheet.CheckPath(o.sheet); err != nil {
			return 0, err
		}
	}
	rerank, err := db.ParseRerank(o.rerank)
	if err != nil {
		return 0, exit.Usagef("--rerank: %s", exit.Reason(err.Error()))
	}
	if o.hasMinSimilarity {
		err = o.checkMinSimilarity(rerank)
	}
	if parts := o.include.Parts; err == nil && !o.json && parts&(db.IncludePayload|db.IncludeVectors) != 0 {
		err = exit.Usagef("--include %s: a table has labels and fields alone: --json has payloads and vectors, too", &o.include)
	}
	return rerank, err
}

// checkMinSimilarity refuses a least similarity where no hit has a similarity.
func (o *searchOptions) checkMinSimilarity(rerank db.Rerank) error {
	switch {
	case rerank == db.RerankNone:
		return exit.Usagef("--min-similarity has no meaning with --rerank none, which compares nothing: choose another order")
	case o.code != "" || o.codes != "":
		return exit.Usagef("--min-similarity compares vectors, and a query by code has none: search by --vectors, or by --key, and --from")
	case o.from == "" && !o.encodes():
		return exit.Usagef("--min-similarity compares vectors: --from NAME is missing, the modality")
	}
	return nil
}

// leastSimilarity returns the flag as package db has it, where 0 is none. The negative number
// next to 0 admits all that 0 does.
func (o *searchOptions) leastSimilarity() float32 {
	if o.hasMinSimilarity && o.minSimilarity == 0 {
		return -math.SmallestNonzeroFloat32
	}
	return o.minSimilarity
}

// searchTo is search, with the contact sheet that the flags ask for.
func (e *env) searchTo(ctx context.Context, c *db.Collection, o *searchOptions, rerank db.Rerank) error {
	if o.encodes() {
		if err := o.chooseEncoder(c); err != nil {
			return err
		}
	}
	if o.sheet == "" {
		return e.search(ctx, c, o, rerank, nil)
	}
	title := "collection " + c.Name()
	if o.from != "" && o.to != "" {
		title += ": " + o.from + " → " + o.to
	}
	s, err := sheet.New(c, o.sheet, o.pictures, title)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := e.search(ctx, c, o, rerank, s); err != nil {
		return err
	}
	remark, err := s.Commit()
	if remark != "" {
		e.Warnf("warning: --sheet: %s", remark)
	}
	return err
}

// A queryName is the name of a query in the output: the row number in a file, a key, a
// code, a text or a path.
type queryName any

// search answers the queries. to, if not nil, gets the hits, too.
func (e *env) search(ctx context.Context, c *db.Collection, o *searchOptions, rerank db.Rerank,
	to *sheet.Sheet) error {
	schema, err := c.Schema()
	if err != nil {
		return err
	}
	for _, f := range []flags.Named{{Name: "--from", Value: o.from}, {Name: "--to", Value: o.to}} {
		if f.Value == "" {
			continue
		}
		if _, err := source.FindModality(c.Name(), schema, f.Name, f.Value); err != nil {
			return err
		}
	}
	for _, by := range flags.SplitList(o.facets) {
		if err := checkFacet("--facets", c, schema, by); err != nil {
			return err
		}
	}
	stats, err := c.Stats()
	if err != nil {
		return err
	}
	if err := o.checkLeast(schema, !stats.Trained || o.hasRecall); err != nil {
		return err
	}
	if err := o.checkTrained(c, stats, rerank); err != nil {
		return err
	}
	if err := checkTarget(c, schema, o.to); err != nil {
		return err
	}
	form := textform.NewHitTable(schema, o.include.Parts)
	include := o.include.Parts
	if to != nil {
		include |= sheet.Include
	}
	var table *term.Table // for the hits of all queries, in modes that have one
	var explains []*db.Explain
	var facets [][]any // likewise
	defer func() {
		if table != nil {
			table.End()
		}
		if len(facets) > 0 {
			e.PrintTable(append([]term.Column{o.queryColumn()}, textform.FacetColumns...), facets)
		}
		for _, x := range explains {
			e.printExplain(x, o.whyVectors(stats))
		}
		e.warnOfDamagedIndexes(c, stats)
	}()
	if o.explain && e.LeavesOutSentences() {
		e.Warnf("--explain is left out of a table of csv: --json has it, and the other modes")
	}
	first := true
	answer := func(name queryName, q db.Query) error {
		q.To, q.Where, q.K, q.After = o.to, o.where.Expr, o.k, o.after
		q.Rerank, q.MinSimilarity, q.Recall, q.Include = rerank, o.leastSimilarity(), o.recall, include
		q.Facets, q.FacetLimit = flags.SplitList(o.facets), textform.FacetLimit(o.json)
		r, explain, err := o.run(ctx, c, q)
		if worded := o.where.wrap(err); worded != err {
			return worded
		}
		if q.After != "" && errors.Is(err, db.ErrInvalid) {
			return exit.Usagef("--after: %s", exit.Reason(err.Error()))
		}
		if err != nil {
			// The flags are right: the item or the file is wrong.
			return exit.Failedf("%w", err)
		}
		if to != nil {
			title := o.title(name)
			if o.hasRows() {
				title += " of " + term.Plain(o.vectors+o.codes)
			}
			if err := to.Add(ctx, title, q.Key, r.Hits); err != nil {
				return err
			}
		}
		strip(r, o.include.Parts)
		form.Codes = r.Space != 0 // else by vectors alone
		if o.json {
			return e.PrintJSON(jsonform.NewSearch(name, r, o.hasRadius, explain))
		}
		if e.Flat() {
			if table == nil {
				// The answers that follow have the same columns, whatever this one has.
				form.Similarity = o.hasVectors() && rerank != db.RerankNone || textform.HasSimilarity(r)
				table = e.NewTable(append([]term.Column{o.queryColumn()}, form.Columns()...))
			}
			for _, cells := range form.Rows(r) {
				table.Add(append([]any{name}, cells...)...)
			}
			explains = append(explains, explain)
			for _, cells := range textform.FacetRows(r) {
				facets = append(facets, append([]any{name}, cells...))
			}
			return nil
		}
		if !first {
			e.Printf("\n")
		}
		first = false
		e.printHits(name, r, o, form)
		textform.PrintFacets(e.Printer, r)
		e.printExplain(explain, o.whyVectors(stats))
		return nil
	}
	switch {
	case o.key != "":
		return answer(o.key, db.Query{Key: o.key, From: o.from, ExcludeSelf: o.excludeSelf})
	case o.code != "":
		code, err := hex.DecodeString(o.code)
		if err != nil {
			return exit.Usagef("--code %q: not hexadecimal: two digits a byte are expected", o.code)
		}
		if 8*len(code) != stats.Bits {
			return exit.Usagef("--code %q has %d bits, collection %q has codes of %d", o.code, 8*len(code),
				c.Name(), stats.Bits)
		}
		return answer(o.code, db.Query{Code: code})
	case o.codes != "":
		return o.queryCodes(c, stats.Bits, answer)
	}
	m, err := source.FindModality(c.Name(), schema, "--from", o.from)
	if err != nil {
		return err
	}
	switch {
	case o.encodes():
		return e.queryEncoder(ctx, o, m, answer)
	case o.vector != "":
		q, err := source.ParseQuery(m, o.vector)
		if err != nil {
			return exit.Usagef("--vector: %w", err)
		}
		return answer(0, q)
	case o.vectors == "-":
		return e.queryStdin(o, m, answer)
	}
	return o.queryVectors(m, answer)
}

// warnOfDamagedIndexes says why searches took long that had an index of vectors by what was known
// before them, if it turned out to be damaged.
func (e *env) warnOfDamagedIndexes(c *db.Collection, before *db.CollectionStats) {
	if len(before.VectorIndexes) == 0 {
		return
	}
	indexes, _ := c.VectorIndexes() // an error has been met before
	for _, x := range indexes {
		if x.Damage != "" {
			e.Warnf("warning: the index of vectors of %s is damaged, so all vectors are compared: fddhdb index makes it anew", x.Modality)
		}
	}
}

// run answers one query.
func (o *searchOptions) run(ctx context.Context, c *db.Collection,
	q db.Query) (*db.Result, *db.Explain, error) {
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

// checkTrained refuses what has no meaning with codes, or without them.
func (o *searchOptions) checkTrained(c *db.Collection, stats *db.CollectionStats, rerank db.Rerank) error {
	switch trained := stats.Trained; {
	case trained && !o.hasRecall && o.hasMinSimilarity && rerank == db.RerankAuto:
		return exit.Usagef("--min-similarity needs to know what is compared: --rerank projection and asymmetric compare projections, --recall 1 vectors")
	case !trained && (o.code != "" || o.codes != "" || o.hasRadius || rerank != db.RerankAuto):
		return fmt.Errorf("%w; without codes search compares vectors: leave out --radius, --rerank and queries by code; --min-similarity bounds what is near", untrained(c))
	}
	return nil
}

// checkLeast refuses a least similarity that no two vectors have, by the metric of the modality.
func (o *searchOptions) checkLeast(schema db.Schema, byVectors bool) error {
	least := o.minSimilarity
	for _, m := range schema.Modalities {
		if m.Name == o.from && m.Metric == db.Dot && byVectors {
			if math.IsNaN(float64(least)) || math.IsInf(float64(least), 0) {
				return exit.Usagef("--min-similarity %v: a finite number is expected", least)
			}
			return nil
		}
	}
	if !(least >= -1 && least <= 1) { // NaN, too
		return exit.Usagef("--min-similarity %v: -1 to 1 are possible", least)
	}
	return nil
}

// whyVectors says why an answer is by vectors, for --explain.
func (o *searchOptions) whyVectors(stats *db.CollectionStats) string {
	if !stats.Trained {
		return "as nothing is trained"
	}
	return "as --recall asks for that"
}

// untrained returns the error of a verb that needs codes in a collection without codes.
func untrained(c *db.Collection) error {
	return fmt.Errorf("%w: collection %q has no codes yet: run fddhdb train", db.ErrNoModel, c.Name())
}

func (o *searchOptions) queryCodes(c *db.Collection, bits int, answer func(queryName, db.Query) error) error {
	s, err := source.OpenCodes(o.codes)
	if err != nil {
		return err
	}
	if err := s.CheckBits(c, bits); err != nil {
		return err
	}
	if err := o.checkRow(s); err != nil {
		return err
	}
	for row := range s.Rows() {
		if o.hasRow && row != o.row {
			continue
		}
		if err := answer(row, db.Query{Code: s.At(row)}); err != nil {
			return err
		}
	}
	return nil
}

func (o *searchOptions) queryVectors(m db.Modality, answer func(queryName, db.Query) error) error {
	s, err := source.OpenQueries(m, o.vectors)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.CheckDim(m); err != nil {
		return err
	}
	if err := o.checkRow(s); err != nil {
		return err
	}
	for row := 0; ; row++ {
		err := s.Read()
		if err == io.EOF {
			return nil
		}
		if o.hasRow && row != o.row {
			// Rows that are not asked for may be bad.
			var bad *files.Error
			if err != nil && !(errors.As(err, &bad) && bad.Col >= 0) {
				return err
			}
			continue
		}
		if err == nil {
			if err = answer(row, s.Query()); o.after == "" { // the cursor is more likely wrong than the row
				err = exit.AtRow(err, s.Path(), row)
			}
		}
		if err != nil || o.hasRow {
			return err
		}
	}
}

func (o *searchOptions) checkRow(s source.Source) error {
	if o.hasRow && o.row >= s.Rows() {
		return exit.Usagef("--row %d: %s has %s, counted from 0", o.row, s.Path(),
			term.Plural(s.Rows(), "row", "rows"))
	}
	return nil
}

// title returns the name of a query for people.
func (o *searchOptions) title(name queryName) string {
	switch {
	case o.key != "":
		return "item " + term.Plain(o.key)
	case o.code != "":
		return fmt.Sprintf("code %s", name)
	case o.vector != "":
		return "vector"
	case len(o.texts) > 0:
		return fmt.Sprintf("text %s", term.Plain(fmt.Sprint(name)))
	case len(o.images) > 0:
		return fmt.Sprintf("file %s", term.Plain(fmt.Sprint(name)))
	}
	return fmt.Sprintf("row %d", name)
}

func (e *env) printHits(name queryName, r *db.Result, o *searchOptions, form textform.HitTable) {
	e.Printf("%s", o.title(name))
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
	if len(r.Hits) == 0 {
		return
	}
	form.Similarity = textform.HasSimilarity(r)
	e.PrintTable(form.Columns(), form.Rows(r))
}

// hasRows reports whether queries are rows of a file.
func (o *searchOptions) hasRows() bool { return o.vectors != "" || o.codes != "" }

// hasVectors reports whether queries are vectors that are given, or made for the search.
func (o *searchOptions) hasVectors() bool { return o.vectors != "" || o.vector != "" || o.encodes() }

// queryColumn returns the column of the query, of a table of several.
func (o *searchOptions) queryColumn() term.Column {
	if o.hasRows() {
		return term.Right("query")
	}
	return term.Left("query")
}

// printExplain prints how a search was done, if the user asked for it, and why by vectors where it
// was.
func (e *env) printExplain(x *db.Explain, why string) {
	if x == nil {
		return
	}
	if len(x.ScannedFields) > 0 {
		e.Printf("filter without an index of %s: their values are read from the items\n",
			strings.Join(x.ScannedFields, ", "))
	}
	byVectors := x.Metric != ""
	if byVectors {
		e.printVectorPlan(x, why)
		e.Printf("took %.1f us for %s by the metric %s between vectors of %s\n", x.ResolveUS,
			term.Plural(x.Hits, "item", "items"), x.Metric, strings.Join(x.Modalities, ", "))
		if len(x.Predicted) > 0 {
			e.printPredicted(x.Predicted)
		}
		return
	}
	e.Printf("plan %s: %s of %s found", x.Plan, term.Plural(x.Codes, "code", "codes"),
		term.Thousands(x.Distinct))
	if x.Probes > 0 {
		e.Printf("; %s with %s, %s compared", term.Plural(x.Probes, "lookup", "lookups"),
			term.Plural(x.Candidates, "candidate", "candidates"), term.Thousands(x.Compared))
	}
	if x.Scanned > 0 {
		e.Printf("; %s read", term.Plural(x.Scanned, "code", "codes"))
	}
	if x.Abandoned {
		e.Printf("; lookups given up for a scan")
	}
	e.Printf("\n")
	for i, tables := range x.Substrings {
		if i == 0 {
			e.Printf("substrings ")
		}
		e.Printf("%d, ", tables)
	}
	e.Printf("codes not indexed yet %s\n", term.Thousands(x.Tail))
	e.Printf("took %.1f us to encode, %.1f us to find the codes, %.1f us for %s in the order %s\n",
		x.EncodeUS, x.SearchUS, x.ResolveUS, term.Plural(x.Hits, "item", "items"), x.Rerank)
	e.printPredicted(x.Predicted)
}

// printVectorPlan prints the plan of an answer by vectors.
func (e *env) printVectorPlan(x *db.Explain, why string) {
	if x.Plan == "cells" {
		e.Printf("plan cells: %s looked into, %s compared, %s of them exactly; recall %.3f expected\n",
			term.Plural(x.Probes, "cell", "cells"), term.Plural(x.Candidates, "vector", "vectors"),
			term.Thousands(x.Compared), x.Recall)
		return
	}
	switch {
	case len(x.DamagedIndexes) > 0:
		why = "as the index of " + strings.Join(x.DamagedIndexes, ", ") + " is damaged"
	case len(x.OutgrownIndexes) > 0:
		why = "as too much has changed since the index of " + strings.Join(x.OutgrownIndexes, ", ") +
			" was made: fddhdb index makes it anew"
	}
	e.Printf("plan vectors: %s compared, %s of them exactly, %s\n",
		term.Plural(x.Scanned, "vector", "vectors"), term.Thousands(x.Compared), why)
	if x.Abandoned {
		e.Printf("%s looked into first, and given up as they took too long\n",
			term.Plural(x.Probes, "cell", "cells"))
	}
}

// printPredicted prints the microseconds that each plan was predicted to take, the fastest first.
func (e *env) printPredicted(us map[string]float64) {
	plans := slices.SortedFunc(maps.Keys(us), func(a, b string) int {
		return cmp.Compare(us[a], us[b])
	})
	e.Printf("predicted")
	for i, plan := range plans {
		sep := ""
		if i > 0 {
			sep = ","
		}
		e.Printf("%s %s %.1f us", sep, plan, us[plan])
	}
	e.Printf("\n")
}
