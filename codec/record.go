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

// Counters are the numbers of a collection: those that only grow, its size, and the
// state of its spaces. They are written in the same commit as the changes that they
// count.
//
//	uvarint  next row, next automatic key, items, next space, active space, the space
//	         that was active before it (0: none), number of spaces; each:
//	uvarint    id
//	byte       flags: 1 it is being built, 2 it becomes the active one when it is
//	uvarint    revision, rows below this have been coded (while it is being built),
//	           rows that have taught, next number of a retraction, revision of the
//	           statistics that are stored, next code number, codes below this have
//	           postings, codes that some item has, items that have a code
type Counters struct {
	// next row and automatic key to give out; items there are; next id of a space
	NextRow, NextKey, Items, NextSpace uint64

	ActiveSpace, PreviousSpace uint64          // ids; 0: none
	Spaces                     []SpaceCounters // by ascending id
}

// SpaceCounters are the numbers of one space; see Counters for each of them.
type SpaceCounters struct {
	ID                 uint64
	Building, Activate bool // it is being built; it becomes active when that is done

	Revision       uint64 // of the projections
	Built          uint64 // rows below this have been coded, while it is being built
	Taught         uint64 // rows that have taught
	NextRetraction uint64 // number of the next retraction
	Checkpoint     uint64 // revision of the statistics that are stored
	CodeCounters
}

// CodeCounters are the numbers of the codes of a space.
type CodeCounters struct {
	NextCode uint64 // next code number
	Posted   uint64 // codes with a lower number have postings, the others have none yet
	Codes    uint64 // codes that some item has
	Coded    uint64 // items that have a code
}

const (
	flagBuilding = 1
	flagActivate = 2
)

// Append appends the encoded counters.
func (c Counters) Append(dst []byte) []byte {
	numbers := func(xs ...uint64) {
		for _, x := range xs {
			dst = binary.AppendUvarint(dst, x)
		}
	}
	numbers(c.NextRow, c.NextKey, c.Items, c.NextSpace, c.ActiveSpace, c.PreviousSpace, uint64(len(c.Spaces)))
	for _, s := range c.Spaces {
		numbers(s.ID)
		flags := byte(0)
		if s.Building {
			flags |= flagBuilding
		}
		if s.Activate {
			flags |= flagActivate
		}
		dst = append(dst, flags)
		numbers(s.Revision, s.Built, s.Taught, s.NextRetraction, s.Checkpoint, s.NextCode, s.Posted, s.Codes,
			s.Coded)
	}
	return dst
}

// DecodeCounters reads counters. The error wraps ErrCorrupt.
func DecodeCounters(b []byte) (Counters, error) {
	var c Counters
	r := reader{b: b}
	c.NextRow = r.uvarint(math.MaxUint32)
	c.NextKey = r.uvarint(math.MaxUint64)
	c.Items = r.uvarint(c.NextRow)
	c.NextSpace = r.uvarint(math.MaxUint32)
	c.ActiveSpace = r.uvarint(math.MaxUint32)
	c.PreviousSpace = r.uvarint(math.MaxUint32)
	last := uint64(0)
	for range r.uvarint(uint64(len(r.b))) {
		s := r.spaceCounters(c)
		if r.bad = r.bad || s.ID <= last || s.ID >= c.NextSpace; r.bad {
			break
		}
		last = s.ID
		c.Spaces = append(c.Spaces, s)
	}
	if r.bad || len(r.b) > 0 {
		return Counters{}, fmt.Errorf("%w: counters: %d bytes", ErrCorrupt, len(b))
	}
	return c, nil
}

func (r *reader) spaceCounters(c Counters) (s SpaceCounters) {
	s.ID = r.uvarint(math.MaxUint32)
	flags := r.take(1)[0]
	r.bad = r.bad || flags > flagBuilding|flagActivate
	s.Building, s.Activate = flags&flagBuilding != 0, flags&flagActivate != 0
	s.Revision = r.uvarint(math.MaxUint32)
	s.Built = r.uvarint(c.NextRow)
	s.Taught = r.uvarint(c.NextRow)
	s.NextRetraction = r.uvarint(math.MaxUint64)
	s.Checkpoint = r.uvarint(s.Revision)
	s.NextCode = r.uvarint(math.MaxUint32)
	s.Posted = r.uvarint(s.NextCode)
	s.Codes = r.uvarint(s.NextCode)
	s.Coded = r.uvarint(c.NextRow)
	return s
}

// A feature record is the vector of one modality of an item.
//
//	byte  1: dense
//	      float32 LE, one a dimension
//
//	byte  2: sparse
//	      uvarint number of values that are not 0; their dimensions, ascending, each
//	      as the uvarint difference to the one before, the first as it is
//	      float32 LE: these values
const (
	featuresDense  = 1
	featuresSparse = 2
)

// AppendFeatures appends the encoded vector.
func AppendFeatures(dst []byte, x []float32) []byte {
	dst = append(slices.Grow(dst, 1+4*len(x)), featuresDense)
	return appendFloats(dst, x)
}

// IsSparseFeatures reports whether a feature record is of the sparse form.
func IsSparseFeatures(b []byte) bool { return len(b) > 0 && b[0] == featuresSparse }

// AppendSparseFeatures appends the encoded vector with value[e] in dimension index[e]
// and 0 elsewhere. The indices ascend strictly, and no value is 0.
func AppendSparseFeatures(dst []byte, index []uint32, value []float32) []byte {
	dst = append(slices.Grow(dst, 2+6*len(index)), featuresSparse)
	dst = binary.AppendUvarint(dst, uint64(len(index)))
	last := uint32(0)
	for _, j := range index {
		dst = binary.AppendUvarint(dst, uint64(j-last))
		last = j
	}
	return appendFloats(dst, value)
}

func appendFloats(dst []byte, x []float32) []byte {
	for _, v := range x {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(v))
	}
	return dst
}

// DecodeFeatures reads a feature record of len(x) dimensions, dense or sparse, into x.
// The error wraps ErrCorrupt.
func DecodeFeatures(x []float32, b []byte) error {
	if len(b) == 0 || b[0] != featuresDense {
		return fmt.Errorf("%w: features: not of the dense form", ErrCorrupt)
	}
	if len(b) != 1+4*len(x) {
		return fmt.Errorf("%w: features: %d bytes for %d dimensions", ErrCorrupt, len(b), len(x))
	}
	b = b[1:]
	// A carry out of the exponent of a float says that all of it is set, as in infinities and NaN. Some
	// floats at a time: a search reads many vectors.
	const exponent, one = 0xff << 23, 1 << 23
	carries, rest := uint64(0), x
	for ; len(rest) >= 4 && len(b) >= 16; rest, b = rest[4:], b[16:] {
		u, v := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
		rest[0], rest[1] = math.Float32frombits(uint32(u)), math.Float32frombits(uint32(u>>32))
		rest[2], rest[3] = math.Float32frombits(uint32(v)), math.Float32frombits(uint32(v>>32))
		carries |= u&(exponent<<32|exponent) + (one<<32 | one)
		carries |= v&(exponent<<32|exponent) + (one<<32 | one)
	}
	for i := range rest {
		u := binary.LittleEndian.Uint32(b[4*i:])
		rest[i] = math.Float32frombits(u)
		carries |= uint64(u&exponent + one)
	}
	if carries&(1<<63|1<<31) == 0 {
		return nil
	}
	for i, v := range x {
		if math.Float32bits(v)&exponent == exponent {
			return fmt.Errorf("%w: features: dimension %d is %g", ErrCorrupt, i, v)
		}
	}
	return fmt.Errorf("%w: features: a number that is not finite", ErrCorrupt)
}

// AppendDecodedSparse reads a sparse feature record of dim dimensions, and appends
// indices and values. Both grow by at most a fifth of len(b). The error wraps
// ErrCorrupt.
func AppendDecodedSparse(index []uint32, value []float32, dim int, b []byte) ([]uint32, []float32, error) {
	if len(b) == 0 || b[0] != featuresSparse {
		return nil, nil, fmt.Errorf("%w: features: not of the sparse form", ErrCorrupt)
	}
	r := reader{b: b[1:]}
	n := int(r.uvarint(uint64(len(b)) / 5)) // a value takes at least 5 bytes
	next := uint64(0)
	for e := range n {
		d := r.uvarint(math.MaxUint32)
		if e > 0 {
			d += next - 1
		}
		if r.bad || d < next || d >= uint64(dim) {
			return nil, nil, fmt.Errorf("%w: features: dimension of value %d of %d", ErrCorrupt, e, n)
		}
		next = d + 1
		index = append(index, uint32(d))
	}
	if r.bad || len(r.b) != 4*n {
		return nil, nil, fmt.Errorf("%w: features: %d bytes for %d values", ErrCorrupt, len(b), n)
	}
	for e := range n {
		v := math.Float32frombits(binary.LittleEndian.Uint32(r.b[4*e:]))
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) || x == 0 {
			return nil, nil, fmt.Errorf("%w: features: value %d of a sparse vector is %g", ErrCorrupt, e, x)
		}
		value = append(value, v)
	}
	return index, value, nil
}

// A Lesson is an entry of KindLessons: what a row has taught the projections of a space, and
// the revision that learned it, below 2^31.
//
//	u32 little-endian  the revision; bit 31 is set if the row taught labels
//	                   labels: uvarint the first, then uvarint each difference, 1 or more
//	                   codes: bits/8 bytes each. There is one code for all modalities, or one
//	                   for each modality of the model, zero for modalities that the row lacks
type Lesson struct {
	Revision uint32
	Taught
}

// Taught is what a row has taught: labels or codes, and not both.
type Taught struct {
	Labels []uint32 // ascending, distinct
	Codes  []byte
}

// labelLesson marks a lesson of labels, in its revision.
const labelLesson = 1 << 31

// MaxRevision is the largest revision that a lesson can have.
const MaxRevision = labelLesson - 1

// maxLessonBytes bounds an entry: codes for each of 1,024 modalities.
const maxLessonBytes = 4 + 1024*MaxBits/8

// Append appends the encoded entry.
func (l Lesson) Append(dst []byte) []byte {
	if len(l.Labels) > 0 {
		l.Revision |= labelLesson
	}
	return l.Taught.Append(binary.LittleEndian.AppendUint32(dst, l.Revision))
}

// Append appends what the entry has after the revision.
func (t Taught) Append(dst []byte) []byte {
	before := uint32(0)
	for _, label := range t.Labels {
		dst = binary.AppendUvarint(dst, uint64(label-before))
		before = label
	}
	return append(dst, t.Codes...)
}

// Clone returns a copy that shares nothing with t.
func (t Taught) Clone() Taught { return Taught{slices.Clone(t.Labels), slices.Clone(t.Codes)} }

// DecodeLesson reads an entry for codes of q bits. Its codes alias b. The error wraps
// ErrCorrupt.
func DecodeLesson(q int, b []byte) (Lesson, error) {
	if len(b) <= 4 || len(b) > maxLessonBytes {
		return Lesson{}, fmt.Errorf("%w: lesson of %d bytes", ErrCorrupt, len(b))
	}
	l := Lesson{Revision: binary.LittleEndian.Uint32(b)}
	b = b[4:]
	if l.Revision&labelLesson == 0 {
		if len(b)%Bytes(q) != 0 {
			return Lesson{}, fmt.Errorf("%w: lesson of %d bytes of codes, for codes of %d", ErrCorrupt,
				len(b), Bytes(q))
		}
		l.Codes = b
		return l, nil
	}
	l.Revision &^= labelLesson
	r := reader{b: b}
	for before := uint64(0); len(r.b) > 0 && !r.bad; {
		step := r.uvarint(1<<32 - 1)
		if before += step; before >= 1<<32 || step == 0 && l.Labels != nil {
			r.bad = true
		}
		l.Labels = append(l.Labels, uint32(before))
	}
	if r.bad {
		return Lesson{}, fmt.Errorf("%w: lesson of labels in %d bytes", ErrCorrupt, len(b))
	}
	return l, nil
}

// A Retraction is a record of KindRetraction: the lesson of a row whose features have
// changed or gone since, with the features that taught it.
//
//	byte     1
//	uvarint  length of the lesson, and the lesson
//	uvarint  number of modalities; each, by ascending position in the collection:
//	uvarint    position
//	uvarint    length of the feature record, and the record
type Retraction struct {
	Lesson
	Features []Feature // by ascending position of the modality
}

// A Feature is the stored vector of one modality.
type Feature struct {
	Modality uint16 // position in the collection
	Record   []byte // feature record
}

const retractionVersion = 1

// Bytes returns the approximate length of the encoded record.
func (d *Retraction) Bytes() int {
	n := len(d.Codes) + 5*len(d.Labels) + 16
	for _, f := range d.Features {
		n += len(f.Record) + 8
	}
	return n
}

// Append appends the encoded record.
func (d *Retraction) Append(dst []byte) []byte {
	dst = append(dst, retractionVersion)
	lesson := d.Lesson.Append(nil)
	dst = binary.AppendUvarint(dst, uint64(len(lesson)))
	dst = append(dst, lesson...)
	dst = binary.AppendUvarint(dst, uint64(len(d.Features)))
	for _, f := range d.Features {
		dst = binary.AppendUvarint(dst, uint64(f.Modality))
		dst = binary.AppendUvarint(dst, uint64(len(f.Record)))
		dst = append(dst, f.Record...)
	}
	return dst
}

// DecodeRetraction reads a record for codes of q bits. It copies, so the caller may
// reuse b. The error wraps ErrCorrupt.
func DecodeRetraction(q int, b []byte) (*Retraction, error) {
	if len(b) == 0 || b[0] != retractionVersion {
		return nil, fmt.Errorf("%w: retraction: does not start with version %d", ErrCorrupt,
			retractionVersion)
	}
	r := reader{b: slices.Clone(b[1:])}
	d := &Retraction{}
	lesson, err := DecodeLesson(q, r.take(int(r.uvarint(uint64(len(r.b))))))
	if err != nil {
		return nil, err
	}
	d.Lesson = lesson
	for i := range r.uvarint(uint64(len(r.b))) {
		f := Feature{Modality: uint16(r.uvarint(1<<16 - 1))}
		f.Record = r.take(int(r.uvarint(uint64(len(r.b)))))
		if r.bad = r.bad || i > 0 && f.Modality <= d.Features[i-1].Modality; r.bad {
			break
		}
		d.Features = append(d.Features, f)
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("%w: retraction: %d bytes", ErrCorrupt, len(b))
	}
	return d, nil
}

// This file holds the entries of the blocks of a space. An entry of KindRowCodes has
// the code of a row and its provenance, one of KindCodes a code. One of KindProjection
// has the direction of the fused projection of a row, for cosines among items of one
// code.

// Provenance says where the code of an item comes from: ProvenanceLabels,
// ProvenanceFused, ProvenanceGiven, or ProvenanceModality + t.
type Provenance uint16

const (
	ProvenanceLabels   Provenance = 1   // sgn(C y)
	ProvenanceFused    Provenance = 2   // signs of its fused projections
	ProvenanceGiven    Provenance = 3   // given by the user
	ProvenanceModality Provenance = 256 // plus t: signs of the projection of modality t
)

// A RowCode is an entry of KindRowCodes, RowCodeBytes long: code number u32,
// provenance u16, revision u32, little-endian.
type RowCode struct {
	Code       uint32 // code number
	Provenance Provenance
	Revision   uint32 // that made the code
}

// RowCodeBytes is the length of an encoded RowCode.
const RowCodeBytes = 10

// Append appends the encoded entry.
func (r RowCode) Append(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, r.Code)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(r.Provenance))
	return binary.LittleEndian.AppendUint32(dst, r.Revision)
}

// DecodeRowCode reads an entry of KindRowCodes.
func DecodeRowCode(b []byte) (RowCode, error) {
	if len(b) != RowCodeBytes {
		return RowCode{}, fmt.Errorf("%w: row code of %d bytes, not %d", ErrCorrupt, len(b), RowCodeBytes)
	}
	return RowCode{
		Code:       binary.LittleEndian.Uint32(b),
		Provenance: Provenance(binary.LittleEndian.Uint16(b[4:])),
		Revision:   binary.LittleEndian.Uint32(b[6:]),
	}, nil
}

// ManyRows replaces the row in an entry of KindCodes if several rows carry the code.
// Those rows are in layers of KindCodeRows.
const ManyRows = math.MaxUint32

// CodeEntryBytes returns the length of an entry of KindCodes: a code of q bits, and as
// u32 little-endian the row that carries it, or ManyRows.
func CodeEntryBytes(q int) int { return Bytes(q) + 4 }

// AppendCodeEntry appends the encoded entry of a code of q bits.
func AppendCodeEntry(dst []byte, c Code, q int, row uint32) []byte {
	return binary.LittleEndian.AppendUint32(c.AppendBytes(dst, q), row)
}

// DecodeCodeEntry reads an entry of KindCodes. It writes the code to c. The error wraps
// ErrCorrupt.
func DecodeCodeEntry(c Code, q int, b []byte) (row uint32, err error) {
	if len(b) != CodeEntryBytes(q) {
		return 0, fmt.Errorf("%w: code of %d bytes, not %d", ErrCorrupt, len(b), CodeEntryBytes(q))
	}
	c.SetBytes(b[:Bytes(q)])
	return binary.LittleEndian.Uint32(b[Bytes(q):]), nil
}

// ProjectionBytes returns the length of an encoded projection of q bits: a float32, the
// inverse of the length of the rest, and q signed bytes.
func ProjectionBytes(q int) int { return 4 + q }

// AppendProjection appends the direction of z with 8 bits a dimension. z is scaled so
// that its largest component becomes 127, and rounded. The length of z is lost; a
// cosine does not need it. A zero z has a zero inverse length.
func AppendProjection(dst []byte, z []float64) []byte {
	largest := 0.0
	for _, x := range z {
		largest = max(largest, math.Abs(x))
	}
	at := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	if largest == 0 || math.IsInf(largest, 0) || math.IsNaN(largest) {
		return append(dst, make([]byte, len(z))...)
	}
	sum := 0
	for _, x := range z {
		v := int8(math.RoundToEven(x / largest * 127))
		sum += int(v) * int(v)
		dst = append(dst, byte(v))
	}
	binary.LittleEndian.PutUint32(dst[at:], math.Float32bits(float32(1/math.Sqrt(float64(sum)))))
	return dst
}

// Direction returns the signed bytes of an encoded projection, one a dimension, in its memory.
// Their length, which stands before them, follows from them.
func Direction(entry []byte) []byte { return entry[4:] }
