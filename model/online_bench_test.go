package model

import (
	"fmt"
	"slices"
	"testing"
)

// BenchmarkOnline measures the cost of an item that is learned by its labels or by the
// codes of a modality, with a revision every 100 items, in chunks of several sizes: 800
// anchors, 128 bits, two modalities of 128 dimensions.
//
//	go test ./model -run '^$' -bench '^BenchmarkOnline$'
func BenchmarkOnline(b *testing.B) {
	src := newStream(2000, 10, 128, 128)
	var items []Example
	for ex := range src.Examples(b.Context()) {
		item := Example{Labels: slices.Clone(ex.Labels)}
		for _, x := range ex.Vectors {
			item.Vectors = append(item.Vectors, Dense(slices.Clone(x.Value)))
		}
		items = append(items, item)
	}
	r := train128(b, src, MethodLabels, 800)
	hidden := slices.Clone(items)
	for i := range hidden {
		hidden[i].Labels = nil
	}
	for _, c := range []struct {
		what    string
		items   []Example
		chunk   int
		teacher Teacher
	}{
		{"labels", items, 1, TeacherLabels},
		{"labels", items, 100, TeacherLabels},
		{"modality", hidden, 1, TeacherModality},
		{"modality", hidden, 100, TeacherModality},
	} {
		for _, workers := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/chunk=%d/workers=%d", c.what, c.chunk, workers), func(b *testing.B) {
				o, err := NewOnline(r.Model, r.Statistics.Clone())
				if err != nil {
					b.Fatal(err)
				}
				o.Workers = workers
				i := 0
				for b.Loop() {
					for range 100 / c.chunk {
						if _, err := o.Learn(b.Context(), c.items[i:i+c.chunk], c.teacher, 0); err != nil {
							b.Fatal(err)
						}
						i = (i + c.chunk) % len(items)
					}
					if _, err := o.Revision(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/100, "us/item")
			})
		}
	}
}

// BenchmarkGuard measures a verdict of 200 held items on 1,000 others, including the
// making of the Guard and its learning.
func BenchmarkGuard(b *testing.B) {
	src := newStream(3000, 10, 128, 128)
	var items []Example
	for ex := range src.Examples(b.Context()) {
		item := Example{Labels: slices.Clone(ex.Labels)}
		for _, x := range ex.Vectors {
			item.Vectors = append(item.Vectors, Dense(slices.Clone(x.Value)))
		}
		items = append(items, item)
	}
	r := train128(b, src, MethodLabels, 800)
	held := items[:200]
	var lessons []Lesson
	for i, item := range held {
		lessons = append(lessons, r.Lesson(i, item.Labels))
	}
	hidden := slices.Clone(items[1000:2000])
	for i := range hidden {
		hidden[i].Labels = nil
	}
	o, err := NewOnline(r.Model, r.Statistics)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		g, err := o.Guard(b.Context(), held, lessons)
		if err != nil {
			b.Fatal(err)
		}
		if err := g.Learn(b.Context(), hidden); err != nil {
			b.Fatal(err)
		}
		if _, err := g.Verdict(); err != nil {
			b.Fatal(err)
		}
	}
}
