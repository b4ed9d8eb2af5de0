package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
)

// A Query asks for the items whose codes are near. What it starts from is one of
// Vector (with From), Key and Code.
type Query struct {
	// From is the modality of Vector. With Key, it is the modality whose stored
	// features of that item are encoded; where it is empty, or the item lacks
	// it, the stored code of the item is used.
	From string

	// To, if not empty, restricts the answer to items that have this modality.
	To string

	Vector []float32
	Key    string
	Code   []byte // bits/8 bytes, as in Item

	// Where, if not empty, restricts the answer to items that match an expression
	// such as
	//
	//	label = 'cat' AND year IN (2020, 2021) AND NOT (price >= 10 OR has(image))
	//
	// of comparisons with indexed fields, of label, which is true of the items
	// whose labels contain the string, and of has, true of those that have the
	// modality. A comparison with a field that an item lacks is false, that with
	// != too; NOT is true of all items of which what follows is not. docs/SHELL.md
	// has the grammar. A mistake is a *WhereError. The time is that of reading
	// what is indexed of the labels and fields that it names: for a label a bit
	// an item at worst, for a number 64.
	Where string

	// K is the number of items wanted. 0 means 10 for Search and 10,000 for
	// SearchRadius.
	K int

	Rerank Rerank
}

// Rerank says how items that are equally far are put in order.
type Rerank int

const (
	// RerankProjection orders the items of one code by the cosine between the
	// real-valued projection of the query and theirs; then by row. Items that
	// share a code share every score that the code can give, so without it the
	// oldest of them would always come first.
	RerankProjection Rerank = iota
	// RerankNone orders the items of one code by row.
	RerankNone
)

func (r Rerank) String() string {
	switch r {
	case RerankProjection:
		return "projection"
	case RerankNone:
		return "none"
	}
	return fmt.Sprintf("Rerank(%d)", int(r))
}

// ParseRerank returns the order of that name.
func ParseRerank(s string) (Rerank, error) {
	switch strings.ToLower(s) {
	case "projection":
		return RerankProjection, nil
	case "none":
		return RerankNone, nil
	case "asymmetric", "features":
		return 0, invalid("rerank %q is not built yet: projection and none are", s)
	}
	return 0, invalid("unknown rerank %q: projection and none are possible", s)
}

// A Hit is one item of an answer.
type Hit struct {
	Key      string
	Row      uint32
	Distance int // Hamming, in bits

	// Score is z . h, the inner product of the projection of the query with the
	// code of the item as +-1: the larger the nearer. NaN for queries by code.
	Score float64
}

// A Result is the answer to a query: codes by (distance, -score), and where that is
// equal, as for a query by code, by their age; the items of one code together, by
// (-cosine, row).
type Result struct {
	Hits     []Hit
	Total    int    // of SearchRadius: items within the radius, whether in Hits or not
	Space    uint32 // that the codes are of
	Revision uint32
}

const (
	defaultK       = 10
	defaultRadiusK = 10_000
)

// Search returns the K nearest items by Hamming distance between codes, exactly:
// no item outside is nearer than one inside. Fewer come back only when there are
// no more. The time is that of encoding the query, reading all distinct codes,
// and the items of the codes that are reached.
func (c *Collection) Search(ctx context.Context, q Query) (*Result, error) {
	if q.K == 0 {
		q.K = defaultK
	}
	return c.search(ctx, q, -1)
}

// SearchRadius returns the items within radius bits of the query, exactly: the
// first K of them, and in Total how many there are.
func (c *Collection) SearchRadius(ctx context.Context, q Query, radius int) (*Result, error) {
	if radius < 0 {
		return nil, invalid("radius %d: 0 or more bits are possible", radius)
	}
	if q.K == 0 {
		q.K = defaultRadiusK
	}
	return c.search(ctx, q, radius)
}

// search answers a query; a negative radius means none.
func (c *Collection) search(ctx context.Context, q Query, radius int) (*Result, error) {
	if q.K < 0 {
		return nil, invalid("k = %d: 1 or more are possible", q.K)
	}
	if q.Rerank != RerankProjection && q.Rerank != RerankNone {
		return nil, invalid("unknown rerank %v", q.Rerank)
	}
	var res *Result
	err := c.read(func(v *view, cv *collectionView) error {
		s := searcher{snap: v.snap, cv: cv}
		filter, err := cv.filter(ctx, v.snap, q.To, q.Where)
		if err != nil {
			return err
		}
		p, err := s.point(q)
		if err != nil {
			return err
		}
		if q.Rerank == RerankNone {
			p.unit = nil
		}
		res, err = s.search(ctx, p, filter, q.K, radius)
		return err
	})
	return res, err
}

// filter returns the rows that may be hits: those that match where and have the
// modality to. Nil means all that have a code; a bitmap must not be written to.
func (cv *collectionView) filter(ctx context.Context, r pebble.Reader, to, where string) (*roaring.Bitmap, error) {
	var presence *roaring.Bitmap
	if to != "" {
		t, err := cv.modality(to)
		if err != nil {
			return nil, err
		}
		if cv.presence[t].GetCardinality() < cv.live.GetCardinality() {
			presence = cv.presence[t]
		}
	}
	rows, err := cv.matching(ctx, r, where)
	switch {
	case err != nil:
		return nil, err
	case rows == nil:
		return presence, nil
	case presence != nil:
		rows.And(presence)
	}
	return rows, nil
}

// A point is a query in the terms of a space.
type point struct {
	code codec.Code
	z    []float64 // projection; nil for a query by code
	unit []float32 // z at length 1, to order the items of one code by; nil: do not
}

// searcher answers one query from one state of a collection.
type searcher struct {
	snap *pebble.Snapshot
	cv   *collectionView
}

// point encodes a query.
func (s *searcher) point(q Query) (*point, error) {
	cv := s.cv
	given := 0
	for _, is := range []bool{q.Vector != nil, q.Key != "", q.Code != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, invalid("a query starts from one of a vector, a key and a code; %d are given", given)
	case cv.space == nil:
		return nil, fmt.Errorf("%w: collection %q: train it first", ErrNoModel, cv.Name)
	case q.Vector != nil:
		if q.From == "" {
			return nil, invalid("a query by vector names the modality that the vector is of")
		}
		t, err := cv.modality(q.From)
		if err == nil {
			err = cv.checkVector(t, q.Vector)
		}
		if err != nil {
			return nil, err
		}
		return s.project(t, q.Vector)
	case q.Code != nil:
		if len(q.Code) != codec.Bytes(cv.space.Bits) {
			return nil, invalid("code of %d bytes, collection %q has codes of %d (%d bits)",
				len(q.Code), cv.Name, codec.Bytes(cv.space.Bits), cv.space.Bits)
		}
		p := &point{code: codec.NewCode(cv.space.Bits)}
		p.code.SetBytes(q.Code)
		return p, nil
	}
	row, err := cv.row(s.snap, q.Key)
	if err != nil {
		return nil, err
	}
	if q.From != "" {
		t, err := cv.modality(q.From)
		if err != nil {
			return nil, err
		}
		x, found, err := readVector(s.snap, cv.ID, row, t, cv.Modalities[t].Dim)
		if err != nil {
			return nil, err
		}
		if found {
			return s.project(t, x)
		}
	}
	rc, found, err := rowCode(s.snap, cv.ID, cv.space, row)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, invalid("item %q has no code: it has neither features nor a label that the model knows", q.Key)
	}
	code, err := cv.code(rc.Code, row)
	return &point{code: code}, err
}

// project encodes a vector of modality t as a query.
func (s *searcher) project(t int, x []float32) (*point, error) {
	sp := s.cv.space
	e := sp.encoders.Get().(*encoder)
	defer sp.encoders.Put(e)
	i, known := e.position(t)
	if !known {
		return nil, s.cv.unlearned(t)
	}
	p := &point{code: codec.NewCode(sp.Bits), z: make([]float64, sp.Bits)}
	if err := e.Project(p.z, i, x); err != nil {
		return nil, invalid("encode: %w", err)
	}
	if isZero(p.z) {
		return nil, errFarAway
	}
	codec.PackSigns(p.code, p.z)
	sum := 0.0
	for _, z := range p.z {
		sum += z * z
	}
	if sum > 0 && !math.IsInf(sum, 1) {
		p.unit = make([]float32, len(p.z))
		for j, z := range p.z {
			p.unit[j] = float32(z / math.Sqrt(sum))
		}
	}
	return p, nil
}

// score returns z . h for a code h.
func (p *point) score(h codec.Code) float64 {
	sum := 0.0
	for j, z := range p.z {
		if h.Bit(j) {
			sum += z
		} else {
			sum -= z
		}
	}
	return sum
}

// A run is all hits that share one code.
type run struct {
	code     uint32
	distance int
	score    float64 // NaN for a query by code
}

func (s *searcher) search(ctx context.Context, p *point, filter *roaring.Bitmap, k, radius int) (*Result, error) {
	cv := s.cv
	res := &Result{Space: cv.space.ID, Revision: cv.space.Revision}
	runs, total, err := s.runs(ctx, p, filter, k, radius)
	if err != nil {
		return nil, err
	}
	if radius >= 0 {
		res.Total = total
	}
	res.Hits = make([]Hit, 0, min(k, total))
	var rows []uint32
	for _, r := range runs {
		missing := k - len(res.Hits)
		if missing <= 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		rows = cv.table.Rows(r.code).AppendTo(rows[:0], filter)
		if p.unit != nil && len(rows) > 1 {
			if rows, err = s.orderRows(ctx, p, rows, missing); err != nil {
				return nil, err
			}
		}
		for _, row := range rows[:min(missing, len(rows))] {
			key, err := keyOf(s.snap, cv.ID, row)
			if err != nil {
				return nil, err
			}
			res.Hits = append(res.Hits, Hit{Key: key, Row: row, Distance: r.distance, Score: r.score})
		}
	}
	return res, nil
}

// runs finds the codes near the query, by (distance, -score, number), and the
// number of rows that they have.
func (s *searcher) runs(ctx context.Context, p *point, filter *roaring.Bitmap, k, radius int) ([]run, int, error) {
	table := s.cv.table
	total := 0
	weight := func(n uint32) int { return table.Rows(n).LenIn(filter) }
	var runs []run
	add := func(code uint32, distance int, w int) {
		r := run{code, distance, math.NaN()}
		if p.z != nil {
			r.score = p.score(table.Codes().At(int(code)))
		}
		runs = append(runs, r)
		total += w
	}
	if radius >= 0 {
		found, err := s.cv.index.Radius(ctx, p.code, radius, nil)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range found {
			if w := weight(m.Code); w > 0 {
				add(m.Code, int(m.Distance), w)
			}
		}
	} else {
		found, err := s.cv.index.Nearest(ctx, p.code, k, weight, nil)
		if err != nil {
			return nil, 0, err
		}
		for _, m := range found {
			add(m.Code, int(m.Distance), weight(m.Code))
		}
	}
	if p.z != nil {
		// Stable, so that the number of the code decides last.
		slices.SortStableFunc(runs, func(a, b run) int {
			if a.distance != b.distance {
				return cmp.Compare(a.distance, b.distance)
			}
			return cmp.Compare(b.score, a.score)
		})
	}
	return runs, total, nil
}

// orderRows returns the first k of the rows of one code, ascending so far, in
// order of (-cosine, row), in the memory of rows. A row without features has no
// projection and counts as orthogonal.
func (s *searcher) orderRows(ctx context.Context, p *point, rows []uint32, k int) ([]uint32, error) {
	cosines := make([]float32, len(rows))
	for i := 0; i < len(rows); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		block := rows[i] / codec.BlockRows
		end := i
		for end < len(rows) && rows[end]/codec.BlockRows == block {
			end++
		}
		if err := s.cosines(p, block, rows[i:end], cosines[i:end]); err != nil {
			return nil, err
		}
		i = end
	}
	ranked := make([]rankedRow, len(rows))
	for i, row := range rows {
		ranked[i] = rankedRow{cosines[i], row}
	}
	rows = rows[:0]
	for _, r := range firstRanked(ranked, k) {
		rows = append(rows, r.row)
	}
	return rows, nil
}

type rankedRow struct {
	cosine float32
	row    uint32
}

func (a rankedRow) compare(b rankedRow) int {
	if a.cosine != b.cosine {
		return cmp.Compare(b.cosine, a.cosine)
	}
	return cmp.Compare(a.row, b.row)
}

// firstRanked returns the first k of the rows in order, in the same memory. For a
// small k it inserts into the list of the best so far, which is cheaper than
// sorting because few of many rows get in.
func firstRanked(rows []rankedRow, k int) []rankedRow {
	const small = 64
	if k > small || len(rows) <= k {
		slices.SortFunc(rows, rankedRow.compare)
		return rows[:min(k, len(rows))]
	}
	best := rows[:0]
	for _, r := range rows {
		if len(best) == k && r.compare(best[k-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, r, rankedRow.compare)
		if len(best) < k {
			best = append(best, r)
		}
		copy(best[at+1:], best[at:])
		best[at] = r
	}
	return best
}

// cosines fills in the cosines of rows that share a block.
func (s *searcher) cosines(p *point, block uint32, rows []uint32, out []float32) error {
	key := codec.SpaceBlockKey(codec.KindProjection, s.cv.ID, s.cv.space.ID, 0, block)
	value, closer, err := s.snap.Get(key)
	if errors.Is(err, errNotFound) {
		return nil
	}
	first, last := block*codec.BlockRows, block*codec.BlockRows+codec.BlockRows-1
	if err != nil {
		return readError(err, "projections of rows %d to %d", first, last)
	}
	defer closer.Close()
	b, err := codec.DecodeBlock(value)
	if err == nil && b.Len() > 0 && b.Width() != s.cv.space.projectionBytes() {
		err = fmt.Errorf("entries of %d bytes", b.Width())
	}
	if err != nil {
		return corrupt(err, "projections of rows %d to %d", first, last)
	}
	for i, row := range rows {
		if entry, ok := b.Lookup(byte(row)); ok {
			if out[i] = codec.ProjectionDot(entry, p.unit); out[i] != out[i] {
				return corrupt(errors.New("not a number"), "projection of row %d", row)
			}
		}
	}
	return nil
}
