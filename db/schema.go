package db

import (
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A Schema says what the items of a collection may hold. With modalities the
// collection is learned: items bring features and training makes the codes.
// With Bits instead, items bring their codes.
type Schema struct {
	Modalities []Modality `json:"modalities,omitempty"`
	Bits       int        `json:"bits,omitempty"` // codes-only: a multiple of 8 from 8 to 4096; else 0
	Fields     []Field    `json:"fields,omitempty"`

	// IndexOnly says, in schemas that the database returns, that the collection is a copy
	// without the vectors of its items, see CheckpointOptions.IndexOnly. To create one so
	// is an ErrInvalid.
	IndexOnly bool `json:"index_only,omitempty"`
}

// A Modality is one kind of features: float32 vectors of Dim dimensions. Those of a
// Sparse one, such as bags of words, are stored and computed with as the numbers that
// are not 0; the codes are those of a dense one.
//
// Metric and SpaceOf say how vectors are compared where nothing is trained, see Query. Codes do
// not depend on them. Several modalities share a space if their vectors can be compared with each
// other, as those that one encoder makes of pictures and of texts. They have the same Dim, the
// same Sparse and one metric.
type Modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"`

	// Metric may be left out where another modality of the space has it; else it is Cosine then.
	// Schemas that the database returns have "" for Cosine.
	Metric Metric `json:"metric,omitempty"`

	// SpaceOf names another modality of the collection that shares the space. Modalities that share
	// a space with the same one share it with each other. In schemas that the database returns it
	// names the first modality of the space, which has none.
	SpaceOf string `json:"space_of,omitempty"`
}

// A Metric is a way to compare vectors. The greater the Similarity, the nearer they are.
type Metric string

// Metrics. The sums are of float64, by ascending dimension, and the results are rounded to float32.
const (
	// Cosine is the cosine of the angle between two vectors, from -1 to 1. That of a stored vector
	// of zeros is 0, and a query by a vector of zeros is an ErrInvalid.
	Cosine Metric = "cosine"
	// Dot is the inner product. One beyond the range of float32 is the greatest or the least number
	// of it.
	Dot Metric = "dot"
	// L2 is the Euclidean distance. Items come by its square d, the least first, and the Similarity
	// is 1 / (1 + d), from 0 to 1. Distances that are too great or too small
	// for it to tell them apart still decide on the order.
	L2 Metric = "l2"
)

// A Field is a typed attribute of items. Filters find the values of indexed fields without
// reading items, see Query.Where; of others they read those of all items.
type Field struct {
	Name    string    `json:"name"`
	Type    FieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"`
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
//
// A Time is stored in UTC and in microseconds; what is finer is cut off. Its year is 0 to 9999, as RFC
// 3339 has four digits for it. Text is possible in place of a time.Time: 2024-05-01T12:30:00.25+02:00, or the
// beginning of that, 2024-05-01 12:30 or 2024-05-01 or 2024-05 or 2024, which is the first moment that it
// names. Without an offset the text is in UTC.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
	Time   FieldType = "time"   // time.Time, or its text on the way in
)

// schemaOf returns what a descriptor says, in memory of the caller's own.
func schemaOf(d *record.Descriptor) Schema {
	return Schema{Bits: d.Bits, Modalities: modalitiesOf(d.Modalities), Fields: fieldsOf(d.Fields), IndexOnly: d.IndexOnly}
}

// checkMade refuses the schema of a collection that nobody but Checkpoint makes.
func (s *Schema) checkMade() error {
	if s.IndexOnly {
		return fault.Invalid("an index-only collection is made by Checkpoint, from one with vectors")
	}
	return nil
}

// descriptor returns the descriptor of a collection that is to be made, as it was given.
func (s *Schema) descriptor(name string) *record.Descriptor {
	return &record.Descriptor{Name: name, Bits: s.Bits, Modalities: storedModalities(s.Modalities), Fields: storedFields(s.Fields)}
}

func modalitiesOf(stored []record.Modality) (all []Modality) {
	for _, m := range stored {
		all = append(all, modalityOf(m))
	}
	return all
}

func modalityOf(m record.Modality) Modality {
	return Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse, Metric: Metric(m.Metric), SpaceOf: m.SpaceOf}
}

func storedModalities(given []Modality) (all []record.Modality) {
	for _, m := range given {
		all = append(all, record.Modality{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse, Metric: record.Metric(m.Metric), SpaceOf: m.SpaceOf})
	}
	return all
}

func fieldsOf(stored []record.Field) (all []Field) {
	for _, f := range stored {
		all = append(all, Field{f.Name, FieldType(f.Type), f.Indexed})
	}
	return all
}

func storedFields(given []Field) (all []record.Field) {
	for _, f := range given {
		all = append(all, record.Field{Name: f.Name, Type: record.FieldType(f.Type), Indexed: f.Indexed})
	}
	return all
}
