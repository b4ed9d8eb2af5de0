package codec

import (
	"encoding/binary"
	"fmt"
	"math"
)

// A StoredField is a field as a record has it. Reading it takes no memory.
type StoredField struct {
	ID   uint32
	Type byte   // TypeString, TypeInt, TypeFloat, TypeBool or TypeTime
	Text []byte // of a string; aliases the record
	Bits uint64 // of an int64 or a Time in two's complement, of a float64 by IEEE 754; of a bool 0 or 1
}

// value returns the value in memory of its own.
func (f *StoredField) value() any {
	switch f.Type {
	case TypeString:
		return string(f.Text)
	case TypeInt:
		return int64(f.Bits)
	case TypeTime:
		return Time(f.Bits)
	case TypeFloat:
		return math.Float64frombits(f.Bits)
	}
	return f.Bits == 1
}

// field reads a field.
func (r *reader) field() (f StoredField) {
	f.ID = uint32(r.uvarint(math.MaxUint32))
	switch f.Type = r.take(1)[0]; f.Type {
	case TypeString:
		f.Text = r.take(int(r.uvarint(uint64(len(r.b)))))
	case TypeInt, TypeTime:
		x, n := binary.Varint(r.b)
		if n <= 0 {
			r.bad, n = true, 0
		}
		f.Bits, r.b = uint64(x), r.b[n:]
		r.bad = r.bad || f.Type == TypeTime && (Time(x) < LeastTime || Time(x) > MostTime)
	case TypeFloat:
		f.Bits = binary.LittleEndian.Uint64(r.take(8))
	case TypeBool:
		f.Bits = uint64(r.take(1)[0])
		r.bad = r.bad || f.Bits > 1
	default:
		r.bad = true
	}
	return f
}

// An ItemFields reads the fields of an ItemRecord, by ascending id, and nothing else of it. Next
// moves to the next field. The record must not change meanwhile.
type ItemFields struct {
	StoredField // valid after Next has returned true

	r     reader
	left  uint64 // fields that are still to be read
	begun bool   // a field has been read
}

// FieldsOf returns a reader before the first field of an encoded ItemRecord.
func FieldsOf(record []byte) ItemFields {
	if len(record) == 0 || record[0] != recordVersion {
		return ItemFields{r: reader{bad: true}}
	}
	f := ItemFields{r: reader{b: record[1:]}}
	for range f.r.uvarint(uint64(len(f.r.b))) { // labels
		f.r.uvarint(math.MaxUint32)
	}
	f.left = f.r.uvarint(uint64(len(f.r.b)))
	return f
}

// Next reads a field. It returns false behind the last one, and where the record is damaged: Err
// tells.
func (f *ItemFields) Next() bool {
	if f.left == 0 || f.r.bad {
		return false
	}
	f.left--
	last := f.ID
	f.StoredField = f.r.field()
	if f.begun && f.ID <= last {
		f.r.bad = true
	}
	f.begun = true
	return !f.r.bad
}

// Err returns an error that wraps ErrCorrupt if damage has ended the reading. It says nothing of
// what has not been read.
func (f *ItemFields) Err() error {
	if f.r.bad {
		return fmt.Errorf("%w: item: fields", ErrCorrupt)
	}
	return nil
}
