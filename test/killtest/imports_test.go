package killtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
)

// Imports bring items without keys, so that an item that is stored twice shows. They
// skip so many rows that some chunks of skipped rows are staged. The source of an
// import is its number. A process continues the import that the last process was killed
// in, or begins it anew.
const (
	imports     = "imports" // name of the collection
	importItems = 150
	importSkips = 40 // skipped rows after each item, a KiB each
	importRows  = importItems * (1 + importSkips)
)

var skipped = strings.Repeat("-", 1<<10)

func sourceOf(number int) string { return fmt.Sprint("import ", number) }

func importItem(number, i int) *db.Item {
	return &db.Item{Code: []byte{byte(i % 7), byte(number)}, CodeFrom: "given", Payload: fmt.Append(nil, i), Fields: map[string]any{"import": int64(number)}}
}

// imported returns the imports that the database holds. Each must be whole.
func imported(ctx context.Context, d *db.DB) (map[int]bool, error) {
	c, err := d.Collection(imports)
	if err != nil {
		return nil, err
	}
	counts := map[int]int{}
	for it, err := range c.Items(ctx) {
		if err != nil {
			return nil, err
		}
		number, _ := it.Fields["import"].(int64)
		want := importItem(int(number), counts[int(number)])
		want.Key = it.Key
		if diff := differs(want, it); diff != "" {
			return nil, fmt.Errorf("item %d of import %d: %s", counts[int(number)], number, diff)
		}
		counts[int(number)]++
	}
	whole := map[int]bool{}
	for number, n := range counts {
		if n != importItems {
			return nil, fmt.Errorf("%d items of %d of import %d", n, importItems, number)
		}
		whole[number] = true
	}
	return whole, nil
}

// makeImports stages, commits and removes imports.
func (w *worker) makeImports(ctx context.Context) error {
	r := rand.New(rand.NewPCG(w.Seed, 1<<34))
	c, number, staged := w.c[imports], w.Import, w.Staged
	whole, err := imported(ctx, w.d)
	if err != nil {
		return err
	}
	committed := 0 // an import that is committed and still staged: its process was killed in between
	if whole[number] {
		committed = number
		delete(whole, number)
	}
	for n := 1; ; n++ {
		op := &operation{N: n, Load: number}
		switch k := r.IntN(10); {
		case len(whole) > 2:
			op.Kind, op.Load = "unimport", slices.Min(slices.Collect(maps.Keys(whole)))
		case k < 3:
			op.Kind = "stage"
		case k < 4 && number != committed: // a committed one would be stored again
			op.Kind, staged = "stage anew", 0
		default:
			op.Kind = "import"
		}
		err := w.do(importer, op, func() (result, error) {
			if op.Kind == "unimport" {
				_, err := c.DeleteWhere(ctx, "import = ?", op.Load)
				return result{}, err
			}
			im, err := c.NewImport(ctx, db.ImportOptions{Source: sourceOf(number), Restart: op.Kind == "stage anew"})
			if err != nil {
				return result{}, err
			}
			if im.Rows() < staged {
				return result{}, fmt.Errorf("it goes on at row %d, and %d had been staged", im.Rows(), staged)
			}
			to := importRows
			if op.Kind != "import" {
				to = max(im.Rows(), r.IntN(importRows))
			}
			if err := stage(im, number, to); err != nil {
				return result{}, err
			}
			if op.Kind == "import" {
				return result{}, im.Commit(ctx)
			}
			staged = to
			return result{Rows: to}, im.Close()
		})
		if err != nil {
			return err
		}
		switch op.Kind {
		case "unimport":
			delete(whole, op.Load)
		case "import":
			whole[number] = true
			number, staged = number+1, 0
		}
	}
}

// stage puts the rows of an import that are not staged yet, up to row to.
func stage(im *db.Import, number, to int) (err error) {
	for row := im.Rows(); row < to && err == nil; row++ {
		if row%(1+importSkips) == 0 {
			err = im.Put(importItem(number, row/(1+importSkips)))
		} else {
			err = im.Skip(skipped)
		}
	}
	return err
}

// An importHistory is the work of the importer.
type importHistory struct {
	there  map[int]bool
	number int // number of the next or unfinished import
	staged int // acknowledged rows of it
	going  operation
}

func (s *importHistory) clone() importHistory {
	own := *s
	own.there = maps.Clone(s.there)
	return own
}

func (s *importHistory) begin(op *operation) {
	if s.going = *op; op.Kind == "stage anew" {
		s.staged = 0
	}
}

// done notes the effect of an acknowledged operation on the imports.
func (s *importHistory) done(r *result) {
	switch s.going.Kind {
	case "import":
		s.there[s.going.Load] = true
		s.number, s.staged = s.going.Load+1, 0
	case "unimport":
		delete(s.there, s.going.Load)
	default:
		s.staged = r.Rows
	}
	s.going = operation{}
}

// accept compares the imports of a database with what was told. An operation that was
// not acknowledged may have happened. From then on what it has found counts as told.
func (s *importHistory) accept(whole map[int]bool) error {
	for number := range max(s.number, slices.Max(append(slices.Collect(maps.Keys(whole)), 0))) + 1 {
		kind := "import"
		if s.there[number] {
			kind = "unimport"
		}
		if whole[number] != s.there[number] && !(s.going.Kind == kind && s.going.Load == number) {
			return fmt.Errorf("import %d is there: %v, and was: %v; %+v was going on", number, whole[number], s.there[number], s.going)
		}
	}
	s.there = whole
	return nil
}

// look is accept, and compares the staged import, too: the database says whether it has
// been committed.
func (s *importHistory) look(ctx context.Context, d *db.DB) error {
	whole, err := imported(ctx, d)
	if err == nil {
		err = s.accept(whole)
	}
	if err != nil {
		return err
	}
	all, err := d.StagedImports(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(im db.StagedImport) bool { return im.Source == "" }) // killed at its begin, before it had a name
	if len(all) == 0 {
		if s.staged > 0 && !whole[s.number] {
			return fmt.Errorf("%d rows of import %d were staged, and nothing is; %+v was going on", s.staged, s.number, s.going)
		}
		if s.staged = 0; whole[s.number] {
			s.number++
		}
	}
	for _, im := range all {
		if im.Source == sourceOf(s.number) && len(all) == 1 && im.Collection == imports && im.Committed == whole[s.number] {
			continue
		}
		return fmt.Errorf("staged are %+v; import %d is there: %v, and %+v was going on", all, s.number, whole[s.number], s.going)
	}
	s.going = operation{}
	return nil
}

// acceptsOneOf checks that the imports are those of at least one of the times.
func acceptsOneOf(times []importHistory, whole map[int]bool) (err error) {
	for _, at := range times {
		s := at.clone()
		if err = s.accept(whole); err == nil {
			return nil
		}
	}
	return errors.Join(errors.New("at no time were these imports there"), err)
}
