package explore

import (
	"fmt"
	"net/url"
	"testing"
)

type countsForm struct {
	Facets []struct {
		By     string
		Counts []struct {
			Value any
			Items int
		}
		Distinct, Missing, Items int
	}
}

// The test counts labels and values itself, in a loop over the items that match the filter, or over the hits
// of the search, and compares.
func TestFacets(t *testing.T) {
	d := sharedDatabase(t)
	s := newServer(t, d)
	c, err := d.Collection("main")
	check(t, err)
	for query, keys := range map[string]func() map[string]bool{
		"where=year+%3C+2003": func() map[string]bool {
			keys := map[string]bool{}
			for it, err := range c.Items(t.Context(), "year < 2003") {
				check(t, err)
				keys[it.Key] = true
			}
			return keys
		},
		"key=item+3&from=image&to=text&k=9": func() map[string]bool {
			return hitKeys(get[hitsForm](t, s, "/api/search?key=item+3&from=image&to=text&k=9"))
		},
		"key=item+3&from=image&to=text&radius=11&k=2": func() map[string]bool {
			return hitKeys(get[hitsForm](t, s, "/api/search?key=item+3&from=image&to=text&radius=11&k=1000"))
		},
	} {
		of := keys()
		labels, years := map[any]int{}, map[any]int{}
		for key := range of {
			it, err := c.Get(t.Context(), key)
			check(t, err)
			for _, l := range it.Labels {
				labels[l]++
			}
			years[float64(it.Fields["year"].(int64))]++ // as JSON has it
		}
		got := get[countsForm](t, s, "/api/facets?by=label,year&limit=1000&"+query)
		if len(got.Facets) != 2 {
			t.Fatalf("%s: %+v", query, got)
		}
		for i, want := range []map[any]int{labels, years} {
			f := got.Facets[i]
			if f.Items != len(of) || f.Distinct != len(want) || len(f.Counts) != len(want) || len(want) == 0 {
				t.Errorf("%s: %+v, want %v of %d", query, f, want, len(of))
			}
			for _, n := range f.Counts {
				if want[n.Value] != n.Items {
					t.Errorf("%s: %v has %d items, want %d", query, n.Value, n.Items, want[n.Value])
				}
			}
		}
	}
	if got := get[countsForm](t, s, "/api/facets?limit=1"); len(got.Facets) != 1 ||
		got.Facets[0].By != "label" || len(got.Facets[0].Counts) != 1 {
		t.Errorf("%+v", got)
	}
	for query, want := range map[string]int{
		"by=nope": 400, "limit=0": 400, "other=1": 400, "where=" + url.QueryEscape("year <"): 400,
		"key=nobody&from=image": 404, "key=item+3&other=1": 400, "collection=none": 404,
	} {
		if w := do(s, request("GET", "/api/facets?"+query, nil)); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", query, w.Code, want, w.Body)
		}
	}
}

func hitKeys(answer hitsForm) map[string]bool {
	keys := map[string]bool{}
	for _, h := range answer.Hits {
		keys[fmt.Sprint(h.Key)] = true
	}
	return keys
}
