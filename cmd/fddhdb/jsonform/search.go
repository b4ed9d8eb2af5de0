package jsonform

import (
	"math"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Search is the answer to one query.
type Search struct {
	Query any     `json:"query"` // row number in a file, a key or a code
	Hits  []Hit   `json:"hits"`
	Next  *string `json:"next"` // cursor; null at the end
	Total *int    `json:"total,omitempty"`

	Facets []db.Facets `json:"facets,omitempty"`

	// Approximate says that items may be missing, by the recall that an index of vectors has.
	Approximate bool `json:"approximate,omitempty"`

	Explain *report.Explain `json:"explain,omitempty"`
}

// A Hit is one item of an answer.
type Hit struct {
	Key      string   `json:"key"`      // of the item
	Distance *int     `json:"distance"` // null where no codes were compared
	Score    *float64 `json:"score"`    // null for queries by code

	Similarity *float32 `json:"similarity"`     // null where nothing was compared
	Item       *db.Item `json:"item,omitempty"` // what the search includes of it
}

// NewSearch returns the form of an answer, which it aliases. radius says that the
// search was within a radius and so has a total. explain may be nil.
func NewSearch(query any, r *db.Result, radius bool, explain *report.Explain) Search {
	out := Search{Query: query, Hits: []Hit{}, Facets: r.Facets, Approximate: r.Approximate, Explain: explain}
	if r.Next != "" {
		out.Next = &r.Next
	}
	for _, h := range r.Hits {
		hit := Hit{Key: h.Key, Item: h.Item}
		if h.Distance >= 0 {
			hit.Distance = &h.Distance
		}
		if !math.IsNaN(h.Score) {
			hit.Score = &h.Score
		}
		if !math.IsNaN(float64(h.Similarity)) {
			hit.Similarity = &h.Similarity
		}
		out.Hits = append(out.Hits, hit)
	}
	if radius {
		out.Total = &r.Total
	}
	return out
}
