package codec

import (
	"encoding/binary"
	"fmt"
	"slices"
)

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
			return Lesson{}, fmt.Errorf("%w: lesson of %d bytes of codes, for codes of %d", ErrCorrupt, len(b), Bytes(q))
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
		return nil, fmt.Errorf("%w: retraction: does not start with version %d", ErrCorrupt, retractionVersion)
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
