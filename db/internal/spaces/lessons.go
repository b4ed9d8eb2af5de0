package spaces

import (
	"context"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// ForEachLesson calls f with the rows of the space that have taught, in ascending order and up to
// model.MaxLesson of them at a time: items[i] is the present contents of rows[i], and lessons[i] its lesson.
// want is called with each stored lesson, which it must not keep; rows whose lesson it refuses are left out.
// Nil wants all. The slices are reused after f returns, but not the memory that they point to. A row with a
// lesson still has the features that it taught: a write that changes them moves the lesson to the queue of
// retractions. ForEachLesson takes the memory of one chunk of items. It ends early with the context.
func (s *Space) ForEachLesson(ctx context.Context, r pebble.Reader, d *record.Descriptor,
	want func(codec.Lesson) bool,
	f func(rows []uint32, items []model.Example, lessons []model.Lesson) error) error {
	features, err := record.NewFeatureReader(r, d, 0)
	if err != nil {
		return err
	}
	defer features.Close()
	var rows []uint32
	var items []model.Example
	var lessons []model.Lesson
	vectors := make([]model.Vector, len(d.Modalities))
	flush := func() error {
		err := f(rows, items, lessons)
		rows, items, lessons = rows[:0], items[:0], lessons[:0]
		return err
	}
	err = record.ForEachEntry(r, codec.NumberKey(codec.KindLessons, d.ID, s.ID),
		func(row uint32, entry []byte) error {
			stored, err := codec.DecodeLesson(s.Bits, entry)
			if err != nil {
				return fault.Corrupt(err, "lesson of row %d", row)
			}
			if want != nil && !want(stored) {
				return nil
			}
			if err := features.Seek(vectors, row); err != nil {
				return err
			}
			item := s.Example(vectors, nil)
			for t := range item.Vectors {
				item.Vectors[t] = record.CloneVector(item.Vectors[t])
			}
			lesson, err := s.Lesson(stored, item)
			if err != nil {
				return fault.Corrupt(err, "lesson of row %d", row)
			}
			rows, items, lessons = append(rows, row), append(items, item), append(lessons, lesson)
			if len(rows) < model.MaxLesson {
				return nil
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			return flush()
		})
	if err == nil && len(rows) > 0 {
		err = flush()
	}
	return err
}
