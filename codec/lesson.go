package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A Lesson is an entry of KindLessons: what a row has taught the projections of a
// space. It is the revision that learned it, u32 little-endian, and the codes that the
// row taught, bits/8 bytes each. There is one code for all modalities, or one for each
// modality of the model, zero for modalities that the row lacks.
type Lesson struct {
	Revision uint32
	Codes    []byte
}

const maxLessonBytes = 4 + 1024*MaxBits/8

// Append appends the encoded entry.
func (l Lesson) Append(dst []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(dst, l.Revision), l.Codes...)
}

// DecodeLesson reads an entry for codes of q bits. Its codes alias b. The error wraps
// ErrCorrupt.
func DecodeLesson(q int, b []byte) (Lesson, error) {
	if len(b) <= 4 || (len(b)-4)%Bytes(q) != 0 || len(b) > maxLessonBytes {
		return Lesson{}, fmt.Errorf("%w: lesson of %d bytes, for codes of %d", ErrCorrupt, len(b), Bytes(q))
	}
	return Lesson{binary.LittleEndian.Uint32(b), b[4:]}, nil
}

// A Departure is a record of KindOutbox: the lesson of a row whose features have
// changed or gone since, with the features that taught it.
//
//	byte     1
//	uvarint  length of the lesson, and the lesson
//	uvarint  number of modalities; each, by ascending position in the collection:
//	uvarint    position
//	uvarint    length of the feature record, and the record
type Departure struct {
	Lesson
	Features []Feature // by ascending position of the modality
}

// A Feature is the stored vector of one modality.
type Feature struct {
	Modality uint16 // position in the collection
	Record   []byte // feature record
}

const departureVersion = 1

// Bytes returns the approximate length of the encoded record.
func (d *Departure) Bytes() int {
	n := len(d.Codes) + 16
	for _, f := range d.Features {
		n += len(f.Record) + 8
	}
	return n
}

// Append appends the encoded record.
func (d *Departure) Append(dst []byte) []byte {
	dst = append(dst, departureVersion)
	dst = binary.AppendUvarint(dst, uint64(4+len(d.Codes)))
	dst = d.Lesson.Append(dst)
	dst = binary.AppendUvarint(dst, uint64(len(d.Features)))
	for _, f := range d.Features {
		dst = binary.AppendUvarint(dst, uint64(f.Modality))
		dst = binary.AppendUvarint(dst, uint64(len(f.Record)))
		dst = append(dst, f.Record...)
	}
	return dst
}

// DecodeDeparture reads a record for codes of q bits. It copies, so the caller may
// reuse b. The error wraps ErrCorrupt.
func DecodeDeparture(q int, b []byte) (*Departure, error) {
	if len(b) == 0 || b[0] != departureVersion {
		return nil, fmt.Errorf("%w: outbox: does not start with version %d", ErrCorrupt, departureVersion)
	}
	r := reader{b: slices.Clone(b[1:])}
	d := &Departure{}
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
		return nil, fmt.Errorf("%w: outbox: %d bytes", ErrCorrupt, len(b))
	}
	return d, nil
}
