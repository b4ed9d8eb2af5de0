package search

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/words"
)

// mostWords is how many different words a query may have.
const mostWords = 16

// A Ranked is a row in a list, with what the list is ordered by, the greatest first, then by row.
type Ranked struct {
	Row   uint32
	Score float64
}

func (a Ranked) compare(b Ranked) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Row, b.Row))
}

// NewWords returns a searcher for ByWords alone: the query starts from no item, vector or code.
func NewWords(tools *Tools, v *state.View, cv *state.CollectionView,
	q Query) (*Searcher, error) {
	if q.ExcludeSelf {
		return nil, fault.Invalid("exclude self: the query starts from no item, as Key is empty")
	}
	return &Searcher{tools: tools, V: v, Cv: cv, q: q, self: noRow, radius: -1}, nil
}

// ByWords returns the first n rows whose texts have words of a text, in the fields with an index of words. It
// finds items without a vector or a code, too. A row counts the sum of log(N/df) for the words that it has:
// of the N items of the collection df have the word. It reads the set of each word, and holds these sets in
// memory.
func (s *Searcher) ByWords(ctx context.Context, text string, n int) ([]Ranked, error) {
	list := words.Of(text)
	var fields []uint16
	for i, f := range s.Cv.Fields {
		if f.Words {
			fields = append(fields, uint16(i))
		}
	}
	switch {
	case len(list) == 0:
		return nil, fault.Invalid("words %q: there is no word, of letters or digits", record.Shortened(text))
	case len(list) > mostWords:
		return nil, fault.Invalid("words: %d different words are too many, at most %d are possible", len(list),
			mostWords)
	case len(fields) == 0:
		return nil, fault.Invalid("words: no field of collection %q has an index of words: Alter makes one",
			s.Cv.Name)
	}
	// The filter of the searcher may have lost items without vectors.
	filter, err := filterOf(ctx, s.Cv, s.V.Snap, s.q.To, s.q.Where, s.q.Args)
	self := uint32(noRow)
	if err == nil && s.q.ExcludeSelf {
		self, err = s.Cv.Row(s.V.Snap, s.q.Key)
	}
	if err != nil {
		return nil, err
	}
	var sets []wordSets
	df := make([]float64, len(list))
	for it := s.Cv.Live.Iterator(); it.HasNext(); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := wordSets{container: uint16(it.PeekNext() >> 16)}
		for i, w := range list {
			rows, err := s.haveWord(fields, c.container, w)
			if err != nil {
				return nil, err
			}
			df[i] += float64(rows.GetCardinality())
			c.rows = append(c.rows, rows)
		}
		sets = append(sets, c)
		if c.container == math.MaxUint16 {
			break
		}
		it.AdvanceIfNeeded((uint32(c.container) + 1) << 16)
	}
	items := float64(s.Cv.Live.GetCardinality())
	var out []Ranked
	scores := make([]float64, 1<<16)
	for _, c := range sets {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found := roaring.FastOr(c.rows...)
		if filter != nil {
			found.And((&whereRows{container: c.container}).part(filter))
		}
		if self>>16 == uint32(c.container) {
			found.Remove(self & (1<<16 - 1))
		}
		c.count(scores, items, df)
		for it := found.Iterator(); it.HasNext(); {
			low := it.Next()
			out = append(out, Ranked{uint32(c.container)<<16 | low, scores[low]})
		}
		if len(out)/4 > n {
			slices.SortFunc(out, Ranked.compare)
			out = out[:n]
		}
	}
	slices.SortFunc(out, Ranked.compare)
	return out[:min(n, len(out))], nil
}

// wordSets are the rows of a container that have each word, by their low 16 bits.
type wordSets struct {
	container uint16
	rows      []*roaring.Bitmap
}

// haveWord returns the rows of a container that have a word in any of the fields.
func (s *Searcher) haveWord(fields []uint16, container uint16, word string) (*roaring.Bitmap, error) {
	out := roaring.New()
	for _, f := range fields {
		rows, err := record.ReadRows(s.V.Snap,
			codec.FieldWordsKey(s.Cv.ID, f, container, string([]byte{words.Word})+word))
		if err != nil {
			return nil, err
		}
		out.Or(rows)
	}
	return out, nil
}

// count sets the scores of the rows of the container.
func (c *wordSets) count(scores []float64, items float64, df []float64) {
	clear(scores)
	for i, rows := range c.rows {
		for it := rows.Iterator(); it.HasNext(); {
			scores[it.Next()] += math.Log(items / df[i])
		}
	}
}

// Fuse merges two lists by reciprocal rank fusion: a row counts 1/(60 + rank) for each list that has it,
// ranks from 1 on (Cormack, Clarke and Buettcher, SIGIR 2009).
func Fuse(nearest []uint32, found []Ranked) []Ranked {
	const k = 60
	scores := map[uint32]float64{}
	for i, row := range nearest {
		scores[row] += 1 / float64(k+1+i)
	}
	for i, x := range found {
		scores[x.Row] += 1 / float64(k+1+i)
	}
	out := make([]Ranked, 0, len(scores))
	for row, score := range scores {
		out = append(out, Ranked{row, score})
	}
	slices.SortFunc(out, Ranked.compare)
	return out
}

// HitOf returns a row as a hit that only words have found: without distance and similarity.
func (s *Searcher) HitOf(x Ranked) (Hit, error) {
	key, err := s.tools.Keys.Get(s.V.Snap, s.Cv.ID, x.Row)
	if err != nil {
		return Hit{}, fmt.Errorf("key of row %d: %w", x.Row, err)
	}
	return Hit{Key: key, Row: x.Row, Distance: -1, Score: x.Score, Similarity: float32(math.NaN())}, nil
}
