package db

import (
	"context"
	"iter"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// A Likeness says which items are alike: by codes within Radius bits, or, with a Modality, by vectors with at
// least MinSimilarity.
type Likeness struct {
	// Radius is the greatest distance between codes in bits; 0 finds equal codes.
	Radius int `json:"radius,omitempty"`

	// Modality, if not empty, compares its vectors, by its Metric, and not codes.
	Modality      string  `json:"modality,omitempty"`
	MinSimilarity float32 `json:"min_similarity,omitempty"` // by vectors; not 0

	// Recall is the share of the similar items of an item that are found, as in Query. Pairs by codes are
	// always exact.
	Recall float64 `json:"recall,omitempty"`

	// Where, if not empty, leaves out the items that do not match, see Query.Where; Args are the values of
	// its placeholders.
	Where string `json:"where,omitempty"`
	Args  []any  `json:"args,omitempty"`
}

// A PairQuery asks for pairs of items that are alike.
type PairQuery struct {
	Likeness

	// Against names another collection of the database: each pair then has an item of this collection and
	// one of that. Both hold codes that you have given, of the same length. Where is of this collection.
	Against string `json:"against,omitempty"`

	// After, if not empty, is the Pair.Cursor of the same query: the pairs go on behind it.
	After string `json:"after,omitempty"`
}

// A Pair is two items that are alike: an item, and an earlier item, or one of PairQuery.Against.
type Pair struct {
	Key        string  `json:"key"`
	Other      string  `json:"other"`
	Distance   int     `json:"distance"`             // in bits; -1 by vectors
	Similarity float32 `json:"similarity,omitempty"` // by vectors
	Cursor     string  `json:"cursor,omitempty"`     // for PairQuery.After
}

// A GroupQuery asks for groups of items that are alike.
type GroupQuery struct {
	Likeness

	// Keep says which item of a group is preferred. "oldest", or nothing, is the item that was put first,
	// "newest" the one that was put last. "max FIELD" and "min FIELD" compare numbers, times or bools.
	// Anything else is an expression, see Query.Where, and items that match are preferred. Of items that are
	// equal in that the oldest is preferred.
	Keep string `json:"keep,omitempty"`

	// Connected joins groups that have an item in common. An item is then like some item of its group.
	// Otherwise it is like the first item, which is the one to keep where others are deleted.
	Connected bool `json:"connected,omitempty"`

	// After, if not empty, is the Group.Cursor of the same query: the groups go on behind it.
	After string `json:"after,omitempty"`
}

// A Group is two or more items that are alike. The first one is preferred, see GroupQuery.Keep. The others
// come by their distance from it.
type Group struct {
	Items  []GroupItem `json:"items"`
	Cursor string      `json:"cursor,omitempty"` // for GroupQuery.After
}

// A GroupItem is an item of a group.
type GroupItem struct {
	Key        string  `json:"key"`
	Distance   int     `json:"distance"`             // in bits from the first item; -1 by vectors
	Similarity float32 `json:"similarity,omitempty"` // to the first item, by vectors
}

// inside returns the likeness in the terms of the package that searches.
func (l *Likeness) inside() search.Likeness {
	return search.Likeness{Radius: l.Radius, Modality: l.Modality, MinSimilarity: l.MinSimilarity,
		Recall: l.Recall, Where: l.Where, Args: l.Args}
}

// Pairs yields all pairs of items that are alike, each once, by the row of the item, then by that of the
// other one. So a cursor goes on with items that have come since. Pairs shows the state at the start of the
// iteration. An error ends it.
//
// By codes the pairs are exact. Pairs does not search for each item: it sorts the codes by some of their bits
// and compares those that are equal in these, on all cores. Ten million codes of 64 bits take seconds for a
// radius of 3; see docs/HASHES.md. It waits until the codes are in memory, and takes the memory of the codes
// three times, 24 bytes a code and 4 bytes an item; with millions of pairs 64 MiB more.
//
// By vectors it is a search for each item, by the index of vectors if there is one: of the pairs it then
// finds the share that the recall says.
func (c *Collection) Pairs(ctx context.Context, q PairQuery) iter.Seq2[Pair, error] {
	return yielding(func(yield func(Pair) error) error {
		other := c
		if q.Against != "" {
			var err error
			if other, err = c.beside(q.Against); err != nil {
				return err
			}
			if other.id == c.id {
				return fault.Invalid("against %q: it is the collection itself, whose pairs need no against",
					record.Shortened(q.Against))
			}
			if err := other.loaded(ctx); err != nil {
				return err
			}
		}
		if err := c.comparable(ctx, q.Modality); err != nil {
			return err
		}
		return c.read(func(v *state.View, cv *state.CollectionView) error {
			var another *state.CollectionView
			if other != c {
				var err error
				if another, err = v.Collection(other.id, other.name); err != nil {
					return err
				}
			}
			keys := c.db.search.Keys
			return search.EachPair(ctx, c.db.search, v, cv, another, q.inside(), q.After,
				func(p search.Pair, cursor string) error {
					key, err := keys.Get(v.Snap, cv.ID, p.Row)
					if err != nil {
						return err
					}
					out := Pair{Key: key, Distance: p.Distance, Similarity: p.Similarity, Cursor: cursor}
					if out.Other, err = keys.Get(v.Snap, other.id, p.Other); err != nil {
						return err
					}
					return yield(out)
				})
		})
	})
}

// comparable waits until the codes, or the vectors of a modality, are in memory, as far as there is room. A
// search for each item would otherwise read all vectors from the store each time.
func (c *Collection) comparable(ctx context.Context, modality string) error {
	if modality == "" {
		return c.loaded(ctx)
	}
	err := c.read(func(_ *state.View, cv *state.CollectionView) error {
		t, err := cv.ModalityOf(modality)
		if err == nil && cv.WantVectors(t) {
			c.db.search.Wanted()
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.db.WaitForIndex(ctx)
}

// beside returns the collection of another name, in the state that the handle shows.
func (c *Collection) beside(name string) (*Collection, error) {
	of := *c
	of.space, of.revision, of.name = 0, 0, name
	find := func(v *state.View) error {
		id, ok := v.IDs.Get(name)
		if !ok {
			return fault.NotFound("collection %q", record.Shortened(name))
		}
		of.id = id
		return nil
	}
	if c.pin != nil {
		return &of, c.pin.Read(find)
	}
	return &of, c.db.state.Read(find)
}

// Groups yields the groups of items that are alike. An item is in one group at most. The groups come by the
// row of their first item. Groups shows the state at the start of the iteration. An error ends it.
//
// It costs what Pairs costs. All groups are in memory before the first one is yielded: 16 bytes an item of a
// group. For "max FIELD" and "min FIELD" it reads all items. By vectors, and unless groups are connected, it
// searches only for the first item of each group, and for the items in none.
func (c *Collection) Groups(ctx context.Context, q GroupQuery) iter.Seq2[Group, error] {
	return yielding(func(yield func(Group) error) error {
		if err := c.comparable(ctx, q.Modality); err != nil {
			return err
		}
		return c.read(func(v *state.View, cv *state.CollectionView) error {
			g := search.Grouping{Likeness: q.inside(), Connected: q.Connected, Keep: q.Keep}
			return search.EachGroup(ctx, c.db.search, v, cv, g, q.After,
				func(group []search.Near, cursor string) error {
					out := Group{Items: make([]GroupItem, len(group)), Cursor: cursor}
					for i, x := range group {
						key, err := c.db.search.Keys.Get(v.Snap, cv.ID, x.Row)
						if err != nil {
							return err
						}
						out.Items[i] = GroupItem{key, x.Distance, x.Similarity}
					}
					return yield(out)
				})
		})
	})
}
