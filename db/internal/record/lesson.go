package record

import (
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
)

// Departure returns the record for the outbox of a space: the lesson l that a row has taught,
// with the features that r has of it in the given modalities (positions in the collection, in
// any order). r has to be of the time when the row taught, as the departure takes out what
// these features put in.
func Departure(r pebble.Reader, d *Descriptor, modalities []int, row uint32, l codec.Lesson) (*codec.Departure, error) {
	out := &codec.Departure{Lesson: l}
	for _, t := range slices.Sorted(slices.Values(modalities)) {
		b, err := Get(r, codec.FeatureKey(d.ID, row, uint16(t)))
		if err != nil {
			return nil, fault.ReadError(err, "features %q of row %d", d.Modalities[t].Name, row)
		}
		if b != nil {
			out.Features = append(out.Features, codec.Feature{Modality: uint16(t), Record: b})
		}
	}
	return out, nil
}

// ReadLesson returns what a row has taught in a space whose codes have so many bits, in memory
// of the caller's own; found is false where it has taught nothing.
func ReadLesson(r pebble.Reader, collection, space uint32, bits int, row uint32) (l codec.Lesson, found bool, err error) {
	err = BlockEntry(r, codec.LessonsKey(collection, space, row), row, func(entry []byte) error {
		found = true
		if l, err = codec.DecodeLesson(bits, entry); err != nil {
			return fault.Corrupt(err, "lesson of row %d", row)
		}
		l.Taught = l.Taught.Clone()
		return nil
	})
	return l, found && err == nil, err
}
