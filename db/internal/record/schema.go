package record

// A Modality is one kind of features of a collection: float32 vectors of Dim dimensions.
type Modality struct {
	Name   string `json:"name"`
	Dim    int    `json:"dim"`
	Sparse bool   `json:"sparse,omitempty"` // stored and computed with as the numbers that are not 0
}

// A Field is a typed attribute of the items of a collection.
type Field struct {
	Name    string    `json:"name"`
	Type    FieldType `json:"type"`
	Indexed bool      `json:"indexed,omitempty"` // filters can use it
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
)
