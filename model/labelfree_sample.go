package model

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/fddhdb/fddhdb/model/internal/dense"
)

// What is learned without labels is learned from a sample of the items: means, axes and rotations
// change little from some thousands of items on.
const (
	sampleItems   = 20_000
	sampleNumbers = 1 << 25 // most numbers of sampled vectors, at 4 bytes
	leastSample   = 100     // items of a sample, however long their vectors are
)

// An itemSample is a random sample of the items that pass by.
type itemSample struct {
	modalities []Modality
	place      func(i int) int
	n          int        // items so far that have a vector
	kept       []keptItem // by place; order puts them in order
	items      []int      // by modality: items so far that have it
}

// A keptItem is a copy of an item of the sample.
type keptItem struct {
	item    int // number among the items that have a vector
	vectors []Vector
}

// newItemSample returns an empty sample of at most size items.
func newItemSample(modalities []Modality, size int, rng *rand.Rand) *itemSample {
	return &itemSample{modalities: modalities, place: reservoir(rng, size), items: make([]int, len(modalities))}
}

// sampleSize returns how many items of these modalities a sample has at most.
func sampleSize(modalities []Modality) int {
	d := 0
	for _, m := range modalities {
		d += m.Dim
	}
	return min(sampleItems, max(sampleNumbers/d, leastSample))
}

// read adds the items of a source, and checks their vectors.
func (s *itemSample) read(ctx context.Context, src Source, progress func(stage string, done, total int64)) error {
	at := 0
	for ex, err := range src.Examples(ctx) {
		if err == nil {
			err = s.add(ex)
		}
		if err != nil {
			return fmt.Errorf("training item %d: %w", at, err)
		}
		if at++; at%blockItems == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			if progress != nil {
				progress("scan", int64(at), 0)
			}
		}
	}
	s.order()
	return ctx.Err()
}

// order puts the items in their order.
func (s *itemSample) order() {
	slices.SortFunc(s.kept, func(a, b keptItem) int { return cmp.Compare(a.item, b.item) })
}

// add offers an item, which it copies if it keeps it.
func (s *itemSample) add(ex Example) error {
	if len(ex.Vectors) != len(s.modalities) {
		return fmt.Errorf("%w: %d vectors, but there are %d modalities: give the zero Vector for what an item lacks", ErrMismatch, len(ex.Vectors), len(s.modalities))
	}
	has := false
	for t, x := range ex.Vectors {
		if !x.Present() {
			continue
		}
		if err := checkVector(s.modalities[t], x); err != nil {
			return err
		}
		has = true
		s.items[t]++
	}
	if !has {
		return nil
	}
	p := s.place(s.n)
	if p == len(s.kept) {
		s.kept = append(s.kept, keptItem{vectors: make([]Vector, len(s.modalities))})
	}
	if p >= 0 {
		k := &s.kept[p]
		k.item = s.n
		for t, x := range ex.Vectors {
			switch {
			case !x.Present():
				k.vectors[t] = Vector{}
			default:
				k.vectors[t].set(s.modalities[t], x)
			}
		}
	}
	s.n++
	return nil
}

// vectorsOf returns the vectors of modality t, and the items that they are of.
func vectorsOf(items [][]Vector, t int) (xs []Vector, of []int) {
	for i, vectors := range items {
		if vectors[t].Present() {
			xs, of = append(xs, vectors[t]), append(of, i)
		}
	}
	return xs, of
}

// featureMoments returns the moments of the features of vectors, which stay as they are.
func featureMoments(mod Modality, f *features, xs []Vector) *moments {
	m := newMoments(mod)
	block := make([]Vector, mapRows)
	for len(xs) > 0 {
		n := min(len(xs), mapRows)
		for i, x := range xs[:n] {
			block[i].set(mod, x)
			if f != nil {
				f.apply(block[i].Value, block[i])
			}
		}
		m.add(block[:n], workerCount())
		xs = xs[n:]
	}
	m.settle()
	return m
}

// centredRows returns a row for each item that has a modality of the group: the mean of its vectors of
// these modalities, each with its features and centred. of has the item of each row.
func (tr *freeTrainer) centredRows(group []int) (rows dense.Matrix[float32], of []int) {
	for i, vectors := range tr.items {
		if slices.ContainsFunc(group, func(t int) bool { return vectors[t].Present() }) {
			of = append(of, i)
		}
	}
	d := tr.modalities[group[0]].Dim
	rows = dense.Of(len(of), d, make([]float32, len(of)*d))
	chunks(workerCount(), len(of), mapRows, func(_, from, to int) {
		one := make([]float32, d)
		for r := from; r < to; r++ {
			row, n := rows.Data[r*d:(r+1)*d], 0
			for _, t := range group {
				x := tr.items[of[r]][t]
				if !x.Present() {
					continue
				}
				tr.maps[t].bounded(one, x)
				for j, v := range one {
					row[j] += v
				}
				n++
			}
			for j := range row {
				row[j] /= float32(n)
			}
		}
	})
	return rows, of
}
