package command

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/rows"
	"github.com/fddhdb/fddhdb/model/eval"
)

// An evaluating is a run of eval.
type evaluating struct {
	*run.Verb
	vectors                    flags.NamedList
	labels, names, truth, plot string
	top                        int
}

func evalCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupLearn, "eval DIR --vectors NAME=FILE... --labels FILE",
		"Measure how well queries find what they should", `
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
		--json they are numbers, too; docs/EVALUATION.md explains them.`, `
		fddhdb eval wiki.db --vectors image=query_image.npy --vectors text=query_text.npy \
		    --labels query_labels.npy
		fddhdb eval wiki.db --vectors text=query_text.npy --labels query_labels.npy \
		    --plot wiki.svg --json > wiki.json`).OnCollection().InSpace().Filtered()
	o := evaluating{Verb: v, vectors: flags.NamedList{Kind: "NAME=FILE"}}
	v.Flags.Var(&o.vectors, "vectors", "queries of a modality; repeat it for each")
	v.Flags.StringVar(&o.labels, "labels", "", "labels of the queries, a `FILE`.npy or text")
	v.Flags.StringVar(&o.names, "label-names", "", "names of the labels, a text `FILE`")
	v.Flags.StringVar(&o.truth, "truth", "", "labels of the items of the database, a `FILE`.npy or text")
	v.Count(&o.top, "top", 50, 1, "the `N` of the figures at N")
	v.Flags.StringVar(&o.plot, "plot", "", "draw the curves to `FILE`.svg; with --json they are numbers, too")
	usage.Matter(v.Flags, "vectors", "labels", "truth", "top", "where", "plot", "json")
	return v.Does(func() error {
		switch {
		case len(o.vectors.List) == 0:
			return exit.Usagef("eval needs queries: --vectors NAME=FILE")
		case o.labels == "":
			return exit.Usagef("eval needs the labels of the queries: --labels FILE")
		case o.plot != "" && !strings.EqualFold(filepath.Ext(o.plot), ".svg"):
			return exit.Usagef("--plot %s: a .svg file is drawn", o.plot)
		}
		return v.Share(func() error {
			if err := o.ready(); err != nil {
				return err
			}
			return o.evaluate()
		})
	})
}

// ready refuses a collection without codes, or without items, before files are read, which may take a while.
func (o *evaluating) ready() error {
	if _, err := o.Trained(); err != nil {
		return err
	}
	matching, err := o.Collection.Count(o.Ctx, o.Filter.Expr)
	if err == nil && matching == 0 && o.Filter.Given() {
		return exit.Failedf("--where: no item matches")
	}
	return err
}

// evaluate measures queries by labels.
func (o *evaluating) evaluate() (err error) {
	var files outfile.Set
	defer files.Discard()
	var figure *outfile.File
	if o.plot != "" {
		if figure, err = files.Create(o.plot); err != nil {
			return err
		}
	}
	q, err := o.read()
	if err != nil {
		return err
	}
	o.Progress().Report("evaluating", 0, 0)
	found, err := o.Collection.Evaluate(o.Ctx, *q)
	if err == nil && figure != nil {
		if err = writeRetrieval(figure, found); err == nil {
			err = files.Commit()
		}
	}
	if err != nil {
		return err
	}
	return o.Show(newEvalJSON(found, figure != nil), func() { o.print(found) })
}

// read reads the queries and their labels, and checks the files.
func (o *evaluating) read() (*db.Evaluation, error) {
	labels, err := source.OpenLabels(o.labels, o.names)
	if err != nil {
		return nil, err
	}
	q, vectors, err := o.readVectors()
	if err != nil {
		return nil, err
	}
	q.Labels = labels.All()
	if err := source.SameRows(append(rows.Together{labels}, vectors...)); err != nil {
		return nil, err
	}
	known, err := o.Collection.Labels(o.Ctx)
	if err != nil {
		return nil, err
	}
	against := fmt.Sprintf("collection %q", o.Collection.Name())
	if o.truth != "" {
		truth, err := source.OpenLabels(o.truth, o.names)
		if err != nil {
			return nil, err
		}
		items, err := o.Collection.Count(o.Ctx, "")
		if err != nil {
			return nil, err
		}
		if truth.Rows() != items {
			return nil, exit.Failedf("%s has %s, %s has %s: --truth is about all items, in database order",
				o.truth, term.Plural(truth.Rows(), "row", "rows"), against, term.Plural(items, "item",
					"items"))
		}
		q.Truth, known, against = truth.All(), truth.Names(), o.truth
	}
	return q, labels.CheckKnown(known, against, o.names == "")
}

// readVectors reads the vectors of the queries, and returns their files too, which are closed.
func (o *evaluating) readVectors() (q *db.Evaluation, sources rows.Together, err error) {
	q = &db.Evaluation{Queries: map[string][][]float32{}, Sparse: map[string][]db.Sparse{},
		Where: o.Filter.Expr, Top: o.top}
	for i, v := range o.vectors.List {
		o.Progress().Report("reading", int64(i), int64(len(o.vectors.List)))
		m, err := o.FindModality("--vectors", v.Name)
		if err != nil {
			return nil, nil, err
		}
		s, err := source.OpenVectors(v.Name, v.Value)
		if err != nil {
			return nil, nil, err
		}
		defer s.Close()
		sources = append(sources, s)
		if err = s.CheckDim(m); err == nil {
			var dense [][]float32
			var sparse []db.Sparse
			if dense, sparse, err = s.All(); s.IsSparse() {
				q.Sparse[v.Name] = sparse
			} else {
				q.Queries[v.Name] = dense
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return q, sources, nil
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

func newEvalJSON(found []report.Retrieval, curves bool) map[string]evalJSON {
	out := map[string]evalJSON{}
	for _, r := range found {
		h, a := r.Hamming, r.Asymmetric
		j := evalJSON{h.MAP, h.MAPTie, h.MAPAt, h.PrecisionAt, h.RecallAt, a.MAP, a.MAPTie, a.MAPAt,
			a.PrecisionAt,
			a.RecallAt, h.Top, h.Queries, h.Database, r.Unlabelled, nil, nil}
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

// print prints the figures. It warns if items have no labels: they count as irrelevant, so the figures are
// low even where the codes are good.
func (o *evaluating) print(found []report.Retrieval) {
	var rows [][]any
	var empty []string // directions in which no item can be found
	unlabelled, of := 0, 0
	for _, r := range found {
		if r.Unlabelled > unlabelled {
			unlabelled, of = r.Unlabelled, r.Hamming.Database
		}
		if r.Hamming.Database == 0 {
			empty = append(empty, r.From+"->"+r.To)
			continue
		}
		for order, m := range []*eval.Metrics{&r.Hamming, &r.Asymmetric} {
			row := []any{r.From + "->" + r.To, []string{"distance", "asymmetric"}[order]}
			for _, x := range []float64{m.MAP, m.MAPTie, m.MAPAt, m.PrecisionAt, m.RecallAt} {
				row = append(row, term.NumberCell(x, 4))
			}
			rows = append(rows, append(row, term.CountCell(r.Hamming.Queries),
				term.CountCell(r.Hamming.Database)))
		}
	}
	if unlabelled > 0 {
		o.Warnf("warning: %s of %s have no labels and count as irrelevant to every query: give the labels of all items by --truth, or leave out those without by --where \"has(label)\"",
			term.Thousands(unlabelled), term.Plural(of, "item", "items"))
	}
	at := func(s string) term.Column { return term.Right(fmt.Sprintf("%s@%d", s, o.top)) }
	if len(rows) > 0 {
		o.PrintTable([]term.Column{term.Left("direction"), term.Left("ranked by"), term.Right("map"),
			term.Right("map tie"), at("map"), at("precision"), at("recall"), term.Right("queries"),
			term.Right("items")}, rows)
	}
	if len(empty) > 0 {
		o.Printf("no items to find: %s\n", strings.Join(empty, ", "))
	}
}
