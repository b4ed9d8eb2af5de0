package db

import (
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
)

// A Schema declares the modalities and fields of the items of a collection. A collection with
// modalities is learned: items bring vectors, and training makes their codes. A collection with
// Bits is codes-only: items bring their codes.
type Schema struct {
	Modalities []Modality `json:"modalities,omitempty"`
	Bits       int        `json:"bits,omitempty"` // codes-only: a multiple of 8 from 8 to 4096; else 0
	Fields     []Field    `json:"fields,omitempty"`

	// IndexOnly says, in returned schemas, that the collection is a copy without vectors, see
	// CheckpointOptions.IndexOnly. CreateCollection refuses it with ErrInvalid.
	IndexOnly bool `json:"index_only,omitempty"`
}

// A Modality is one kind of vectors: float32 vectors of Dim dimensions. Vectors of a Sparse
// modality, such as bags of words, are stored and computed by their numbers other than 0; their
// codes are those of a dense modality.
//
// Metric and SpaceOf decide how a search compares vectors, see Query. Codes do not depend on them.
// Modalities share a space if their vectors can be compared with each other, as vectors of pictures
// and texts by one encoder. They have the same Dim, the same Sparse and one metric.
type Modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"`

	// Metric may be left out: it is then the metric of the other modalities of the space, or
	// Cosine. Returned schemas have "" for Cosine.
	Metric Metric `json:"metric,omitempty"`

	// SpaceOf names another modality of the collection to share a space with. Modalities that share
	// with the same one share with each other. In returned schemas it names the first modality
	// of the space, whose SpaceOf is empty.
	SpaceOf string `json:"space_of,omitempty"`
}

// A Metric is a way to compare vectors. The greater the Similarity, the nearer they are.
type Metric string

// Metrics. The sums are of float64, by ascending dimension, and the results are rounded to float32.
const (
	// Cosine is the cosine of the angle between two vectors, from -1 to 1. It is 0 for a stored
	// vector of zeros; a query by a vector of zeros is an ErrInvalid.
	Cosine Metric = "cosine"
	// Dot is the inner product. Beyond the range of float32 it is the greatest or least float32.
	Dot Metric = "dot"
	// L2 is the Euclidean distance. Items come by its square d, the least first. Similarity is
	// 1 / (1 + d), from 0 to 1; the order is that of d even where similarities are equal.
	L2 Metric = "l2"
)

// A Field is a typed attribute of items. A filter by an indexed field reads no items, see
// Query.Where; a filter by another field reads all items.
type Field struct {
	Name    string    `json:"name"`
	Type    FieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"`
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
//
// A Time is stored in UTC, cut off to microseconds, of the years 0 to 9999. Text is possible in place of a
// time.Time: 2024-05-01T12:30:00.25+02:00, or its beginning, 2024-05-01 12:30, 2024-05-01, 2024-05 or
// 2024, which stands for its first moment. Text without an offset is in UTC.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
	Time   FieldType = "time"   // time.Time, or its text on the way in
)

// schemaOf returns the schema of a descriptor, in memory of its own.
func schemaOf(d *record.Descriptor) Schema {
	return Schema{Bits: d.Bits, Modalities: modalitiesOf(d.Modalities), Fields: fieldsOf(d.Fields), IndexOnly: d.IndexOnly}
}

// checkMade refuses the schema of a collection that only Checkpoint makes.
func (s *Schema) checkMade() error {
	if s.IndexOnly {
		return fault.Invalid("an index-only collection is made by Checkpoint, from one with vectors")
	}
	return nil
}

// descriptor returns the descriptor of a new collection.
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
