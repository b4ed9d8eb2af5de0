package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/chart"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/model/eval"
)

// evalOptions are the flags of eval.
type evalOptions struct {
	common
	queryOptions
	plot string
}

func evalCommand(e *env) *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:     "eval DIR --vectors NAME=FILE... --labels FILE",
		Short:   "Measure how well queries find what they should",
		GroupID: groupLearn,
		Long: usage.Prose(`
			Eval measures retrieval with queries whose labels are known, and which should
			not be in the database: from each modality that has queries to each other one,
			image->text being text found from an image. An item is relevant to a query if
			they have a label in common.

			  map           mean average precision over the whole ranking by (distance,
			                row); a query without relevant items counts 0
			  map tie       the same if items at one distance come in random order; it does
			                not depend on the order in which items were stored
			  map@N         over the first N (--top), divided by the relevant among them
			  precision@N   relevant among the first N
			  recall@N      the share of all relevant that is among the first N
			Each stands twice: for the ranking by distance, as search does it, and for
			the asymmetric one, by score over all codes (search --rerank asymmetric).

			--labels takes what import --labels takes. Give --label-names too if import
			was given it: labels are compared by name. --truth gives the labels of all
			items of the database, in database order, for scoring only: for a database
			that was not told the labels of all of them, as items without labels are
			relevant to no query. --where ranks only the items that match, those with labels
			by has(label).

			--plot draws two curves for each pair of modalities: precision against recall of all
			items within each radius, and precision of the first K, K from 1 to 1000. With
			--json they are numbers, too; docs/EVALUATION.md explains them. On a terminal the
			last column shows precision, from 0 to 1, as blocks.`),
		Example: usage.Example(`
			fddhdb eval wiki.db --vectors image=query_image.npy --vectors text=query_text.npy \
			    --labels query_labels.npy
			fddhdb eval wiki.db --vectors text=query_text.npy --labels query_labels.npy \
			    --plot wiki.svg --json > wiki.json`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			if err := chart.CheckPath(o.plot); err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				stats, err := c.Stats()
				if err != nil {
					return err
				}
				if !stats.Trained {
					return untrained(c)
				}
				if err := o.checkWhere(cmd.Context(), e, c); err != nil {
					return err
				}
				var files outfile.Set
				defer files.Discard()
				var figure *outfile.File
				if o.plot != "" {
					if figure, err = files.Create(o.plot); err != nil {
						return err
					}
				}
				bar := e.NewProgress()
				defer bar.End()
				q, err := o.read(c, bar)
				if err != nil {
					return err
				}
				bar.Report("evaluating", 0, 0)
				found, err := c.Evaluate(cmd.Context(), *q)
				bar.End()
				if err != nil {
					return o.where.wrap(err)
				}
				if figure != nil {
					if err := chart.WriteRetrieval(figure, found); err != nil {
						return err
					}
					if err := files.Commit(); err != nil {
						return err
					}
				}
				if o.json {
					return e.PrintJSON(newEvalJSON(found, figure != nil))
				}
				e.warnUnlabelled(found)
				e.printEvaluation(found, o.top)
				return nil
			})
		},
	}
	o.common.register(cmd)
	o.registerSpace(cmd)
	o.queryOptions.register(cmd)
	f := cmd.Flags()
	f.StringVar(&o.plot, "plot", "", "draw the curves to `FILE`.svg; with --json they are numbers, too")
	usage.Matter(cmd.Flags(), "vectors", "labels", "truth", "top", "where", "plot", "json")
	return cmd
}

// queryOptions are the flags of the queries that measure retrieval.
type queryOptions struct {
	vectors              flags.NamedList
	labels, names, truth string
	top                  int
	where                whereFlag
}

func (o *queryOptions) register(cmd *cobra.Command) {
	o.vectors.Kind = "NAME=FILE"
	f := cmd.Flags()
	f.Var(&o.vectors, "vectors", "queries of a modality; repeat it for each")
	f.StringVar(&o.labels, "labels", "", "labels of the queries, a `FILE`.npy or text")
	f.StringVar(&o.names, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.truth, "truth", "", "labels of the items of the database, a `FILE`.npy or text")
	f.IntVar(&o.top, "top", 50, "the `N` of the figures at N")
	o.where.register(cmd)
}

// check refuses missing or wrong flags.
func (o *queryOptions) check(cmd *cobra.Command) error {
	switch {
	case len(o.vectors.List) == 0:
		return exit.Usagef("%s needs queries: --vectors NAME=FILE", cmd.Name())
	case o.labels == "":
		return exit.Usagef("%s needs the labels of the queries: --labels FILE", cmd.Name())
	case o.top < 1:
		return exit.Usagef("--top %d: 1 or more are possible", o.top)
	}
	return nil
}

// checkWhere checks the expression before files are read, which may take a while.
func (o *queryOptions) checkWhere(ctx context.Context, e *env, c *db.Collection) error {
	o.where.warnOfLabels(e, c)
	matching, err := c.Count(ctx, o.where.Expr)
	if err != nil {
		return o.where.wrap(err)
	}
	if matching == 0 && o.where.Given() {
		return exit.Failedf("--where: no item matches")
	}
	return nil
}

// read reads the queries, and checks the files.
func (o *queryOptions) read(c *db.Collection, bar *term.Progress) (*db.Evaluation, error) {
	q := &db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{},
		Where: o.where.Expr, Top: o.top}
	labels, err := source.OpenLabels(o.labels, o.names)
	if err != nil {
		return nil, err
	}
	q.Labels = labels.All()
	vectors, err := o.readVectors(c, q, bar)
	if err != nil {
		return nil, err
	}
	if err := append(source.Together{labels}, vectors...).SameRows(); err != nil {
		return nil, err
	}
	known, against := []string(nil), fmt.Sprintf("collection %q", c.Name())
	if o.truth != "" {
		truth, err := source.OpenLabels(o.truth, o.names)
		if err != nil {
			return nil, err
		}
		items, err := c.Count(context.Background(), "")
		if err != nil {
			return nil, err
		}
		if truth.Rows() != items {
			return nil, exit.Failedf("%s has %s, collection %q has %s: --truth is about all items, in database order",
				o.truth, term.Plural(truth.Rows(), "row", "rows"), c.Name(),
				term.Plural(items, "item", "items"))
		}
		q.Truth, known, against = truth.All(), truth.Names(), o.truth
	} else if known, err = c.Labels(); err != nil {
		return nil, err
	}
	return q, labels.CheckKnown(known, against, o.names == "")
}

// readVectors reads the vectors of the queries into q, and returns their files, which are closed.
func (o *queryOptions) readVectors(c *db.Collection, q *db.Evaluation,
	bar *term.Progress) (sources source.Together, err error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	for i, v := range o.vectors.List {
		bar.Report("reading", int64(i), int64(len(o.vectors.List)))
		m, err := source.FindModality(c.Name(), schema, "--vectors", v.Name)
		if err != nil {
			return nil, err
		}
		s, err := source.OpenVectors(v.Name, v.Value)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
		err = s.CheckDim(m)
		switch {
		case err != nil:
		case s.IsSparse():
			q.Sparse[v.Name], err = source.ReadSparseRows(s)
		default:
			q.Queries[v.Name], err = source.ReadRows(s)
		}
		if closed := s.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// evalJSON is the --json form of a pair of modalities.
type evalJSON struct {
	MAP             float64 `json:"map"`
	MAPTie          float64 `json:"map_tie"`
	MAPAt           float64 `json:"map_at"`
	PrecisionAt     float64 `json:"precision_at"`
	RecallAt        float64 `json:"recall_at"`
	MAPAsym         float64 `json:"map_asym"`
	MAPTieAsym      float64 `json:"map_tie_asym"`
	MAPAtAsym       float64 `json:"map_at_asym"`
	PrecisionAtAsym float64 `json:"precision_at_asym"`
	RecallAtAsym    float64 `json:"recall_at_asym"`
	Top             int     `json:"top"`
	Queries         int     `json:"queries"`
	Database        int     `json:"database"`
	Unlabelled      int     `json:"unlabelled,omitempty"`

	PRRadius     []eval.RadiusPoint `json:"pr_radius,omitempty"`
	PrecisionTop []topJSON          `json:"precision_top,omitempty"`
}

// topJSON is the form of a eval.TopPoint, for both orders.
type topJSON struct {
	K          int     `json:"k"`
	Hamming    float64 `json:"hamming"`
	Asymmetric float64 `json:"asymmetric"`
}

func newEvalJSON(found []db.Retrieval, curves bool) map[string]evalJSON {
	out := map[string]evalJSON{}
	for _, r := range found {
		h, a := r.Hamming, r.Asymmetric
		j := evalJSON{
			MAP: h.MAP, MAPTie: h.MAPTie, MAPAt: h.MAPAt, PrecisionAt: h.PrecisionAt, RecallAt: h.RecallAt,
			MAPAsym: a.MAP, MAPTieAsym: a.MAPTie, MAPAtAsym: a.MAPAt, PrecisionAtAsym: a.PrecisionAt,
			RecallAtAsym: a.RecallAt,
			Top:          h.Top, Queries: h.Queries, Database: h.Database, Unlabelled: r.Unlabelled,
		}
		if curves {
			j.PRRadius = h.ByRadius
			for i, p := range h.ByTop {
				j.PrecisionTop = append(j.PrecisionTop, topJSON{p.K, p.Precision, a.ByTop[i].Precision})
			}
		}
		out[r.From+"->"+r.To] = j
	}
	return out
}

// warnUnlabelled warns the user if items have no labels. Such items count as irrelevant, so the figures
// are low even where the codes are good. JSON has their number instead.
func (e *env) warnUnlabelled(found []db.Retrieval) {
	var most db.Retrieval
	for _, r := range found {
		if r.Unlabelled > most.Unlabelled {
			most = r
		}
	}
	if most.Unlabelled > 0 {
		e.Warnf("warning: %s of %s have no labels and count as irrelevant to every query: give the labels of all items by --truth, or leave out those without by --where \"has(label)\"",
			term.Thousands(most.Unlabelled), term.Plural(most.Hamming.Database, "item", "items"))
	}
}

func (e *env) printEvaluation(found []db.Retrieval, top int) {
	var rows, charts [][]any
	var empty []string // directions in which no item can be found
	last := 1          // the largest K of the charts
	for _, r := range found {
		if r.Hamming.Database == 0 {
			empty = append(empty, r.From+"->"+r.To)
			continue
		}
		for _, p := range r.Hamming.ByTop {
			last = p.K
		}
		for _, by := range []struct {
			order string
			m     *eval.Metrics
		}{{"distance", &r.Hamming}, {"asymmetric", &r.Asymmetric}} {
			row := []any{r.From + "->" + r.To, by.order}
			for _, x := range []float64{by.m.MAP, by.m.MAPTie, by.m.MAPAt, by.m.PrecisionAt, by.m.RecallAt} {
				row = append(row, term.NumberCell(x, 4))
			}
			row = append(row, term.CountCell(r.Hamming.Queries), term.CountCell(r.Hamming.Database))
			rows = append(rows, row)
			charts = append(charts, []any{row[0], by.order, chart.Precision(by.m.ByTop)})
		}
	}
	at := func(s string) string { return fmt.Sprintf("%s@%d", s, top) }
	columns := []term.Column{
		term.Left("direction"), term.Left("ranked by"), term.Right("map"), term.Right("map tie"),
		term.Right(at("map")),
		term.Right(at("precision")), term.Right(at("recall")), term.Right("queries"), term.Right("items"),
	}
	if len(rows) > 0 {
		e.PrintTable(columns, rows)
	}
	if len(rows) > 0 && e.ChartsShown() { // beside the figures they would not fit into 100 columns
		e.Printf("\n")
		e.PrintTable([]term.Column{columns[0], columns[1], term.Left(fmt.Sprintf("precision@1..%d", last))},
			charts)
	}
	if len(empty) > 0 {
		e.Printf("no items to find: %s\n", strings.Join(empty, ", "))
	}
}
