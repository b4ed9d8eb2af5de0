package search

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"hash/crc64"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/db/internal/work"
	"github.com/fddhdb/fddhdb/mih"
)

// A Likeness says which items are alike: by codes within Radius bits, or by vectors of Modality with at least
// MinSimilarity.
type Likeness struct {
	Radius        int
	Modality      string // "": by codes
	MinSimilarity float32
	Recall        float64 // by vectors, see Query
	Where         string
	Args          []any
}

// A Pair is two items that are alike. Row is the later one, or one of the first collection.
type Pair struct {
	Row, Other uint32
	Distance   int     // -1 by vectors
	Similarity float32 // 0 by codes
}

// check checks what depends on no collection.
func (a *Likeness) check() error {
	switch {
	case a.Radius < 0:
		return fault.Invalid("radius %d: 0 or more bits are possible", a.Radius)
	case a.Modality == "" && (a.MinSimilarity != 0 || a.Recall != 0):
		return fault.Invalid("a least similarity, or a recall, is of vectors: name a modality")
	case a.Modality != "" && a.Radius != 0:
		return fault.Invalid("a radius is of codes, and modality %q of vectors: leave one out", a.Modality)
	case a.Modality != "" && (a.MinSimilarity == 0 || math.IsNaN(float64(a.MinSimilarity))):
		return fault.Invalid("pairs of vectors need a least similarity other than 0")
	}
	return nil
}

// A codedRows has the codes that some rows carry, and these rows: of code i ascending.
type codedRows struct {
	codes  codec.Codes
	starts []uint32 // of the rows of each code; and the end of the last ones
	rows   []uint32
}

func (c *codedRows) of(i uint32) []uint32 { return c.rows[c.starts[i]:c.starts[i+1]] }

// codedRowsOf returns the codes of the rows that match. All codes are in memory.
func codedRowsOf(ctx context.Context, v *state.View, cv *state.CollectionView, expr string,
	args []any) (*codedRows, error) {
	set, err := cv.CodesFor("")
	if err != nil {
		return nil, err
	}
	rows, err := Matching(ctx, cv, v.Snap, expr, args)
	if err != nil {
		return nil, err
	}
	c := &codedRows{codes: codec.NewCodes(set.Bits, set.Table.Distinct()), starts: []uint32{0}}
	for n, code := range set.Table.All() {
		before := len(c.rows)
		if c.rows = set.Table.Rows(n).AppendTo(c.rows, rows); len(c.rows) > before {
			c.codes.Append(code)
			c.starts = append(c.starts, uint32(len(c.rows)))
		}
		if n%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return c, nil
}

// A pairPlace is the place of a pair in the order of answers: by Row, then by Other.
type pairPlace uint64

func placeOf(row, other uint32) pairPlace { return pairPlace(row)<<32 | pairPlace(other) }

func (p pairPlace) row() uint32   { return uint32(p >> 32) }
func (p pairPlace) other() uint32 { return uint32(p) }

// EachPair calls f with the pairs of items that are alike and their cursors, in order of rows, from behind
// the cursor after on, unless it is empty. The other items are those of another collection; nil: the earlier
// items of this one. All codes must be in memory.
func EachPair(ctx context.Context, tools *Tools, v *state.View, cv, another *state.CollectionView,
	a Likeness, after string, f func(p Pair, cursor string) error) error {
	if err := a.check(); err != nil {
		return err
	}
	from, mark := pairPlace(0), a.mark("pairs", cv)
	if another != nil {
		mark = a.mark("pairs", cv, another)
	}
	if after != "" {
		at, err := pairCursorPlace(after, mark)
		if err != nil {
			return err
		}
		from = at + 1
	}
	if a.Modality != "" {
		if another != nil {
			return fault.Invalid("pairs of two collections: by codes only")
		}
		return eachSimilarPair(ctx, tools, v, cv, a, from, func(p Pair) error {
			return f(p, pairCursor(mark, placeOf(p.Row, p.Other)))
		})
	}
	own, err := codedRowsOf(ctx, v, cv, a.Where, a.Args)
	if err != nil {
		return err
	}
	j := &pairJoin{own: own, others: own, radius: a.Radius}
	if another != nil {
		if !cv.CodesOnly() || !another.CodesOnly() || another.Codes.Bits != cv.Codes.Bits {
			return fault.Invalid("collections %q and %q: their codes do not compare: both need codes that you have given, of one length", cv.Name, another.Name)
		}
		if cv.Hash != "" && another.Hash != "" && cv.Hash != another.Hash {
			return fault.Invalid("collections %q and %q: their codes do not compare: they are of %s and of %s",
				cv.Name, another.Name, cv.Hash, another.Hash)
		}
		if j.others, err = codedRowsOf(ctx, v, another, "", nil); err != nil {
			return err
		}
	}
	return j.each(ctx, from, func(p pairPlace, distance int) error {
		return f(Pair{p.row(), p.other(), distance, 0}, pairCursor(mark, p))
	})
}

// mark is a hash of what a cursor goes on with: the likeness, the collections and the space of their codes.
// Where with arguments that it cannot spell is refused later.
func (a *Likeness) mark(what string, all ...*state.CollectionView) uint64 {
	args, _ := where.Spell(a.Args)
	b := []byte(what)
	for _, part := range [...]string{a.Modality, a.Where, args} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(a.Radius))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a.MinSimilarity))
	for _, cv := range all {
		b = binary.LittleEndian.AppendUint32(b, cv.ID)
		if cv.Space != nil && a.Modality == "" {
			b = binary.LittleEndian.AppendUint32(b, cv.Space.ID)
		}
	}
	return crc64.Checksum(b, fingerprints)
}

// pairCursor returns the cursor of a place: the mark, the place and a CRC-32C of both, 20 bytes in base64.
func pairCursor(mark uint64, at pairPlace) string {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 20), mark)
	b = binary.LittleEndian.AppendUint64(b, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, cursorSums))
	return base64.RawURLEncoding.EncodeToString(b)
}

// pairCursorPlace reads a cursor, which may come from anybody.
func pairCursorPlace(cursor string, mark uint64) (pairPlace, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 20 ||
		crc32.Checksum(b[:16], cursorSums) != binary.LittleEndian.Uint32(b[16:]) {
		return 0, fault.Invalid("cursor %.80q: it is not one of pairs or groups", cursor)
	}
	if binary.LittleEndian.Uint64(b) != mark {
		return 0, fault.Invalid("the cursor is of other pairs or groups: go on with the query that you began with")
	}
	return pairPlace(binary.LittleEndian.Uint64(b[8:])), nil
}

// A pairJoin finds pairs of rows by their codes.
type pairJoin struct {
	own, others *codedRows // the same ones for pairs within a collection
	radius      int
}

// PairsTogether is the number of pairs in memory; only tests change it. A join that finds more keeps the
// first ones, and another join finds the rest.
var PairsTogether = 1 << 22

// each calls f with the pairs from a place on, in order. After a join that has found too many pairs, the next
// one is only for twice as many rows as that had room for.
func (j *pairJoin) each(ctx context.Context, from pairPlace, f func(p pairPlace, distance int) error) error {
	for until := uint64(1) << 32; ; {
		first := uint64(from.row())
		found := &firstPairs{from: from, last: placeOf(uint32(until-1), math.MaxUint32)}
		if err := j.find(ctx, found); err != nil {
			return err
		}
		found.sort()
		for i, p := range found.pairs {
			if i%1024 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := f(p.place, p.distance); err != nil {
				return err
			}
		}
		switch {
		case found.full:
			from = found.last + 1
		case until == 1<<32:
			return nil
		default:
			from = placeOf(uint32(until), 0)
		}
		until = min(uint64(from.row())+2*(uint64(found.last.row())-first+1), 1<<32)
	}
}

// find adds the pairs from found.from to found.last. Codes without a row between these are joined with the
// others only.
func (j *pairJoin) find(ctx context.Context, found *firstPairs) error {
	within := j.own == j.others
	first, last := found.from.row(), found.last.row()
	var later, numbers []uint32 // numbers in own of later codes; in own or others of all joined codes
	codes := codec.NewCodes(j.own.codes.Bits(), 0)
	if !within {
		codes.Grow(j.others.codes.Len())
		for i := range j.others.codes.Len() {
			codes.Append(j.others.codes.At(i))
			numbers = append(numbers, uint32(i))
		}
	}
	for i := range j.own.codes.Len() {
		rows := j.own.of(uint32(i))
		switch at, _ := slices.BinarySearch(rows, first); {
		case at < len(rows) && rows[at] <= last:
			later = append(later, uint32(i))
		case within && rows[0] <= last:
			codes.Append(j.own.codes.At(i))
			numbers = append(numbers, uint32(i))
		}
	}
	join := mih.Join{Radius: j.radius, From: len(numbers), Across: !within}
	if within && len(later) == j.own.codes.Len() {
		codes = j.own.codes
	} else {
		for _, i := range later {
			codes.Append(j.own.codes.At(int(i)))
		}
	}
	if within {
		for _, i := range later {
			rows := j.own.of(i)
			found.cross(ctx, rows, rows, 0, true)
		}
	}
	join.Codes, numbers = codes, append(numbers, later...)
	return join.Run(ctx, func(pairs []mih.Pair) error {
		for _, p := range pairs {
			a, b := j.own.of(numbers[p.Later]), j.others.of(numbers[p.Earlier])
			found.cross(ctx, a, b, int(p.Distance), within)
			if within {
				found.cross(ctx, b, a, int(p.Distance), true)
			}
		}
		return nil
	})
}

// A firstPairs keeps the first pairs from a place on.
type firstPairs struct {
	from, last pairPlace // last: no later pair is kept
	full       bool      // there were too many, so last has come nearer
	pairs      []placedPair
}

type placedPair struct {
	place    pairPlace
	distance int
}

// cross adds the pairs of rows with others, with the earlier ones only if earlier is set. Both ascend.
func (f *firstPairs) cross(ctx context.Context, rows, others []uint32, distance int, earlier bool) {
	at, _ := slices.BinarySearch(rows, f.from.row())
	for _, row := range rows[at:] {
		if row > f.last.row() || ctx.Err() != nil {
			return
		}
		for _, other := range others {
			if earlier && other >= row || !f.add(placedPair{placeOf(row, other), distance}) {
				break
			}
		}
	}
}

// add adds a pair unless it is too early. It reports false if it is too late, and so are those behind it.
func (f *firstPairs) add(p placedPair) bool {
	if p.place > f.last {
		return false
	}
	if p.place >= f.from {
		if f.pairs = append(f.pairs, p); len(f.pairs) >= PairsTogether {
			f.sort()
			f.pairs = f.pairs[:len(f.pairs)/2]
			f.last, f.full = f.pairs[len(f.pairs)-1].place, true
		}
	}
	return true
}

func (f *firstPairs) sort() {
	slices.SortFunc(f.pairs, func(a, b placedPair) int { return cmp.Compare(a.place, b.place) })
}

// similarAtOnce is the number of items whose similar ones a search asks for at once.
const similarAtOnce = 256

// eachSimilarPair is EachPair by vectors: a search for each item, in the order of the answer.
func eachSimilarPair(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView, a Likeness,
	from pairPlace, f func(Pair) error) error {
	s, rows, err := newSimilarSearch(ctx, tools, v, cv, a)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearch(rows, from.row())
	for part := range slices.Chunk(rows[at:], similarAtOnce) {
		found, err := s.find(ctx, part)
		if err != nil {
			return err
		}
		for i, row := range part {
			slices.SortFunc(found[i], func(a, b Near) int { return cmp.Compare(a.Row, b.Row) })
			for _, x := range found[i] {
				if x.Row >= row || placeOf(row, x.Row) < from {
					continue
				}
				if err := f(Pair{row, x.Row, x.Distance, x.Similarity}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// A Near is an item that is like another one.
type Near struct {
	Row        uint32
	Distance   int     // -1 by vectors
	Similarity float32 // 0 by codes
}

// A similarSearch finds the items whose vectors are like the one of an item.
type similarSearch struct {
	tools *Tools
	v     *state.View
	cv    *state.CollectionView
	q     Query
}

// newSimilarSearch returns a search, and the rows that match and have a vector of the modality, ascending.
func newSimilarSearch(ctx context.Context, tools *Tools, v *state.View, cv *state.CollectionView,
	a Likeness) (*similarSearch, []uint32, error) {
	t, err := cv.ModalityOf(a.Modality)
	if err != nil {
		return nil, nil, err
	}
	s := &similarSearch{tools, v, cv, Query{From: a.Modality, To: a.Modality, ExcludeSelf: true,
		Where: a.Where, Args: a.Args, MinSimilarity: a.MinSimilarity, Recall: a.Recall, K: similarAtOnce}}
	if s.q.Recall == 0 && cv.Space != nil { // a search without a recall would be by codes
		s.q.Recall = 1
		for _, x := range cv.Indexes {
			if x.Modality == t {
				s.q.Recall = x.Recall
			}
		}
	}
	rows, err := filterOf(ctx, cv, v.Snap, a.Modality, a.Where, a.Args)
	if err != nil {
		return nil, nil, err
	}
	if rows == nil {
		rows = cv.Live
	}
	return s, rows.ToArray(), nil
}

// find returns the items that are like each of some items.
func (s *similarSearch) find(ctx context.Context, rows []uint32) ([][]Near, error) {
	found := make([][]Near, len(rows))
	return found, work.ParallelBy(ctx, work.All(), 1, len(rows), func(i int) error {
		key, err := s.tools.Keys.Get(s.v.Snap, s.cv.ID, rows[i])
		if err != nil {
			return err
		}
		q := s.q
		for q.Key = key; ; {
			one, err := New(ctx, s.tools, s.v, s.cv, q)
			if err == errNoDirection {
				return nil // it is like nothing
			}
			if err != nil {
				return err
			}
			err = one.Nearest(ctx, one.ToFind(q.K))
			var a Answer
			if err == nil {
				_, a, err = First(ctx, one, q.K, func(h *Hit) (struct{}, error) {
					found[i] = append(found[i], Near{h.Row, h.Distance, h.Similarity})
					return struct{}{}, nil
				})
			}
			one.Close()
			if err != nil || a.Next == "" {
				return err
			}
			q.After = a.Next
		}
	})
}
