package command

import (
	"math"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/sheet"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
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
	f.StringArrayVar(&o.images, "image", nil, "query by a `FILE`, such as a picture; repeat it for several queries")
	f.StringVar(&o.vectors, "vectors", "", "query by the vectors in `FILE`, which are of the modality --from; -: standard input")
	f.StringVar(&o.vector, "vector", "", "query by a vector of the modality --from, `v,v,...` or i:v,i:v,...")
	f.IntVar(&o.row, "row", 0, "only row `N` of the file, from 0")
	f.StringVar(&o.key, "key", "", "query by the item with this `KEY`")
	f.StringVar(&o.code, "code", "", "query by a code in `HEX`")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.IntVarP(&o.k, "k", "k", 10, "number `N` of hits; with --radius 10,000 if not given")
	f.IntVar(&o.radius, "radius", 0, "only items within `R` bits")
	f.StringVar(&o.rerank, "rerank", "auto", "`ORDER` of the hits: auto, projection, none or asymmetric")
	f.Float32Var(&o.minSimilarity, "min-similarity", 0, "only hits of similarity `X` or more, from -1 to 1; by the metric dot any number")
	f.Float64Var(&o.recall, "recall", 0, "by vectors, find the part `X` of the first -k hits or more, on average; 1: all (default: that of the index, see index)")
	o.where.register(cmd)
	f.Var(&o.include, "include", "print parts of the items with the hits, a `LIST` of labels, fields, payload and vectors")
	f.StringVar(&o.facets, "facets", "", "count the items of the answer by a `LIST` of label and fields")
	f.BoolVar(&o.excludeSelf, "exclude-self", false, "leave the item of --key out of the hits")
	f.StringVar(&o.after, "after", "", "go on behind the hits of the same search, whose next was `CURSOR`")
	f.BoolVar(&o.explain, "explain", false, "say how the search was done")
	f.StringVar(&o.sheet, "sheet", "", "make a contact sheet of the hits, a `FILE`.html")
	f.StringVar(&o.pictures, "pictures", "", "with --sheet: the folder `DIR` that files of pictures are in")
	usage.Matter(cmd.Flags(), "text", "image", "from", "vectors", "row", "vector", "key", "code", "to", "k", "radius", "where", "recall", "rerank", "include", "explain", "json")
	return cmd
}

// check checks that flags go together and are possible for some collection.
func (o *searchOptions) check() (db.Rerank, error) {
	given := 0
	for _, is := range []bool{len(o.texts) > 0, len(o.images) > 0, o.vectors != "", o.vector != "", o.key != "", o.code != "", o.codes != ""} {
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
