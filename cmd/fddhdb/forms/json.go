package forms

import (
	"context"
	"errors"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/report"
)

// A Search is the answer to one query: the JSON of a db.Result, with the query and how it was answered.
type Search struct {
	Query any      `json:"query"` // row number in a file, a key or a code
	Hits  []db.Hit `json:"hits"`
	Next  *string  `json:"next"` // cursor; null at the end
	Total *int     `json:"total,omitempty"`

	Space    db.Space `json:"space"`
	Revision uint32   `json:"revision"`
	Rerank   string   `json:"rerank,omitempty"` // auto if it is not there

	Facets []db.Facets `json:"facets,omitempty"`

	// Approximate says that items may be missing, by the recall that an index of vectors has.
	Approximate bool `json:"approximate,omitempty"`

	Explain *report.Explain `json:"explain,omitempty"`
}

// NewSearch returns the form of an answer, which it aliases. radius says that the
// search was within a radius and so has a total.
func NewSearch(query any, r *db.Result, radius bool) Search {
	out := Search{Query: query, Hits: append([]db.Hit{}, r.Hits...), Space: r.Space, Revision: r.Revision,
		Facets: r.Facets, Approximate: r.Approximate, Explain: r.Explain}
	if r.Rerank != db.RerankAuto {
		out.Rerank = r.Rerank.String()
	}
	if r.Next != "" {
		out.Next = &r.Next
	}
	if radius {
		out.Total = &r.Total
	}
	return out
}

// Schema is a collection as init and alter print it.
type Schema struct {
	Collection string        `json:"collection"`
	Modalities []db.Modality `json:"modalities"`         // never null
	Bits       *int          `json:"bits"`               // null: training decides
	Hash       string        `json:"hash,omitempty"`     // that makes the codes, if it is known
	Fields     []db.Field    `json:"fields"`             // never null
	Encoders   []db.Encoder  `json:"encoders,omitempty"` // of .schema alone
}

// NewSchema returns the form of a schema. It aliases s.
func NewSchema(collection string, s db.Schema) Schema {
	out := Schema{Collection: collection, Modalities: s.Modalities, Hash: s.Hash, Fields: s.Fields}
	if s.Bits > 0 {
		out.Bits = &s.Bits
	}
	// Never null, so that scripts can iterate without a check.
	if out.Modalities == nil {
		out.Modalities = []db.Modality{}
	}
	if out.Fields == nil {
		out.Fields = []db.Field{}
	}
	return out
}

// Measure adds to the figures of a database how many bytes each collection has on disk, where that is known.
func Measure(ctx context.Context, d api.Database, s *db.Stats) error {
	for i := range s.Collections {
		c, err := d.Collection(ctx, s.Collections[i].Name)
		if err != nil {
			return err
		}
		of, err := c.Stats(ctx, db.DiskSize)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		s.Collections[i].DiskBytes = of.DiskBytes
	}
	return nil
}
