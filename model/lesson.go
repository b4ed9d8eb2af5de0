package model

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/model/internal/aims"
	"github.com/fddhdb/fddhdb/model/internal/dense"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
)

// A Lesson records what an item has taught. It is needed to teach the item again or to forget it ([Online]).
// An item teaches its labels, codes, or nothing:
//
//   - Labels that the model knew then, with AimLabels and AimWeighted;
//   - one code: the item has taught it in each of its modalities;
//   - one code for each modality of the model: the item has taught each modality its own code, or
//     nothing where the code is nil, as with TeacherSelf.
//
// Lessons may share slices: do not write to them.
type Lesson struct {
	Labels []uint32 // ascending, distinct
	Codes  []codec.Code
}

// LabelLesson returns the lesson of an item that has taught these labels, which must be sorted and distinct:
// with AimCodes their LabelCode. It is empty if the model knows none of them.
func (m *Model) LabelLesson(labels []uint32) Lesson {
	columns := aims.Known(nil, m.labels, labels)
	if len(columns) == 0 {
		return Lesson{}
	}
	if m.aim != AimCodes {
		return Lesson{Labels: m.labelsOf(columns)}
	}
	code := codec.NewCode(m.bits)
	m.codeOf(code, columns)
	return Lesson{Codes: []codec.Code{code}}
}

// Empty reports whether the item has taught nothing.
func (l Lesson) Empty() bool { return len(l.Labels) == 0 && len(l.Codes) == 0 }

// teaches reports whether the lesson has something for modality t, and its code if that
// is one.
func (l Lesson) teaches(t int) (code codec.Code, ok bool) {
	switch {
	case len(l.Labels) > 0:
		return nil, true
	case len(l.Codes) == 1:
		code = l.Codes[0]
	case len(l.Codes) > 1:
		code = l.Codes[t]
	}
	return code, code != nil
}

// checkLesson refuses a lesson that the item cannot have taught.
func (m *Model) checkLesson(item Example, l Lesson) error {
	if len(l.Labels) > 0 {
		switch {
		case m.aim == AimCodes || len(l.Codes) > 0:
			return fmt.Errorf("%w: a lesson of labels, but with the aim %v items teach codes", ErrMismatch,
				m.aim)
		case len(aims.Known(nil, m.labels, l.Labels)) != len(l.Labels):
			return fmt.Errorf("%w: a lesson has labels that the model does not know", ErrMismatch)
		case !aims.Ascend(l.Labels):
			return fmt.Errorf("%w: the labels of a lesson must be sorted and distinct", ErrMismatch)
		}
		return nil
	}
	if len(l.Codes) > 1 && len(l.Codes) != len(m.maps) {
		return fmt.Errorf("%w: a lesson of %d codes, but there are %d modalities: give none, one, or one for each", ErrMismatch, len(l.Codes), len(m.maps))
	}
	for t, code := range l.Codes {
		if len(code) != codec.Words(m.bits) && (len(l.Codes) == 1 || code != nil) {
			return fmt.Errorf("%w: a lesson has a code of %d words, but %d bits take %d", ErrMismatch,
				len(code), m.bits, codec.Words(m.bits))
		}
		if len(l.Codes) > 1 && code != nil && !item.Vectors[t].Present() {
			return fmt.Errorf("%w: a lesson has a code for modality %q, but the item lacks that", ErrMismatch,
				m.modalities[t].Name)
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
		if lessons[i].Codes == nil {
			lessons[i].Codes = make([]codec.Code, modalities)
		}
		lessons[i].Codes[t] = packSigns(s.h[r*s.q : (r+1)*s.q])
	}
}

// Relearn adds items with their lessons: earlier ones, or lessons known from elsewhere. It searches for no
// code and ignores labels. lessons are parallel to items; items with an empty lesson are skipped. The
// statistics then equal the result of Learn, but for rounding if the items come in another order.
//
// It takes items in chunks of MaxLesson, at the cost of labelled items of Learn. It
// fails with an error that wraps ErrMismatch or ErrNotFinite, with a *DimensionError,
// or when the context ends. Then the chunk in hand and those after it have not been
// added.
func (o *Online) Relearn(ctx context.Context, items []Example, lessons []Lesson) (err error) {
	defer parallel.Guard(&err, "relearning items")
	return o.eachChunk(ctx, items, lessons, func(subjects []*subject) error {
		for t, s := range subjects {
			if _, err := o.add(t, s, mixture{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// Forget removes items from the statistics: their vectors as they were when they taught, and their lessons,
// parallel to the items. Items with an empty lesson are skipped. The statistics then equal statistics of the
// remaining items, but for rounding. The Online cannot tell whether these very items have taught; it only
// checks that there are as many.
//
// It takes items in chunks of MaxLesson. A chunk of m items costs m k (k/2 + c)
// multiplications a modality for c labels, or with codes q in place of c; as many additions
// as there are sums; and their memory for a while. It
// fails with an error that wraps ErrMismatch or ErrNotFinite, with a *DimensionError,
// or when the context ends. Then the chunk in hand and those after it are still there.
func (o *Online) Forget(ctx context.Context, items []Example, lessons []Lesson) (err error) {
	defer parallel.Guard(&err, "forgetting items")
	return o.eachChunk(ctx, items, lessons, func(subjects []*subject) error {
		for t, s := range subjects {
			o.absorb(t)
			if n := o.stats.parts[t].n; int64(len(s.at)) > n {
				return fmt.Errorf("%w: %d items are to be forgotten, but only %d have taught modality %q",
					ErrMismatch, len(s.at), n, o.model.modalities[t].Name)
			}
			if n := o.stats.parts[t].unlabelled; o.stats.labels > 0 && s.coded() > n {
				return fmt.Errorf("%w: %d items that projections have taught are to be forgotten, but there are only %d of modality %q", ErrMismatch, s.coded(), n, o.model.modalities[t].Name)
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

// coded returns the number of rows that a code teaches.
func (s *subject) coded() (n int64) {
	for r := range s.at {
		if s.h[r*s.q] != 0 {
			n++
		}
	}
	return n
}

// subtract removes a subject that has been added to modality t.
func (o *Online) subtract(t int, s *subject) error {
	if len(s.at) == 0 {
		return nil
	}
	o.absorb(t)
	if err := o.stats.subtract(t, dense.Of(len(s.at), s.k, s.phi), s.teaching, o.workers()); err != nil {
		return err
	}
	o.parts[t].state = stale
	return nil
}

// eachChunk calls f with the subjects of each chunk of items, by modality.
func (o *Online) eachChunk(ctx context.Context, items []Example, lessons []Lesson,
	f func([]*subject) error) error {
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

// taught returns by modality the teaching of items.
func (o *Online) taught(items []Example, lessons []Lesson) (subjects []*subject, err error) {
	for i, l := range lessons {
		if l.Empty() {
			continue
		}
		if err := o.model.checkVectors(items[i]); err != nil {
			return nil, err
		}
		if err := o.model.checkLesson(items[i], l); err != nil {
			return nil, err
		}
	}
	for t := range o.parts {
		s := o.newSubject(t)
		var xs []Vector
		for i, l := range lessons {
			code, ok := l.teaches(t)
			if !ok || !items[i].Vectors[t].Present() {
				continue
			}
			s.at, xs = append(s.at, i), append(xs, items[i].Vectors[t])
			s.h, s.y = append(s.h, make([]float32, s.q)...), append(s.y, make([]float32, s.c)...)
			row := teaching{s.y[len(s.y)-s.c:], s.h[len(s.h)-s.q:]}
			if code != nil {
				aims.Signs(row.h, code)
			} else {
				o.model.teachLabels(row, aims.Known(nil, o.model.labels, l.Labels))
			}
		}
		if s.phi, err = o.features(t, xs); err != nil {
			return nil, err
		}
		s.open = make([]bool, len(s.at))
		subjects = append(subjects, s)
	}
	return subjects, nil
}
