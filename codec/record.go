package codec

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// An ItemRecord is the stored part of an item besides its key and features.
//
//	byte     1
//	uvarint  number of labels; each as the uvarint difference to the one before
//	uvarint  number of fields; each: uvarint field id, byte type, value
//	           1 string: uvarint length, bytes   2 int: varint
//	           3 float: u64 LE of the IEEE bits  4 bool: byte 0 or 1
//	           5 time: varint of microseconds since 1970-01-01T00:00:00 in UTC
//	         payload, to the end
type ItemRecord struct {
	Labels  []uint32 // ids, ascending, distinct
	Fields  []Field  // by ascending id, distinct
	Payload []byte
}

// A Field is a field's id and its value: string, int64, float64, bool or Time.
type Field struct {
	ID    uint32
	Value any
}

// A Time is a time in microseconds since 1970-01-01T00:00:00 in UTC, from LeastTime to MostTime.
type Time int64

// The first and the last microsecond of the years that RFC 3339 has a text for, 0 to 9999.
const (
	LeastTime Time = -62_167_219_200_000_000
	MostTime  Time = 253_402_300_799_999_999
)

const recordVersion = 1

// Types of field values as they are stored.
const (
	TypeString = 1
	TypeInt    = 2
	TypeFloat  = 3
	TypeBool   = 4
	TypeTime   = 5
)

// Append appends the encoded record. It refuses field values of other types than
// those of a Field.
func (r *ItemRecord) Append(dst []byte) ([]byte, error) {
	dst = append(dst, recordVersion)
	dst = binary.AppendUvarint(dst, uint64(len(r.Labels)))
	last := uint32(0)
	for _, l := range r.Labels {
		dst = binary.AppendUvarint(dst, uint64(l-last))
		last = l
	}
	dst = binary.AppendUvarint(dst, uint64(len(r.Fields)))
	for _, f := range r.Fields {
		dst = binary.AppendUvarint(dst, uint64(f.ID))
		switch v := f.Value.(type) {
		case string:
			dst = binary.AppendUvarint(append(dst, TypeString), uint64(len(v)))
			dst = append(dst, v...)
		case int64:
			dst = binary.AppendVarint(append(dst, TypeInt), v)
		case float64:
			dst = binary.LittleEndian.AppendUint64(append(dst, TypeFloat), math.Float64bits(v))
		case bool:
			dst = append(dst, TypeBool, 0)
			if v {
				dst[len(dst)-1] = 1
			}
		case Time:
			dst = binary.AppendVarint(append(dst, TypeTime), int64(v))
		default:
			return nil, fmt.Errorf("field %d has a value of type %T", f.ID, f.Value)
		}
	}
	return append(dst, r.Payload...), nil
}

// reader reads a record from its start. After the first failure it returns zeros.
type reader struct {
	b   []byte
	bad bool
}

// uvarint reads a number up to limit. Only its shortest form is valid.
func (r *reader) uvarint(limit uint64) uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 || x > limit || n > 1 && r.b[n-1] == 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) take(n int) []byte {
	if n > len(r.b) {
		r.bad, r.b = true, nil
		return make([]byte, min(n, 8))
	}
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

// DecodeItemRecord reads a record. It copies strings and payload, so the caller may
// reuse b. The error wraps ErrCorrupt.
func DecodeItemRecord(b []byte) (*ItemRecord, error) {
	if len(b) == 0 || b[0] != recordVersion {
		return nil, fmt.Errorf("%w: item: does not start with version %d", ErrCorrupt, recordVersion)
	}
	r := reader{b: b[1:]}
	rec := &ItemRecord{}
	last := uint64(0)
	for i := range r.uvarint(uint64(len(r.b))) {
		d := r.uvarint(math.MaxUint32)
		if r.bad || (i > 0 && d == 0) || last+d > math.MaxUint32 {
			return nil, fmt.Errorf("%w: item: labels", ErrCorrupt)
		}
		last += d
		rec.Labels = append(rec.Labels, uint32(last))
	}
	for i := range r.uvarint(uint64(len(r.b))) {
		f := r.field()
		if r.bad || (i > 0 && f.ID <= rec.Fields[i-1].ID) {
			return nil, fmt.Errorf("%w: item: fields", ErrCorrupt)
		}
		rec.Fields = append(rec.Fields, Field{f.ID, f.value()})
	}
	if r.bad {
		return nil, fmt.Errorf("%w: item: ends early", ErrCorrupt)
	}
	if len(r.b) > 0 {
		rec.Payload = slices.Clone(r.b)
	}
	return rec, nil
}

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
