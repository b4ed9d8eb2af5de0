package merge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Facets adds up the facets of shards. The sum is exact, because an item is in one shard. Ask the shards
// without a limit: a value that one of them cuts off may be among the first overall. limit bounds the
// returned counts; 0 is all. nil parts are left out. The order is as in package db: the most items first,
// then the least value.
//
// Parts that count by different fields, parts cut off by a limit, and values of different types are a
// db.ErrInvalid. Times come back in UTC. Time and memory are proportional to the number of counts.
func Facets(parts []*db.Facets, limit int) (*db.Facets, error) {
	sum := tally{items: map[any]int{}}
	var out db.Facets
	first := -1
	for i, p := range parts {
		if p == nil {
			continue
		}
		switch {
		case first < 0:
			first, out.By = i, p.By
		case p.By != out.By:
			return nil, fault.Invalid("shard %d has facets by %q, shard %d by %q", i, p.By, first, out.By)
		}
		if p.Distinct != len(p.Counts) {
			return nil, fault.Invalid("shard %d has %d counts of %d values of %q: ask without a limit", i,
				len(p.Counts), p.Distinct, p.By)
		}
		for _, n := range p.Counts {
			if err := sum.add(n.Value, n.Items); err != nil {
				return nil, fault.Invalid("shard %d: facets by %q: %w", i, p.By, err)
			}
		}
		out.Missing += p.Missing
		out.Items += p.Items
	}
	return sum.into(&out, limit)
}

// pageFacets returns the facets of a page if the answers have facets.
func pageFacets(hits []db.Hit, answers []*db.Result, w Want) ([]db.Facets, error) {
	first := slices.IndexFunc(answers, func(a *db.Result) bool { return a != nil })
	if first < 0 {
		return nil, nil
	}
	for i, a := range answers {
		if a != nil && len(a.Facets) != len(answers[first].Facets) {
			return nil, fault.Invalid("shard %d has %d facets, shard %d has %d", i, len(a.Facets), first,
				len(answers[first].Facets))
		}
	}
	if len(answers[first].Facets) == 0 {
		return nil, nil
	}
	out := make([]db.Facets, len(answers[first].Facets))
	parts := make([]*db.Facets, len(answers))
	for f := range out {
		var sum *db.Facets
		var err error
		if w.Within {
			for i, a := range answers {
				if a != nil {
					parts[i] = &a.Facets[f]
				}
			}
			sum, err = Facets(parts, 0)
		} else {
			sum, err = hitFacets(hits, answers[first].Facets[f].By)
		}
		if err != nil {
			return nil, err
		}
		out[f] = *sum
	}
	return out, nil
}

// hitFacets counts hits as db.Query.Facets does: by label, or by the field of that name, in double quotes if
// it is label. The hits must have their items with labels and fields, otherwise that is a db.ErrInvalid. An
// unknown field looks like a field that no item has.
func hitFacets(hits []db.Hit, by string) (*db.Facets, error) {
	sum := tally{items: map[any]int{}}
	out := &db.Facets{By: by, Items: len(hits)}
	byLabel, field := strings.EqualFold(by, "label"), unquoted(by)
	for i := range hits {
		it := hits[i].Item
		if it == nil {
			return nil, fault.Invalid(
				"facets by %q of hits without their items: ask with IncludeLabels and IncludeFields", by)
		}
		has := false
		if byLabel {
			for _, label := range it.Labels {
				has = true
				_ = sum.add(label, 1) // all are strings
			}
		} else if value, is := it.Fields[field]; is {
			has = true
			if err := sum.add(value, 1); err != nil {
				return nil, fault.Invalid("item %q: facets by %q: %w", it.Key, by, err)
			}
		}
		if !has {
			out.Missing++
		}
	}
	return sum.into(out, 0)
}

// unquoted returns a name without the double quotes around it, if it has both.
func unquoted(name string) string {
	if len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"' {
		return name[1 : len(name)-1]
	}
	return name
}

// A tally counts items by values, all of one type.
type tally struct {
	items map[any]int
	kind  kind // of all values; 0: none yet
}

// A kind is the type of a value. The zero kind is none.
type kind string

// add counts items with a value.
func (t *tally) add(value any, items int) error {
	var k kind
	switch v := value.(type) {
	case string:
		k = "string"
	case int64:
		k = "int64"
	case bool:
		k = "bool"
	case float64:
		k, value = "float64", v+0 // 0 and -0 are one value
	case time.Time:
		k, value = "time.Time", v.UTC().Round(0) // a map compares times with their zones and clocks
	default:
		return fmt.Errorf("a value of type %T, which no field has", value)
	}
	switch t.kind {
	case k:
	case "":
		t.kind = k
	default:
		return fmt.Errorf("values of types %s and %s", t.kind, k)
	}
	t.items[value] += items
	return nil
}

// into writes up to limit counts into facets, in order; 0 is all.
func (t *tally) into(out *db.Facets, limit int) (*db.Facets, error) {
	if limit < 0 {
		return nil, fault.Invalid("a limit of %d counts: 1 or more are possible, 0 is all", limit)
	}
	out.Counts = make([]db.FacetCount, 0, len(t.items))
	for value, n := range t.items {
		out.Counts = append(out.Counts, db.FacetCount{Value: value, Items: n})
	}
	slices.SortFunc(out.Counts, func(a, b db.FacetCount) int {
		if c := cmp.Compare(b.Items, a.Items); c != 0 {
			return c
		}
		return compareValues(a.Value, b.Value)
	})
	out.Distinct = len(out.Counts)
	if limit > 0 && limit < len(out.Counts) {
		out.Counts = slices.Clone(out.Counts[:limit]) // the rest may be large
	}
	return out, nil
}

// compareValues orders two values of one type as package db does.
func compareValues(a, b any) int {
	switch a := a.(type) {
	case string:
		return strings.Compare(a, b.(string))
	case int64:
		return cmp.Compare(a, b.(int64))
	case float64:
		return cmp.Compare(a, b.(float64))
	case time.Time:
		return a.Compare(b.(time.Time))
	}
	switch a, b := a.(bool), b.(bool); {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
