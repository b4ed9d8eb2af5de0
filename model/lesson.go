package model

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
)

// A Lesson is the codes that an item has taught. It is needed to teach the item again
// or to forget it ([Online]):
//
//   - empty: the item has taught nothing;
//   - one code: the item has taught it in each of its modalities;
//   - one code for each modality of the model: the item has taught each modality its
//     own code, or nothing where the code is nil, as with TeacherSelf.
//
// Lessons may share slices: do not write to them.
type Lesson []codec.Code

// code returns the code for modality t, or nil.
func (l Lesson) code(t int) codec.Code {
	switch {
	case len(l) == 1:
		return l[0]
	case len(l) > 1:
		return l[t]
	}
	return nil
}

// checkLesson refuses a lesson that the item cannot have taught.
func (m *Model) checkLesson(item Example, l Lesson) error {
	if len(l) > 1 && len(l) != len(m.maps) {
		return fmt.Errorf("%w: a lesson of %d codes, but there are %d modalities: give none, one, or one for each", ErrMismatch, len(l), len(m.maps))
	}
	for t, code := range l {
		if len(code) != codec.Words(m.bits) && (len(l) == 1 || code != nil) {
			return fmt.Errorf("%w: a lesson has a code of %d words, but %d bits take %d", ErrMismatch, len(code), m.bits, codec.Words(m.bits))
		}
		if len(l) > 1 && code != nil && !item.Vectors[t].Present() {
			return fmt.Errorf("%w: a lesson has a code for modality %q, but the item lacks that", ErrMismatch, m.modalities[t].Name)
		}
	}
	return nil
}

// packSigns returns the code with the signs of h.
func packSigns(h []float32) codec.Code {
	code := codec.NewCode(len(h))
	for j, v := range h {
		if v > 0 {
			code[j/64] |= 1 << (j % 64)
		}
	}
	return code
}

// ownLessons writes the lessons of items without known labels in modality t of so many.
func (s *subject) ownLessons(t, modalities int, known []bool, lessons []Lesson) {
	for r, i := range s.at {
		if known[i] {
			continue
		}
		if lessons[i] == nil {
			lessons[i] = make(Lesson, modalities)
		}
		lessons[i][t] = packSigns(s.h[r*s.q : (r+1)*s.q])
	}
}

// Relearn adds items with the codes of their lessons: those that they taught before, or
// that are known from elsewhere. It searches for no code and ignores labels. lessons
// are parallel to items; items with an empty lesson are skipped. The statistics then
// equal those that Learn left, but for rounding if the items come in another order.
//
// It takes items in chunks of MaxLesson, at the cost of labelled items of Learn. It
// fails with an error that wraps ErrMismatch or ErrNotFinite, with a *DimensionError,
// or when the context ends. Then the chunk in hand and those after it have not been
// added.
func (o *Online) Relearn(ctx context.Context, items []Example, lessons []Lesson) (err error) {
	defer guard(&err, "relearning items")
	return o.eachChunk(ctx, items, lessons, func(subjects []*subject) error {
		for t, s := range subjects {
			if _, err := o.add(t, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget removes items from the statistics: their vectors as they were when they
// taught, and their lessons, parallel to the items. Items with an empty lesson are
// skipped. The statistics then equal those of the remaining items, but for rounding.
// The Online cannot tell whether these very items have taught; it only checks that
// there are as many.
//
// It takes items in chunks of MaxLesson. A chunk of m items costs m k (k/2 + q)
// multiplications a modality and k (k+q) additions, and 8 k (k+q) bytes for a while. It
// fails with an error that wraps ErrMismatch or ErrNotFinite, with a *DimensionError,
// or when the context ends. Then the chunk in hand and those after it are still there.
func (o *Online) Forget(ctx context.Context, items []Example, lessons []Lesson) (err error) {
	defer guard(&err, "forgetting items")
	return o.eachChunk(ctx, items, lessons, func(subjects []*subject) error {
		for t, s := range subjects {
			o.absorb(t)
			if n := o.stats.parts[t].n; int64(len(s.at)) > n {
				return fmt.Errorf("%w: %d items are to be forgotten, but only %d have taught modality %q", ErrMismatch, len(s.at), n, o.model.modalities[t].Name)
			}
		}
		for t, s := range subjects {
			if err := o.subtract(t, s); err != nil {
				return err
			}
		}
		return nil
	})
}

// subtract removes a subject that has been added to modality t.
func (o *Online) subtract(t int, s *subject) error {
	if len(s.at) == 0 {
		return nil
	}
	o.absorb(t)
	if err := o.stats.subtract(t, len(s.at), s.phi, s.h, o.workers()); err != nil {
		return err
	}
	o.parts[t].state = stale
	return nil
}

// eachChunk calls f with the subjects of each chunk of items, by modality.
func (o *Online) eachChunk(ctx context.Context, items []Example, lessons []Lesson, f func([]*subject) error) error {
	if len(items) != len(lessons) {
		return fmt.Errorf("%w: %d items with %d lessons", ErrMismatch, len(items), len(lessons))
	}
	for first := 0; first < len(items); first += MaxLesson {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(first+MaxLesson, len(items))
		subjects, err := o.taught(items[first:end], lessons[first:end])
		if err != nil {
			return err
		}
		if err := f(subjects); err != nil {
			return err
		}
	}
	return nil
}

// taught returns by modality what items have taught.
func (o *Online) taught(items []Example, lessons []Lesson) (subjects []*subject, err error) {
	for i, l := range lessons {
		if len(l) == 0 {
			continue
		}
		if err := o.model.checkVectors(items[i]); err != nil {
			return nil, err
		}
		if err := o.model.checkLesson(items[i], l); err != nil {
			return nil, err
		}
	}
	q := o.model.bits
	for t := range o.parts {
		s := &subject{q: q, k: o.stats.parts[t].k}
		var xs []Vector
		for i, l := range lessons {
			code := l.code(t)
			if code == nil || !items[i].Vectors[t].Present() {
				continue
			}
			s.at, xs = append(s.at, i), append(xs, items[i].Vectors[t])
			s.h = append(s.h, make([]float32, q)...)
			signs(s.h[len(s.h)-q:], code)
		}
		if s.phi, err = o.features(t, xs); err != nil {
			return nil, err
		}
		s.open = make([]bool, len(s.at))
		subjects = append(subjects, s)
	}
	return subjects, nil
}
