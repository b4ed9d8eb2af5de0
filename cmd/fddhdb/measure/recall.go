package measure

import (
	"context"
	"slices"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
)

// exact is the recall of the answers that all others are compared with.
const exact = 1

// An answer is how a search by vectors went, and how similar its hits are.
type answer struct {
	similarities []float32 // of its hits, most similar first
	approximate  bool
	cells        int // looked into
	candidates   int // vectors that were compared
	compared     int // of these, read and compared exactly
}

// NewByVectors returns a bench of searches by vectors, by each recall of the plan and the exact one.
func NewByVectors(ctx context.Context, target Target, o *Plan, queries []Query, bar *term.Progress) (*Bench, error) {
	b := &Bench{queries: queries, target: target, bar: bar}
	var err error
	if b.items, err = target.Items(ctx, queries[0].Query); err != nil {
		return nil, err
	}
	recalls := slices.Clone(o.Recalls)
	if !slices.Contains(recalls, exact) {
		recalls = append(recalls, exact)
	}
	for _, op := range o.ops() {
		for _, recall := range recalls {
			b.lines = append(b.lines, &line{Op: op, tier: "auto", recall: recall, searches: target.Tier("auto")})
		}
	}
	return b, nil
}

// look answers the queries with the numbers from up to, but without, to once more, outside the timing.
// It keeps the plan and the hits of each in the line.
func (b *Bench) look(ctx context.Context, l *line, from, to int) error {
	for i := from; i < to; i++ {
		x, r, err := b.target.Explain(ctx, l.ask(&b.queries[i]))
		if err != nil {
			return exit.Wrap(err, "while explaining %s", l.name())
		}
		a := answer{approximate: r.Approximate, cells: x.Probes, candidates: x.Candidates + x.Scanned, compared: x.Compared}
		for _, h := range r.Hits {
			a.similarities = append(a.similarities, h.Similarity)
		}
		l.answers = append(l.answers, a)
	}
	return nil
}

// found returns the share of the hits of the exact answer that a has. A hit as similar as the last
// one of these counts: either may stand there.
func (a *answer) found(all *answer) float64 {
	n := len(all.similarities)
	if n == 0 {
		return 1 // there is nothing to find
	}
	least, found := all.similarities[n-1], 0
	for _, x := range a.similarities {
		if x >= least {
			found++
		}
	}
	return float64(found) / float64(n)
}

// recallJSON is a measurement of searches by vectors in the form of bench --json.
type recallJSON struct {
	Op          string  `json:"op"`
	K           int     `json:"k"`
	Tier        string  `json:"tier"`
	Recall      float64 `json:"recall"` // that is asked for
	Queries     int     `json:"queries"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	Mean        float64 `json:"mean_us"`
	AvgHits     float64 `json:"avg_hits"`
	Found       float64 `json:"recall_found"` // mean over the queries
	Approximate int     `json:"approximate"`  // number of answers
	Cells       float64 `json:"avg_cells"`
	Candidates  float64 `json:"avg_candidates"`
	Compared    float64 `json:"avg_compared"`
	Items       int     `json:"items"`              // number of searched items
	Database    string  `json:"database,omitempty"` // if there are several
}

// recallJSON returns the measured figures of a line. yard is the line of the exact answers, which the
// recall is counted against.
func (l *line) recallJSON(yard *line) recallJSON {
	of := l.json(false)
	j := recallJSON{Op: l.Kind, K: l.N, Tier: l.tier, Recall: l.recall, Queries: of.Queries,
		P50: of.P50, P99: of.P99, Mean: of.Mean, AvgHits: of.AvgHits}
	for i, a := range l.answers {
		j.Found += a.found(&yard.answers[i])
		j.Cells += float64(a.cells)
		j.Candidates += float64(a.candidates)
		j.Compared += float64(a.compared)
		if a.approximate {
			j.Approximate++
		}
	}
	for _, sum := range []*float64{&j.Found, &j.Cells, &j.Candidates, &j.Compared} {
		*sum /= float64(len(l.answers))
	}
	return j
}

// recalls returns the figures of the lines, by operation, of those whose measurement was not
// interrupted.
func (r *Run) recalls() (all []recallJSON) {
	for _, l := range r.lines {
		for _, yard := range r.lines {
			if yard.Op == l.Op && yard.recall == exact && len(yard.answers) > 0 && len(yard.answers) == len(l.answers) {
				j := l.recallJSON(yard)
				j.Items = r.items
				all = append(all, j)
			}
		}
	}
	return all
}

// PrintByVectors prints the measurements of searches by vectors. several adds the names of the
// databases, and counted how many items are searched.
func PrintByVectors(p *term.Printer, runs []Run, several, counted, asJSON bool) error {
	var rows [][]any
	for _, run := range runs {
		all := run.recalls()
		for _, j := range all {
			if several {
				j.Database = run.database
			}
			if asJSON {
				if err := p.PrintJSON(j); err != nil {
					return err
				}
				continue
			}
			rows = append(rows, j.row(all, several, counted))
		}
	}
	if len(rows) == 0 {
		return nil
	}
	columns := []term.Column{term.Left("search"), term.Right("recall"), term.Right("queries"), term.Right("p50 us"), term.Right("p99 us"),
		term.Right("mean us"), term.Right("hits"), term.Right("found"), term.Right("approximate"), term.Right("cells"),
		term.Right("candidates"), term.Right("compared"), term.Right("times exact")}
	if counted {
		columns = append([]term.Column{term.Right("items")}, columns...)
	}
	if several {
		columns = append([]term.Column{term.Left("database")}, columns...)
	}
	p.PrintTable(columns, rows)
	return nil
}

// row returns the row of the table for one of the measurements of a database.
func (j *recallJSON) row(all []recallJSON, several, counted bool) (row []any) {
	if several {
		row = append(row, term.TextCell(j.Database))
	}
	if counted {
		row = append(row, term.CountCell(j.Items))
	}
	row = append(row, Op{j.Op, j.K}.String(), j.Recall, j.Queries, microseconds(j.P50), microseconds(j.P99), microseconds(j.Mean),
		term.NumberCell(j.AvgHits, 1), term.NumberCell(j.Found, 3), j.Approximate, term.NumberCell(j.Cells, 1),
		term.NumberCell(j.Candidates, 0), term.NumberCell(j.Compared, 0), term.NoCell)
	for _, yard := range all {
		if yard.K == j.K && yard.Recall == exact && j.P50 > 0 {
			row[len(row)-1] = term.NumberCell(yard.P50/j.P50, 2)
		}
	}
	return row
}
