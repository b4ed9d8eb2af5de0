package command

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/ingest"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/codec/perceptual"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/report"
)

// A searching is a run of search.
type searching struct {
	*run.Verb
	from, to                          string
	vectors, vector, key, code, codes string
	words                             string
	labels                            []byte   // code of labels
	texts, picture                    []string // for an encoder or a hash; picture are files
	turns                             bool     // all of a picture
	row, k, radius                    int
	rerank, after, facets             string
	explain, excludeSelf              bool
	minSimilarity                     float32
	atLeast                           float64 // recall
	include                           flags.Include

	order  db.Rerank
	bits   int      // of codes
	turned [][]byte // with --turns: the codes of the picture in hand
	m      db.Modality
}

func searchCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "search DIR [WORDS | --text TEXT | --picture FILE | --key KEY | --from NAME --vectors FILE | --code HEX]",
		"Find the items whose codes are nearest", `
		Search finds the items whose codes differ from the code of the query in the fewest
		bits. It is exact: no item that it leaves out is nearer.

		WORDS are the first of these that fits: the key of an item; the file of a picture; a
		text, where an encoder or a hash reads texts; labels that a model has learned, which
		find items whose codes are like theirs, with the label or without. Where fields have
		an index of words, these go with the last two, and both answers are merged. A query is
		else one of
		  --text TEXT       a text, of which an encoder makes a vector (see encoder); repeat
		                    it for several queries
		  --picture FILE    a picture, of which an encoder of files makes a vector; repeat it
		                    for several queries. Where a hash makes the codes (see init --hash),
		                    it is hashed, and --text likewise. --turns finds it turned and
		                    mirrored, too, by pdq: an item counts by the nearest of the eight
		  --vectors FILE    vectors of the modality --from, each row a query, or only the row
		                    --row N, counted from 0. - is standard input: a .npy, or text, a
		                    vector a line, each answered as it comes
		  --vector v,v,...  a vector of --from; of a sparse one i:v,i:v,...
		  --key KEY         an item: its vector of --from, else its code, whose items come in
		                    the order of its vector if there is one modality. The item itself
		                    is the first hit of its code; --exclude-self leaves it out, of
		                    the total too
		  --code HEX        a code, bytes in the order of the .npy
		  --codes FILE      a .npy of packed codes, each row a query
		  --words "red star"  words in the texts of items, of fields with an index of words
		                    (see alter); rare words count more. Beside one of the others both
		                    answers are merged by reciprocal rank fusion, which is the score
		Where one modality has an encoder, --text and --picture need no --from. --to keeps to
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
		Where items bring their codes it lets a search by codes leave items out, too.

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
		the answer was found.`, `
		fddhdb search photos.db red car at night
		fddhdb search photos.db --picture car.jpg --where "year > 2020"
		fddhdb search photos.db --text "red car at night" --words citroen
		fddhdb search wiki.db --from text --to image --vectors query_text.npy --row 0
		fddhdb search wiki.db --from image --to text --key 17 -k 5
		fddhdb search wiki.db --from image --to text --vectors query_image.npy --json
		fddhdb search wiki.db --from text --key 17 --recall 1 --min-similarity .9
		fddhdb search hashes.db --code 9f3c01d2aa55e870 --radius 8
		fddhdb search photos.db --picture found.jpg --radius 31 --turns --include fields`).OnCollection().InSpace().Filtered().PrintsLines()
	o, f := searching{Verb: v}, v.Flags
	f.StringVar(&o.from, "from", "", "modality `NAME` of the query")
	f.StringVar(&o.to, "to", "", "find items that have the modality `NAME`")
	f.StringArrayVar(&o.texts, "text", nil, "query by a `TEXT`; repeat it for several queries")
	f.StringArrayVar(&o.picture, "picture", nil, "query by a picture, a `FILE`; repeat it for several queries")
	f.BoolVar(&o.turns, "turns", false, "with --picture: turned and mirrored, too")
	f.StringVar(&o.vectors, "vectors", "",
		"query by the vectors in `FILE`, which are of the modality --from; -: standard input")
	f.StringVar(&o.vector, "vector", "", "query by a vector of the modality --from, `v,v,...` or i:v,i:v,...")
	v.Count(&o.row, "row", 0, 0, "only row `N` of the file, from 0")
	f.StringVar(&o.key, "key", "", "query by the item with this `KEY`")
	f.StringVar(&o.code, "code", "", "query by a code in `HEX`")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.StringVar(&o.words, "words", "", "find `WORDS` in the texts of fields with an index of words")
	o.k = 10
	f.VarP(&run.Count{N: &o.k, Least: 1}, "limit", "k", "number `N` of hits; with --radius 10,000 if not given")
	v.Count(&o.radius, "radius", 0, 0, "only items within `R` bits")
	f.StringVar(&o.rerank, "rerank", "auto", "`ORDER` of the hits: auto, projection, none or asymmetric")
	f.Float32Var(&o.minSimilarity, "min-similarity", 0,
		"only hits of similarity `X` or more, from -1 to 1; by the metric dot any number")
	flags.Recall(v.Flags, &o.atLeast,
		"by vectors, find the part `X` of the first -k hits or more, on average; 1: all (default: that of the index, see index)")
	f.Var(&o.include, "include",
		"print parts of the items with the hits, a `LIST` of labels, fields, payload and vectors")
	f.StringVar(&o.facets, "facets", "", "count the items of the answer by a `LIST` of label and fields")
	f.BoolVar(&o.excludeSelf, "exclude-self", false, "leave the item of --key out of the hits")
	f.StringVar(&o.after, "after", "", "go on behind the hits of the same search, whose next was `CURSOR`")
	f.BoolVar(&o.explain, "explain", false, "say how the search was done")
	usage.Matter(f, "text", "words", "picture", "from", "vectors", "row", "vector", "key", "code", "to",
		"limit", "radius", "where", "recall", "rerank", "include", "explain", "json")
	return v.Does(func() error {
		if err := o.check(); err != nil {
			return err
		}
		return v.Look(o.run)
	})
}

// check checks that flags go together and are possible for some collection.
func (o *searching) check() (err error) {
	given := 0
	for _, flag := range []string{"text", "picture", "vectors", "vector", "key", "code", "codes"} {
		if o.Given(flag) && o.Flags.Lookup(flag).Value.String() != "" {
			given++
		}
	}
	if len(o.Args) > 1 {
		given++
		if strings.TrimSpace(o.typed()) == "" {
			return exit.Usagef("search %q: words, a key or the file of a picture are expected", o.typed())
		}
	}
	byCode := o.code != "" || o.codes != ""
	switch {
	case o.Given("words") && (o.Given("radius") || o.after != "" || o.Given("min-similarity") || o.turns):
		return exit.Usagef("--words ranks by words: leave out --radius, --after, --min-similarity and --turns")
	case given == 0 && o.words == "" && o.Given("where"):
		return exit.Usagef("search needs a query beside --where; %s --where EXPR lists the items without one",
			run.VerbLine("scan", o.Dir, o.CollectionName))
	case given == 0 && o.words == "":
		return exit.Usagef("search needs a query: WORDS, --text TEXT, --words WORDS, --picture FILE, --vectors FILE, --vector v,v,..., --key KEY, --code HEX or --codes FILE")
	case given > 1:
		return exit.Usagef("search takes one of WORDS, --text, --picture, --vectors, --vector, --key, --code and --codes, not several")
	case o.from != "" && byCode:
		return exit.Usagef("--from: a query by code is of no modality: leave it out")
	case o.Given("row") && o.vectors+o.codes == "":
		return exit.Usagef("--row names a row of --vectors or --codes, neither of which is given")
	case o.excludeSelf && o.key == "" && len(o.Args) < 2:
		return exit.Usagef("--exclude-self leaves out the item of --key, which is not given")
	case o.Given("recall") && (o.Given("radius") || o.rerank != "auto"):
		return exit.Usagef("--recall is of the nearest items: leave out --radius and --rerank")
	case o.turns && len(o.picture) == 0:
		return exit.Usagef("--turns turns the picture of --picture, which is not given")
	case o.turns && (o.after != "" || o.facets != "" || o.explain):
		return exit.Usagef("--turns merges eight answers: --after, --facets and --explain are of one")
	case o.after != "" && (o.vectors+o.codes != "" && !o.Given("row") ||
		len(o.texts)+len(o.picture) > 1):
		return exit.Usagef("--after is behind the hits of one query: say which with --row, or give one --text or --picture")
	case !o.JSON && o.include.Parts&(db.IncludePayload|db.IncludeVectors) != 0:
		return exit.Usagef("--include %s: a table has labels and fields alone: --json has payloads and vectors, too", &o.include)
	}
	if o.Given("radius") && !o.Given("limit") {
		o.k = 10_000
	}
	if o.order, err = db.ParseRerank(o.rerank); err != nil {
		return exit.Usagef("--rerank: %s", exit.Reason(err.Error()))
	}
	if o.Given("min-similarity") && o.minSimilarity == 0 {
		// for package db 0 is none; this admits all that 0 does
		o.minSimilarity = -math.SmallestNonzeroFloat32
	}
	return checkInputs(o.texts, o.picture)
}

// A queryName is the name of a query in the output: the row number in a file, a key, a
// code, a text or a path.
type queryName = any

// typed returns the words behind DIR, which need no quotes.
func (o *searching) typed() string { return strings.Join(o.Args[1:], " ") }

// chooseQuery makes of words the first query that the collection can answer: by the item with this key; by
// the file of a picture; by a text; by labels that a model has learned. Indexed words are fused with the last
// two, or stand alone.
func (o *searching) chooseQuery(words string) error {
	takes := func(input db.EncoderInput) bool {
		if hash := perceptual.Named(o.Schema.Hash); hash != nil {
			return (hash.OfText != nil) == (input == db.InputText)
		}
		return slices.ContainsFunc(o.Schema.Encoders, func(e db.Encoder) bool {
			return e.Input == input && (e.Modality == o.from || o.from == "" && !e.Standby)
		})
	}
	_, err := o.Collection.Get(o.Ctx, words)
	switch {
	case err == nil:
		o.key = words
		return nil
	case !errors.Is(err, db.ErrNotFound) && !errors.Is(err, db.ErrInvalid):
		return err
	}
	if source.IsPicture(words) {
		switch is := run.IsFile(words); {
		case is && takes(db.InputFile):
			o.picture = []string{words}
			return checkInputs(nil, o.picture)
		case is && o.Schema.Bits == 0:
			return exit.Failedf("search %q: collection %q has no encoder of pictures: %s --set NAME=COMMAND stores one, such as builtin:look for the vectors of import --pictures",
				words, o.Collection.Name(), ingest.EncoderVerb(o.Dir, o.CollectionName, db.InputFile))
		case takes(db.InputFile):
			return exit.Failedf("search %q: there is no such file, and collection %q has no item with this key: --text searches by a text",
				words, o.Collection.Name())
		}
	}
	indexed := slices.ContainsFunc(o.Schema.Fields, func(f db.Field) bool { return f.Words })
	if takes(db.InputText) { // a text may have no word, such as an emoji, or more than Query.Words
		n := len(strings.FieldsFunc(words, func(r rune) bool {
			return !unicode.In(r, unicode.L, unicode.M, unicode.N)
		}))
		indexed = indexed && 0 < n && n <= 16
	}
	given := o.words // by --words: they are fused with whatever is typed
	if indexed && given == "" && !o.Given("radius") && o.after == "" && !o.Given("min-similarity") {
		o.words = words
	}
	if takes(db.InputText) {
		o.texts = []string{words}
		return checkInputs(o.texts, nil)
	}
	o.labels = api.CodeOfWords(o.Ctx, o.Collection, words)
	if o.labels == nil && o.words == given {
		return o.nothingTyped(words)
	}
	return nil
}

// nothingTyped says what could be typed in place of words that are neither a text, a key nor labels.
func (o *searching) nothingTyped(words string) error {
	labels, err := o.Collection.Labels(o.Ctx)
	if err != nil {
		return err
	}
	known := "none"
	if len(labels) > 0 {
		const shown = 12
		known = strings.Join(labels[:min(shown, len(labels))], ", ")
		if len(labels) > shown {
			known += ", ..."
		}
		if near := term.Nearest(strings.ToLower(words), labels); near != "" {
			known += "; did you mean " + near + "?"
		}
	}
	more := ""
	if f := forms.TitleField(o.Schema); f != nil && !f.Words {
		more = fmt.Sprintf("; fddhdb alter %s --index-words %s finds words in that field", term.Plain(o.Dir),
			f.Name)
	}
	return exit.Failedf("collection %q has no item with the key %q, no encoder that reads it as words, and no trained label (labels: %s)%s; %s --set NAME=COMMAND stores an encoder",
		o.Collection.Name(), words, term.Plain(known), more,
		ingest.EncoderVerb(o.Dir, o.Collection.Name(), db.InputText))
}

// chooseFrom chooses the modality of a query by key where vectors are compared: the only one of several that
// has an encoder in use, or, if no encoder is, the only one whose encoder does not stand by.
func (o *searching) chooseFrom() error {
	stats, err := o.Collection.Stats(o.Ctx)
	if err != nil || stats.Trained && !o.Given("recall") || len(o.Schema.Modalities) < 2 {
		return err
	}
	var used, others []string
	for _, m := range o.Schema.Modalities {
		has := func(standby bool) bool {
			return slices.ContainsFunc(o.Schema.Encoders, func(e db.Encoder) bool {
				return e.Modality == m.Name && e.Standby == standby
			})
		}
		switch {
		case has(false):
			used = append(used, m.Name)
		case !has(true):
			others = append(others, m.Name)
		}
	}
	if names := append(used, others...); len(used) == 1 || len(names) == 1 {
		o.from = names[0]
	}
	return nil
}

// run answers the queries of the flags.
func (o *searching) run() (err error) {
	if len(o.Args) > 1 {
		if err := o.chooseQuery(o.typed()); err != nil {
			return err
		}
		if o.excludeSelf && o.key == "" {
			return exit.Usagef("--exclude-self leaves out the item of a key, and %q is none", o.typed())
		}
	}
	if o.words != "" && !slices.ContainsFunc(o.Schema.Fields, func(f db.Field) bool { return f.Words }) {
		return exit.Usagef("--words: no field of collection %q has an index of words: %s --index-words FIELD makes one",
			o.Collection.Name(), run.VerbLine("alter", o.Dir, o.CollectionName))
	}
	if o.vectors+o.vector != "" && o.from == "" {
		if len(o.Schema.Modalities) != 1 {
			var names []string
			for _, m := range o.Schema.Modalities {
				names = append(names, m.Name)
			}
			return exit.Usagef("--from NAME is missing: the modality that the vectors are of: %s",
				term.OrDash(strings.Join(names, ", ")))
		}
		o.from = o.Schema.Modalities[0].Name
	}
	var encoder *db.Encoder
	if len(o.picture)+len(o.texts) > 0 && o.Schema.Bits == 0 {
		if encoder, err = o.chooseEncoder(); err != nil {
			return err
		}
	}
	if o.key != "" && o.from == "" && o.Schema.Bits == 0 {
		if err := o.chooseFrom(); err != nil {
			return err
		}
	}
	for flag, name := range map[string]string{"--from": o.from, "--to": o.to} {
		if name == "" {
			continue
		}
		m, err := o.FindModality(flag, name)
		if err != nil {
			return err
		}
		if flag == "--from" {
			o.m = m
		}
	}
	for _, by := range flags.SplitList(o.facets) {
		if err := checkFacet(o.Verb, "--facets", by); err != nil {
			return err
		}
	}
	stats, err := o.Collection.Stats(o.Ctx)
	switch {
	case err != nil:
		return err
	case !stats.Trained && (o.code+o.codes != "" || o.Given("radius") || o.order != db.RerankAuto):
		return fmt.Errorf("%w; without codes search compares vectors: leave out --radius, --rerank and queries by code; --min-similarity bounds what is near", run.Untrained(o.Collection))
	}
	o.bits = stats.Bits
	a := o.newAnswers()
	return a.end(o.queries(encoder, a.answer))
}

// queries calls answer with the queries of the flags.
func (o *searching) queries(encoder *db.Encoder, answer func(queryName, db.Query) error) error {
	row := -1
	if o.Given("row") {
		row = o.row
	}
	switch {
	case o.labels != nil:
		return answer(strings.Join(append(o.Args[1:], o.texts...), " "), db.Query{Code: o.labels})
	case o.key != "":
		return answer(o.key, db.Query{Key: o.key, From: o.from, ExcludeSelf: o.excludeSelf})
	case o.code != "":
		code, err := parseCode(o.code)
		if err == nil && 8*len(code) != o.bits {
			err = exit.Usagef("--code %q has %d bits, collection %q has codes of %d", o.code, 8*len(code),
				o.Collection.Name(), o.bits)
		}
		if err != nil {
			return err
		}
		return answer(o.code, db.Query{Code: code})
	case o.codes != "":
		return eachCode(o.Verb, o.codes, o.bits, row, answer)
	case encoder == nil && len(o.picture)+len(o.texts) > 0:
		return o.eachHashed(answer)
	case encoder != nil:
		return eachEncoded(o.Verb, encoder, append(o.texts, o.picture...), o.m, answer)
	case o.vectors+o.vector == "":
		return answer(o.words, db.Query{})
	case o.vector != "":
		q, err := source.ParseQuery(o.m, o.vector)
		if err != nil {
			return exit.Usagef("--vector: %w", err)
		}
		return answer(0, q)
	}
	return eachVector(o.Verb, o.m, o.vectors, row, answer)
}

// answers prints the answers to queries.
type answers struct {
	*searching
	form   forms.HitTable
	table  *term.Table // for the hits of all queries, in modes that have one
	facets [][]any     // likewise
	any    bool
}

func (o *searching) newAnswers() *answers {
	a := &answers{searching: o, form: forms.NewHitTable(o.Schema, o.include.Parts)}
	if title := forms.TitleField(o.Schema); title != nil && len(a.form.Fields) == 0 && !o.JSON && !o.Flat() {
		a.form.Fields = []db.Field{*title}
		o.include.Parts |= db.IncludeFields
	}
	if o.explain && o.Flat() {
		o.Warnf("--explain is left out of a table of csv: --json has it, and the other modes")
	}
	return a
}

// end ends the output, after an error or without one.
func (a *answers) end(failed error) error {
	if a.table != nil {
		a.table.End()
	}
	if len(a.facets) > 0 {
		a.PrintTable(append([]term.Column{term.Left("query")}, forms.FacetColumns...), a.facets)
	}
	var indexes []report.VectorIndex
	if a.At == nil { // the program has others to look after them
		if s, err := a.Collection.Stats(a.Ctx); err == nil { // hits that are printed are right without this
			indexes = s.VectorIndexes
		}
	}
	for _, x := range indexes {
		if x.Damage != "" {
			a.Warnf("warning: the index of vectors of %s is damaged, so all vectors are compared: fddhdb index makes it again",
				x.Modality)
		}
	}
	return failed
}

// answer answers a query.
func (a *answers) answer(name queryName, q db.Query) error {
	q.To, q.Where, q.K, q.After, q.Words = a.to, a.Filter.Expr, a.k, a.after, a.words
	q.Rerank, q.MinSimilarity, q.Recall, q.Include = a.order, a.minSimilarity, a.atLeast, a.include.Parts
	q.Facets = flags.SplitList(a.searching.facets)
	if a.explain {
		q.Include |= db.IncludeExplain
	}
	find := a.find
	if a.turns {
		find = a.findTurned
	}
	r, err := find(q)
	var bad *db.WhereError
	switch {
	case err == nil:
	case errors.As(err, &bad):
		err = a.Worded(err)
	case q.After != "" && errors.Is(err, db.ErrInvalid):
		err = exit.Usagef("--after: %s", exit.Reason(err.Error()))
	case a.Given("min-similarity") && errors.Is(err, db.ErrInvalid):
		err = exit.Usagef("--min-similarity: %s", exit.Reason(err.Error()))
	default: // the flags are right: the item or the file is wrong
		err = exit.Failedf("%w", err)
	}
	if err != nil {
		return err
	}
	forms.CutFacets(r, a.JSON)
	a.form.Codes, a.form.Score = r.Space != 0, a.words != "" // without a space by vectors or words alone
	switch {
	case a.JSON:
		return a.PrintJSON(forms.NewSearch(name, r, a.Given("radius")))
	case !a.Flat():
		a.print(name, r)
		return nil
	case a.table == nil:
		// The answers that follow have the same columns, whatever this one has.
		a.form.Similarity = a.vectors+a.vector != "" && a.order != db.RerankNone || forms.HasSimilarity(r)
		a.table = a.NewTable(append([]term.Column{term.Left("query")}, a.form.Columns()...))
	}
	for _, cells := range a.form.Rows(r) {
		a.table.Add(append([]any{name}, cells...)...)
	}
	for _, cells := range forms.FacetRows(r) {
		a.facets = append(a.facets, append([]any{name}, cells...))
	}
	return nil
}

// eachCode calls f with the codes of a file as queries, or with one row.
func eachCode(v *run.Verb, file string, bits, row int, f func(queryName, db.Query) error) error {
	s, err := source.OpenCodes(file)
	if err == nil {
		err = s.CheckBits(v.Collection, bits)
	}
	if err == nil {
		err = source.CheckRow(row, s.Rows(), file)
	}
	for i := max(row, 0); err == nil && i < s.Rows() && (row < 0 || i == row); i++ {
		err = f(i, db.Query{Code: s.At(i)})
	}
	return err
}

// errEnough ends the reading of queries.
var errEnough = errors.New("enough")

// eachVector calls f with the vectors of a file as queries, which are valid until it returns, or with one
// row. - is standard input.
func eachVector(v *run.Verb, m db.Modality, file string, row int, f func(queryName, db.Query) error) error {
	switch {
	case file != ingest.StdinName:
		return source.EachVector(v.Ctx, m, source.Input{Path: file, Name: file}, row, f)
	case v.Session != nil:
		return exit.Usagef("--vectors -: the standard input is that of the shell: give a file, or --vector")
	}
	return source.EachQuery(v.Ctx, m, v.Stdin, row, func(name queryName, q db.Query) error {
		if err := f(name, q); err != nil {
			return err
		}
		return v.Stdout.Flush()
	})
}

// title returns the name of a query for people.
func (o *searching) title(name queryName) string {
	what := "row"
	switch {
	case o.labels != nil:
		what = "label"
	case o.vector != "":
		return "vector"
	case o.key != "":
		what = "item"
	case o.code != "":
		what = "code"
	case len(o.texts) > 0:
		what = "text"
	case len(o.picture) > 0:
		what = "picture"
	case o.vectors+o.codes == "":
		what = "words"
	}
	return what + " " + term.Plain(fmt.Sprint(name))
}

// print prints an answer for people.
func (a *answers) print(name queryName, r *db.Result) {
	if a.any {
		a.Printf("\n")
	}
	a.any = true
	a.Printf("%s", a.title(name))
	switch {
	case a.Given("radius") && r.Total > len(r.Hits):
		a.Printf(": the first %s of %s within %s; -k prints more", term.Thousands(len(r.Hits)),
			term.Plural(r.Total, "item", "items"), term.Plural(a.radius, "bit", "bits"))
	case a.Given("radius"):
		a.Printf(": %s within %s", term.Plural(r.Total, "item", "items"),
			term.Plural(a.radius, "bit", "bits"))
	case len(r.Hits) == 0:
		a.Printf(": no items")
	}
	a.Printf("\n")
	if len(r.Hits) > 0 {
		a.form.Similarity = forms.HasSimilarity(r)
		a.PrintTable(a.form.Columns(), a.form.Rows(r))
	}
	forms.PrintFacets(a.Printer, r)
	if r.Explain != nil {
		a.printExplain(r.Explain)
	}
}

// printExplain prints how a search was done. --json has all figures.
func (o *searching) printExplain(x *report.Explain) {
	if len(x.ScannedFields) > 0 {
		o.Printf("filter without an index of %s: their values are read from the items\n",
			strings.Join(x.ScannedFields, ", "))
	}
	took := x.EncodeUS + x.SearchUS + x.ResolveUS
	if x.Metric == "" {
		o.Printf("plan %s: %s of %s found, %s compared and %s read; %.1f us for %s in the order %s\n", x.Plan,
			term.Plural(x.Codes, "code", "codes"), term.Thousands(x.Distinct), term.Thousands(x.Compared),
			term.Thousands(x.Scanned), took, term.Plural(x.Hits, "item", "items"), x.Rerank)
		return
	}
	how := term.Plural(x.Scanned, "vector", "vectors") + " compared"
	if x.Plan == "cells" {
		how = fmt.Sprintf("%s of %s compared, recall %.3f expected", term.Plural(x.Candidates, "vector", "vectors"),
			term.Plural(x.Probes, "cell", "cells"), x.Recall)
	}
	if bad := append(x.DamagedIndexes, x.OutgrownIndexes...); len(bad) > 0 {
		how += ", as the index of " + strings.Join(bad, ", ") + " is damaged or outgrown: fddhdb index makes it again"
	}
	o.Printf("plan %s: %s; %.1f us for %s by the metric %s between vectors of %s\n", x.Plan, how, took,
		term.Plural(x.Hits, "item", "items"), x.Metric, strings.Join(x.Modalities, ", "))
}
