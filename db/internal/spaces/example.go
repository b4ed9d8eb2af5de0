package spaces

import (
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/model"
)

// Example returns an item as the model of the space takes it to learn from: vectors are by
// modality of the collection, labels are ids, ascending. It aliases both.
func (s *Space) Example(vectors []model.Vector, labels []uint32) model.Example {
	ex := model.Example{Vectors: make([]model.Vector, len(s.Positions)), Labels: labels}
	for i, t := range s.Positions {
		if Has(vectors, t) {
			ex.Vectors[i] = vectors[t]
		}
	}
	return ex
}

// Lesson converts a stored lesson for model to forget or repeat. item is the item that taught it. If it
// taught a code for each modality, the modalities that it lacks have none. An error says that the stored
// bytes cannot be a lesson of this space.
func (s *Space) Lesson(l codec.Lesson, item model.Example) (model.Lesson, error) {
	if err := s.checkTaught(l.Taught); err != nil {
		return model.Lesson{}, err
	}
	size := codec.Bytes(s.Bits)
	out := model.Lesson{Labels: l.Labels}
	if len(l.Codes) > 0 {
		out.Codes = make([]codec.Code, len(l.Codes)/size)
	}
	for i := range out.Codes {
		if len(out.Codes) > 1 && !item.Vectors[i].Present() {
			continue
		}
		out.Codes[i] = codec.NewCode(s.Bits)
		out.Codes[i].SetBytes(l.Codes[i*size : (i+1)*size])
	}
	return out, nil
}

// CheckLesson checks that a stored lesson can be one of the space, whose latest revision has
// the number latest. In a space without a model any number of codes will do. The caller words
// the error as damage.
func (s *Space) CheckLesson(l codec.Lesson, latest uint64) error {
	switch {
	case l.Revision == 0 || uint64(l.Revision) > latest:
		return fmt.Errorf("of revision %d, the one in use is %d", l.Revision, latest)
	case s.Trained == nil:
		return nil
	case !s.HasStatistics():
		return errors.New("the model was learned without labels, so that no row teaches it")
	}
	return s.checkTaught(l.Taught)
}

// checkTaught checks that a row can have taught this in the space, which has a model.
func (s *Space) checkTaught(t codec.Taught) error {
	if len(t.Labels) > 0 {
		if s.Trained.Aim() == model.AimCodes {
			return fmt.Errorf("%d labels, where items teach codes", len(t.Labels))
		}
		for _, label := range t.Labels {
			if !s.Learned.Knows([]uint32{label}) {
				return fmt.Errorf("label %d, which the model does not know", label)
			}
		}
		return nil
	}
	if codes := len(t.Codes) / codec.Bytes(s.Bits); codes != 1 && codes != len(s.Positions) {
		return fmt.Errorf("%d codes for %d modalities", codes, len(s.Positions))
	}
	return nil
}

// Taught returns a lesson in the form in which it is stored: its labels, or its codes one
// after the other, zeros for a nil one.
func (s *Space) Taught(lesson model.Lesson) codec.Taught {
	t := codec.Taught{Labels: lesson.Labels}
	for _, code := range lesson.Codes {
		if code == nil {
			t.Codes = append(t.Codes, make([]byte, codec.Bytes(s.Bits))...)
			continue
		}
		t.Codes = code.AppendBytes(t.Codes, s.Bits)
	}
	return t
}

// LearnsFrom reports whether the projections of the space can learn from an item: whether it
// has a modality that the model knows, and the space has statistics.
func (s *Space) LearnsFrom(it *record.Item) bool {
	return s.HasStatistics() &&
		slices.ContainsFunc(s.Positions, func(t int) bool { return Has(it.Vectors, t) })
}
