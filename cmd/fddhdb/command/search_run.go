package command

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/jsonform"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/sheet"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

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
func (e *env) search(ctx context.Context, c *db.Collection, o *searchOptions, rerank db.Rerank, to *sheet.Sheet) error {
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
			return exit.Usagef("--code %q has %d bits, collection %q has codes of %d", o.code, 8*len(code), c.Name(), stats.Bits)
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
		return exit.Usagef("--row %d: %s has %s, counted from 0", o.row, s.Path(), term.Plural(s.Rows(), "row", "rows"))
	}
	return nil
}
