package killtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// Imports bring items without keys, so that an item that is stored twice shows, in parts with a mark
// each. A process goes on with the import that the last process was killed in.
const (
	imports     = "imports" // name of the collection, and of the mark
	importItems = 150
)

func importItem(number, i int) *db.Item {
	return &db.Item{Code: []byte{byte(i % 7), byte(number)}, CodeFrom: "given", Payload: fmt.Append(nil, i),
		Fields: map[string]any{"import": int64(number)}}
}

// An importMark is the value of the mark: so many items of an import are in.
type importMark struct{ Number, Items int }

// imported returns how many items of each import the database holds, and its mark: zero where there is
// none. The items of an import are the first ones; all but those of the mark are whole.
func imported(ctx context.Context, d *db.DB) (counts map[int]int, m importMark, err error) {
	s, err := d.Snapshot()
	if err != nil {
		return nil, m, err
	}
	defer s.Close()
	c, err := s.Collection(imports)
	if err != nil {
		return nil, m, err
	}
	counts = map[int]int{}
	for it, err := range c.Items(ctx, "") {
		if err != nil {
			return nil, m, err
		}
		number, _ := it.Fields["import"].(int64)
		want := importItem(int(number), counts[int(number)])
		want.Key = it.Key
		if diff := differs(want, it); diff != "" {
			return nil, m, fmt.Errorf("item %d of import %d: %s", counts[int(number)], number, diff)
		}
		counts[int(number)]++
	}
	b, err := s.Mark(imports)
	if err == nil {
		err = json.Unmarshal(b, &m)
	} else if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	for number, n := range counts {
		if err == nil && n != importItems && number != m.Number || number == m.Number && n != m.Items {
			err = fmt.Errorf("%d items of %d of import %d, and the mark is %+v", n, importItems, number, m)
		}
	}
	return counts, m, err
}

// makeImports imports in parts, and removes imports.
func (w *worker) makeImports(ctx context.Context) error {
	r := rand.New(rand.NewPCG(w.Seed, 1<<34))
	c := w.c[imports]
	counts, m, err := imported(ctx, w.d)
	if err != nil {
		return err
	}
	if m.Number == 0 {
		m.Number = w.Import
		for counts[m.Number] > 0 {
			m.Number++
		}
	}
	delete(counts, m.Number)
	for n := 1; ; n++ {
		op := &operation{N: n, Kind: "part", Load: m.Number}
		switch {
		case len(counts) > 2:
			op.Kind, op.Load = "unimport", slices.Min(slices.Collect(maps.Keys(counts)))
		case m.Items == importItems:
			op.Kind = "imported"
		}
		err := w.do(importer, op, func() (result, error) {
			if op.Kind == "unimport" {
				_, err := c.DeleteWhere(ctx, "import = ?", op.Load)
				return result{}, err
			}
			b := w.d.NewBatch()
			var value []byte
			if op.Kind == "part" {
				for to := min(m.Items+1+r.IntN(60), importItems); m.Items < to; m.Items++ {
					if err := b.Put(c, importItem(m.Number, m.Items)); err != nil {
						return result{}, err
					}
				}
				if value, err = json.Marshal(m); err != nil {
					return result{}, err
				}
			}
			if err := b.Mark(imports, value); err != nil {
				return result{}, err
			}
			return result{Items: m.Items}, b.Commit(ctx)
		})
		if err != nil {
			return err
		}
		switch op.Kind {
		case "unimport":
			delete(counts, op.Load)
		case "imported":
			counts[m.Number] = importItems
			m = importMark{Number: m.Number + 1}
		}
	}
}

// An importHistory is the work of the importer.
type importHistory struct {
	there  map[int]int // acknowledged items of each import
	number int         // of the next or unfinished import
	going  operation
	noSync bool // parts that were acknowledged may be lost
}

func (s *importHistory) clone() importHistory {
	own := *s
	own.there = maps.Clone(s.there)
	return own
}

func (s *importHistory) begin(op *operation) { s.going = *op }

// done notes the effect of an acknowledged operation on the imports.
func (s *importHistory) done(r *result) {
	switch s.going.Kind {
	case "part":
		s.there[s.going.Load] = r.Items
	case "imported":
		s.number = s.going.Load + 1
	case "unimport":
		delete(s.there, s.going.Load)
	}
	s.going = operation{}
}

// accept compares the imports of a database with what was told. An operation that was
// not acknowledged may have happened. From then on what it has found counts as told.
func (s *importHistory) accept(counts map[int]int) error {
	for number := range max(s.number, slices.Max(append(slices.Collect(maps.Keys(counts)), 0))) + 1 {
		n, told, going := counts[number], s.there[number], s.going.Load == number
		switch {
		case n == told:
		case going && s.going.Kind == "part" && n > told:
		case going && s.going.Kind == "unimport" && n == 0:
		case s.noSync && n < told:
		default:
			return fmt.Errorf("%d items of import %d, and there were %d; %+v was going on", n, number, told,
				s.going)
		}
	}
	s.there = counts
	return nil
}

// look is accept, after which an import goes on where its mark says.
func (s *importHistory) look(ctx context.Context, d *db.DB) error {
	counts, m, err := imported(ctx, d)
	if err == nil {
		err = s.accept(counts)
	}
	if m.Number > 0 {
		s.number = m.Number
	} else if counts[s.number] > 0 {
		s.number++
	}
	s.going = operation{}
	return err
}

// acceptsOneOf checks that the imports are those of at least one of the times.
func acceptsOneOf(times []importHistory, counts map[int]int) (err error) {
	for _, at := range times {
		s := at.clone()
		if err = s.accept(counts); err == nil {
			return nil
		}
	}
	return errors.Join(errors.New("at no time were these imports there"), err)
}
