package db

// A modality is one kind of features of a collection: float32 vectors of Dim dimensions.
type modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"` // stored and computed with as the numbers that are not 0
}

// A field is a typed attribute of the items of a collection.
type field struct {
	Name    string    `json:"name"`
	Type    fieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"` // filters can use it
}

// A fieldType is the type of the values of a field.
type fieldType string

// The types of fields and, in Go, of their values.
const (
	stringField fieldType = "string" // string
	intField    fieldType = "int"    // int64
	floatField  fieldType = "float"  // float64, finite
	boolField   fieldType = "bool"   // bool
)
