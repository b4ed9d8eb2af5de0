package record

import "github.com/fddhdb/fddhdb/codec"

// A Modality is one kind of features of a collection: float32 vectors of Dim dimensions. It is
// stored in the Descriptor, and package db exports it: the JSON names are a promise to both.
type Modality struct {
	Name    string `json:"name"`               // see CheckName
	Dim     int    `json:"dim"`                // 1 to MaxDim; never changes
	Sparse  bool   `json:"sparse,omitempty"`   // stored and computed with as the numbers that are not 0
	Metric  Metric `json:"metric,omitempty"`   // of its space; "": Cosine
	SpaceOf string `json:"space_of,omitempty"` // name of the first modality of its space; "": it is that itself
}

// A Field is a typed attribute of the items of a collection. An item has one value of it or
// none.
type Field struct {
	Name     string    `json:"name"`               // see CheckName
	Type     FieldType `json:"type"`               // never changes
	Indexed  bool      `json:"indexed,omitempty"`  // filters find its values without reading items
	Indexing bool      `json:"indexing,omitempty"` // an index is being made, or a crash has ended that: the sets of rows that there are mean nothing
}

// A FieldType is the type of the values of a field.
type FieldType string

// The types of fields and, in Go, of their values.
const (
	String FieldType = "string" // string
	Int    FieldType = "int"    // int64
	Float  FieldType = "float"  // float64, finite
	Bool   FieldType = "bool"   // bool
	Time   FieldType = "time"   // time.Time, of years 0 to 9999, in whole microseconds
)

// TypeOf returns the type of the fields that have a stored value; "" if none has.
func TypeOf(value any) FieldType {
	switch value.(type) {
	case string:
		return String
	case int64:
		return Int
	case float64:
		return Float
	case bool:
		return Bool
	case codec.Time:
		return Time
	}
	return ""
}

// Sliced returns the image of a stored value by which an indexed field is bit-sliced (codec/slices.go).
// It reports false for a string, which is not.
func Sliced(value any) (image uint64, ok bool) {
	switch v := value.(type) {
	case int64:
		return codec.IntImage(v), true
	case codec.Time:
		return codec.IntImage(int64(v)), true
	case float64:
		return codec.FloatImage(v), true
	case bool:
		return codec.BoolImage(v), true
	}
	return 0, false
}

// OfImage returns the stored value of a field of the type that an image is of.
func OfImage(t FieldType, image uint64) any {
	switch t {
	case Int:
		return codec.IntOf(image)
	case Time:
		return codec.Time(codec.IntOf(image))
	case Float:
		return codec.FloatOf(image)
	}
	return codec.BoolOf(image)
}

// StoredType returns the type of a field value that is stored with a type of package codec.
func StoredType(t byte) FieldType {
	return [...]FieldType{codec.TypeString: String, codec.TypeInt: Int, codec.TypeFloat: Float, codec.TypeBool: Bool, codec.TypeTime: Time}[t]
}
