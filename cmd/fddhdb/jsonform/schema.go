package jsonform

import "github.com/fddhdb/fddhdb/db"

// Schema is a collection as init and alter print it.
type Schema struct {
	Collection string        `json:"collection"`
	Modalities []db.Modality `json:"modalities"`         // never null
	Bits       *int          `json:"bits"`               // null: training decides
	Fields     []db.Field    `json:"fields"`             // never null
	Encoders   []db.Encoder  `json:"encoders,omitempty"` // of .schema alone
	Items      *int          `json:"items,omitempty"`    // of collections of a cluster alone
}

// NewSchema returns the form of a schema. It aliases s.
func NewSchema(collection string, s db.Schema) Schema {
	out := Schema{Collection: collection, Modalities: s.Modalities, Fields: s.Fields}
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
