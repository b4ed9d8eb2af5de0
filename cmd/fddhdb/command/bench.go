package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/measure"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

// benchOptions are the flags of bench.
type benchOptions struct {
	common
	from, vectors, codes string
	k, radius            intList
	recall               recallList
	where                whereFlag
	tier                 string
	hasTier              bool
	queries              int
	check                bool
	order                string
	plot                 string
	target               targetFlag
}

// benchCommand returns the verb. target makes a Target of a collection; tests replace
// it.
func benchCommand(e *env, target func(d *db.DB, c *db.Collection, to string) measure.Target) *cobra.Command {
	o := benchOptions{k: intList{least: 1}, radius: intList{least: 0}}
	cmd := &cobra.Command{
		Use:     "bench DIR [DIR...] --codes FILE",
		Short:   "Measure searches",
		GroupID: groupLook,
		Long: usage.Prose(`
			Bench measures how long searches take, one at a time, on one core. Queries are
			the rows of --vectors FILE, of the modality --from, or of --codes FILE, a .npy
			of packed codes. --to keeps to the items that have that modality, as in a
			search. Several databases are measured one after the other.

			A measurement is one of
			  knn     the -k nearest items with their keys
			  radius  all items within --radius bits, without looking at each
			  hits    the same, and the first 100 of them with their keys
			  count   how many items are within --radius bits
			by each --tier, a way to find codes:
			  auto       what a search takes by itself
			  fullscan   the yardstick: every word of the codes of all items, one after
			             the other; it finds rows, not keys
			  scan       the distinct codes, in memory
			  memory     the tables in memory
			  disk       the tables on disk
			  blockscan  the distinct codes, read from disk
			The tiers take turns, some queries each, so that what else the machine does
			meets all of them; before each turn some searches are not counted.

			Times are those of the median query (p50), of the slowest but one in a hundred
			(p99) and the mean, in microseconds, and of what they consist, each the median:
			  encode  from the query to its code, by the model
			  find    from the code to the codes of the answer
			  order   of the items of these, by score and cosine
			  keys    reading the keys of the hits
			The tiers differ in how they find, and fullscan does nothing else: "times
			fullscan" says how many times as fast as by fullscan the codes are found.
			For queries by vector, --order names orders of answers as search --rerank does:
			each search that has keys is then measured in each of them, and in the order
			none beside them, of which "times none" is how many times as long the search
			takes, without encoding. So is
			  next    the next -k items behind the first, by a cursor; not with features
			--check also compares every answer with a linear scan that shares no code with
			any tier; if any differs, bench fails. Orders are compared with the scores and
			similarities of all items, computed from their vectors; that takes a space of
			one revision, as a training or reindex makes it.

			--recall measures searches by --vectors whose hits come by their vectors, as
			those of search --recall: knn by each recall of the list, and by 1, all of it,
			beside them. That needs no training. --where keeps to items that match, and the
			table says how many these are. Instead of the parts of the time there are
			  found        the recall that was found: the share of the hits of 1, on
			               average over the queries
			  approximate  how many answers may lack items
			  cells        of an index of vectors (see index), that were looked into, on
			               average
			  candidates   vectors that were compared, on average
			  compared     of these, compared exactly, on average
			  times exact  how many times as fast as by 1 the answer is, by the medians

			--plot draws the time in which each tier finds the codes, and for hits the whole
			time, on a logarithmic axis, the median and a bar up to p99: against k and radius
			or, of several databases, against their items.`),
		Example: usage.Example(`
			fddhdb bench hashes.db --codes queries.npy -k 1,10,100 --radius 0,4,8
			fddhdb bench wiki.db --vectors query_text.npy --from text --tier auto,memory --json
			fddhdb bench hashes.db --codes queries.npy --radius 8 --queries 100 --check
			fddhdb bench wiki.db --vectors query_text.npy --from text --order projection
			fddhdb bench photos.db --vectors query.npy --from image --recall .9,.95,.99
			fddhdb bench hashes.db --codes queries.npy --radius 0,4,8,12,16 --plot radius.svg
			fddhdb bench 10k.db 100k.db 1m.db --codes queries.npy --radius 8 --plot size.svg`),
		Args: benchArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.hasTier = cmd.Flags().Changed("tier")
			if err := o.validate(); err != nil {
				return err
			}
			return e.benchAll(cmd.Context(), args, target, &o)
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	term.PrintsObjects(cmd)
	o.target.register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.vectors, "vectors", "", "query by the vectors in `FILE`, which are of the modality --from")
	f.StringVar(&o.from, "from", "", "modality `NAME` of the vectors")
	f.StringVar(&o.codes, "codes", "", "query by the codes in `FILE`.npy")
	f.VarP(&o.k, "k", "k", "numbers of nearest items, such as 1,10,100 (10 without --radius)")
	f.Var(&o.radius, "radius", "radii in bits, such as 0,4,8")
	f.Var(&o.recall, "recall", "search by vectors, for recalls such as .9,.95,.99, and for 1 beside them")
	o.where.register(cmd)
	f.StringVar(&o.tier, "tier", "auto,"+measure.FullScan, "ways to search, a `LIST` of "+strings.Join(measure.Tiers, ", "))
	f.StringVar(&o.order, "order", "", "rank answers by each of a `LIST` of auto, projection, none, asymmetric, features, fused")
	f.IntVar(&o.queries, "queries", 1000, "the first `N` rows of the file, at most")
	f.BoolVar(&o.check, "check", false, "compare every answer with a linear scan")
	f.StringVar(&o.plot, "plot", "", "draw the times to `FILE`.svg or .png")
	return cmd
}

// benchArgs accepts folders of databases, each once.
func benchArgs(cmd *cobra.Command, args []string) error {
	for i, dir := range args {
		if err := dirArg(cmd, args[i:i+1]); err != nil {
			return err
		}
		info, err := os.Stat(dir)
		for _, other := range args[:i] {
			if again, otherErr := os.Stat(other); err == nil && otherErr == nil && os.SameFile(info, again) {
				return exit.Usagef("bench measures %s once: give other databases, or leave it out", dir)
			}
		}
	}
	return dirArg(cmd, args[:min(1, len(args))])
}

// intList is the value of a flag of whole numbers, separated by commas. The flag may be
// repeated.
type intList struct {
	list  []int
	least int // least allowed number
}

func (l *intList) String() string { return "" }
func (l *intList) Type() string   { return "LIST" }

func (l *intList) Set(s string) error {
	for _, f := range strings.Split(s, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		switch {
		case err != nil:
			return fmt.Errorf("whole numbers are expected, separated by commas")
		case n < l.least:
			return fmt.Errorf("%d or more are possible", l.least)
		case !slices.Contains(l.list, n):
			l.list = append(l.list, n)
		}
	}
	return nil
}

// recallList is the value of a flag of recalls, separated by commas. The flag may be repeated.
type recallList []float64

func (l *recallList) String() string { return "" }
func (l *recallList) Type() string   { return "LIST" }

func (l *recallList) Set(s string) error {
	for _, f := range strings.Split(s, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(f), 64)
		switch {
		case err != nil:
			return fmt.Errorf("numbers are expected, separated by commas")
		case !(x > 0 && x <= 1): // NaN, too
			return fmt.Errorf("above 0, up to 1, are possible")
		case !slices.Contains(*l, x):
			*l = append(*l, x)
		}
	}
	return nil
}

// validate checks that flags go together.
func (o *benchOptions) validate() error {
	switch {
	case o.vectors == "" && o.codes == "":
		return exit.Usagef("bench needs queries: --vectors FILE with --from NAME, or --codes FILE")
	case o.vectors != "" && o.codes != "":
		return exit.Usagef("bench takes one of --vectors and --codes, not both")
	case o.vectors != "" && o.from == "":
		return exit.Usagef("--from NAME is missing: the modality that the vectors of %s are of", o.vectors)
	case o.from != "" && o.codes != "":
		return exit.Usagef("--from: a query by code is of no modality: leave it out")
	case o.queries < 1:
		return exit.Usagef("--queries %d: 1 or more are possible", o.queries)
	case o.recall != nil && (o.codes != "" || o.radius.list != nil || o.hasTier || o.order != "" || o.check || o.plot != ""):
		return exit.Usagef("--recall measures answers by vectors, beside the exact ones: leave out --codes, --radius, --tier, --order, --check and --plot")
	case o.recall == nil && o.where.Given():
		return exit.Usagef("--where is of answers by vectors: give --recall")
	case len(o.tiers()) == 0:
		return exit.Usagef("--tier names no tier: there are %s", strings.Join(measure.Tiers, ", "))
	}
	if o.order != "" {
		switch orders, err := o.orders(); {
		case err != nil:
			return err
		case len(orders) == 1 && len(flags.SplitList(o.order)) == 0:
			return exit.Usagef("--order names no order: there are auto, projection, none, asymmetric, features and fused")
		case o.codes != "":
			return exit.Usagef("--order ranks by what a vector is compared with: give --vectors FILE with --from NAME")
		case o.plot != "":
			return exit.Usagef("--plot draws the time in which codes are found, the same in every order: leave out --order")
		}
	}
	for _, name := range o.tiers() {
		if !slices.Contains(measure.Tiers, name) {
			return exit.Usagef("--tier: there is no tier %q: there are %s", name, strings.Join(measure.Tiers, ", "))
		}
	}
	return chart.CheckPath(o.plot)
}

// tiers returns the names in --tier, each once.
func (o *benchOptions) tiers() []string {
	var names []string
	for _, name := range flags.SplitList(o.tier) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// orders returns the orders in --order, each once, and none behind them if it is not among
// them; nil if the flag is not given.
func (o *benchOptions) orders() ([]db.Rerank, error) {
	if o.order == "" {
		return nil, nil
	}
	var orders []db.Rerank
	for _, name := range append(flags.SplitList(o.order), db.RerankNone.String()) {
		order, err := db.ParseRerank(name)
		if err != nil {
			return nil, exit.Usagef("--order: there is no order %q: there are auto, projection, none, asymmetric, features and fused", name)
		}
		if !slices.Contains(orders, order) {
			orders = append(orders, order)
		}
	}
	return orders, nil
}

// plan returns the measurements that the flags ask for.
func (o *benchOptions) plan() (*measure.Plan, error) {
	orders, err := o.orders()
	return &measure.Plan{K: o.k.list, Radius: o.radius.list, Tiers: o.tiers(), Check: o.check, Orders: orders, Recalls: o.recall}, err
}

// benchAll measures databases, prints and draws.
func (e *env) benchAll(ctx context.Context, dirs []string, target func(*db.DB, *db.Collection, string) measure.Target, o *benchOptions) error {
	var files outfile.Set
	defer files.Discard()
	var figure *outfile.File
	if o.plot != "" {
		var err error
		if figure, err = files.Create(o.plot); err != nil {
			return err
		}
	}
	var runs []measure.Run
	for _, dir := range dirs {
		err := e.lookAtCollection(dir, &o.common, func(d *db.DB, c *db.Collection) error {
			b, err := e.bench(ctx, c, target(d, c, o.target.to), o)
			if b != nil {
				runs = append(runs, b.Run(dir))
			}
			return err
		})
		if err != nil {
			if len(dirs) > 1 {
				err = exit.Wrap(err, "while measuring %s", dir)
			}
			// Measurements from before an error are useful, too.
			return errors.Join(e.printBench(runs, len(dirs) > 1, o), err)
		}
	}
	if err := e.printBench(runs, len(dirs) > 1, o); err != nil || figure == nil {
		return err
	}
	if err := measure.WritePlot(figure, o.plot, runs); err != nil {
		return err
	}
	return files.Commit()
}

func (e *env) printBench(runs []measure.Run, several bool, o *benchOptions) error {
	if o.recall != nil {
		return measure.PrintByVectors(e.Printer, runs, several, several || o.where.Given(), o.json)
	}
	return measure.Print(e.Printer, runs, several, o.check, o.json)
}

// bench measures and checks a collection. It returns nil if nothing was measured.
func (e *env) bench(ctx context.Context, c *db.Collection, target measure.Target, o *benchOptions) (*measure.Bench, error) {
	stats, err := c.Stats()
	switch {
	case err != nil:
		return nil, err
	case !stats.Trained && o.recall == nil:
		return nil, fmt.Errorf("%w, or measure searches by vectors with --recall", untrained(c))
	}
	plan, err := o.plan()
	if err == nil && o.check && len(plan.Orders) > 0 {
		err = canCompute(ctx, c, stats)
	}
	if err != nil {
		return nil, err
	}
	schema, err := c.Schema()
	if err == nil {
		err = checkTarget(c, schema, stats, o.target.to)
	}
	if err != nil {
		return nil, err
	}
	queries, err := o.read(c, stats.Bits)
	if err != nil {
		return nil, err
	}
	if o.recall != nil {
		return e.benchByVectors(ctx, target, plan, queries, o)
	}
	for i := range queries {
		if queries[i].Encoded, queries[i].Projection, err = target.Encode(ctx, queries[i].Query); err != nil {
			return nil, exit.AtRow(err, o.vectors+o.codes, i)
		}
	}
	if err := target.Settle(ctx); err != nil {
		return nil, err
	}
	bar := e.NewProgress()
	defer bar.End()
	b, err := measure.New(ctx, target, stats.Bits, plan, queries, bar)
	if err != nil {
		return nil, err
	}
	err = b.Measure(ctx)
	if err == nil && o.check {
		err = b.CheckAll(ctx)
	}
	return b, err
}

// benchByVectors measures searches by vectors. It returns nil if nothing was measured.
func (e *env) benchByVectors(ctx context.Context, target measure.Target, plan *measure.Plan, queries []measure.Query, o *benchOptions) (*measure.Bench, error) {
	if err := target.Settle(ctx); err != nil {
		return nil, err
	}
	bar := e.NewProgress()
	defer bar.End()
	b, err := measure.NewByVectors(ctx, target, plan, queries, bar)
	if err != nil {
		return nil, o.where.wrap(err)
	}
	return b, b.Measure(ctx)
}

// canCompute returns an error where --check cannot compute the projections that --order ranks by. It
// needs the vectors of all items, and one revision of the model that all projections come from.
func canCompute(ctx context.Context, c *db.Collection, stats *db.CollectionStats) error {
	if stats.IndexOnly {
		return exit.Failedf("collection %q is index-only, and --check computes what --order ranks by from vectors: check the database that it is a copy of", c.Name())
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return err
	}
	for _, s := range spaces {
		// An item keeps the projection that it got of the revision that was in use then.
		if n := len(s.Revisions); s.Space == stats.Space && n > 0 && s.Revisions[n-1].Revision > 1 {
			return exit.Failedf("space %d has items of several revisions, and --check computes what --order ranks by with the one in use: check the space that reindex makes", s.Space)
		}
	}
	return nil
}

// read reads the queries of the file.
func (o *benchOptions) read(c *db.Collection, bits int) ([]measure.Query, error) {
	var queries []measure.Query
	var s source.Source
	if o.codes != "" {
		codes, err := source.OpenCodes(o.codes)
		if err == nil {
			err = codes.CheckBits(c, bits)
		}
		if err != nil {
			return nil, err
		}
		for row := range min(codes.Rows(), o.queries) {
			queries = append(queries, measure.Query{Query: db.Query{Code: codes.At(row), To: o.target.to}})
		}
		s = codes
	} else {
		schema, err := c.Schema()
		if err != nil {
			return nil, err
		}
		m, err := source.FindModality(c.Name(), schema, "--from", o.from)
		if err != nil {
			return nil, err
		}
		vectors, err := source.OpenQueries(m, o.vectors)
		if err != nil {
			return nil, err
		}
		defer vectors.Close()
		if err := vectors.CheckDim(m); err != nil {
			return nil, err
		}
		for len(queries) < o.queries {
			err := vectors.Read()
			if err == io.EOF {
				break
			}
			if err != nil {
				return nil, err
			}
			q := db.Query{From: m.Name, To: o.target.to, Where: o.where.Expr}
			q.Vector, q.Sparse = vectors.Copy()
			queries = append(queries, measure.Query{Query: q})
		}
		s = vectors
	}
	if len(queries) == 0 {
		return nil, exit.Failedf("%s has no rows to search with", s.Path())
	}
	return queries, nil
}
