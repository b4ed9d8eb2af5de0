package model

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
)

// An Engine has the items of a training in many places, and does the passes over them there.
// TrainOver calls its methods from one goroutine.
type Engine interface {
	// Survey says which items there are.
	Survey(ctx context.Context) (*Survey, error)

	// Sum returns the sum of a pass over all items, in binary form: the root of the tree that LeafItems
	// describes, from Pass.Sum and Pass.Merge.
	Sum(ctx context.Context, p *Pass) ([]byte, error)
}

// A Survey describes the items of a training. They have numbers from 0 on, those of a Source in the order of
// Examples.
type Survey struct {
	Items    int  // at most 2^31-1
	Labelled bool // they have labels, each of them; else labels do not matter

	// Has yields the items that have a vector of modality t, ascending. It is called a few times.
	Has func(t int) iter.Seq[int]
}

// TrainOver is Train with items that an engine has: the same items in the same order give the same Result to the
// last bit, but for Report.Seconds, and but for sparse vectors with more than 8,000 numbers each, of which Train
// may have kept another sample.
//
// It takes the memory that Train takes, less 4 bytes an item and all but one of the sums of the tree. Of the items
// it holds samples alone. It draws two random numbers for each item and modality.
//
// The methods joint and paper hold numbers for each item, from one sweep to the next: they are for Train.
func TrainOver(ctx context.Context, modalities []Modality, engine Engine, opt Options) (*Result, error) {
	result, err := trainOver(ctx, slices.Clone(modalities), engine, opt)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	return result, nil
}

func trainOver(ctx context.Context, modalities []Modality, engine Engine, opt Options) (*Result, error) {
	survey, err := engine.Survey(ctx)
	if err != nil {
		return nil, err
	}
	if survey.Items > math.MaxInt32 {
		return nil, fmt.Errorf("%w: training takes at most %d items", ErrOption, math.MaxInt32)
	}
	engine = surveyed{engine, survey}
	if opt.Method.LabelFree() && int(opt.Method) < len(methodNames) {
		return trainLabelFree(ctx, modalities, nil, engine, opt)
	}
	undecided := openSettings(opt, modalities)
	if opt, err = opt.withDefaults(modalities); err != nil {
		return nil, err
	}
	if opt.Method != MethodLabels {
		return nil, fmt.Errorf("%w: method %v holds numbers for each item from one sweep to the next, and the items are elsewhere: use the method labels, or train in one process", ErrOption, opt.Method)
	}
	if !survey.Labelled {
		return nil, errNoneHasLabels
	}
	from := seeded(opt.Seed, opt.Bits)
	from.open = undecided
	return train(ctx, modalities, nil, engine, opt, from)
}

// surveyed is an engine that has done its survey.
type surveyed struct {
	Engine
	survey *Survey
}

func (s surveyed) Survey(context.Context) (*Survey, error) { return s.survey, nil }

// sumElsewhere returns the sums of a pass that an engine does.
func sumElsewhere(ctx context.Context, engine Engine, p *Pass) (sums, error) {
	b, err := engine.Sum(ctx, p)
	if err != nil {
		return nil, err
	}
	return p.unmarshal(b)
}

// scanElsewhere lets the engine read the items for scan. Which vectors a sample keeps does not depend on them:
// the engine is asked for these alone.
func (tr *trainer) scanElsewhere(ctx context.Context) error {
	survey, err := tr.engine.Survey(ctx)
	if err != nil {
		return err
	}
	p := tr.newPass(passScan)
	p.limit = tr.mostLabels()
	var anchors, choices [][]int // by modality and place: the item to keep there
	for t := range p.modalities {
		has := survey.Has(t)
		var a, c []int
		if s := tr.samples[t]; s != nil {
			a = s.draw(has)
		}
		if s := tr.choices[t]; s != nil {
			c = s.draw(has)
		}
		anchors, choices = append(anchors, a), append(choices, c)
		p.wanted = append(p.wanted, wantedItems(a, c))
	}
	s, err := sumElsewhere(ctx, tr.engine, p)
	if err != nil {
		return err
	}
	scan := s.(*scanSums)
	if scan.sets.n != survey.Items {
		return fmt.Errorf("%w: the engine has found %d items, and summed up %d", ErrMismatch, survey.Items, scan.sets.n)
	}
	tr.moments = scan.moments.of
	known := map[int]uint32{} // sets of sampled items
	for t, found := range scan.wanted.found {
		if err := checkFound(p.wanted[t], found); err != nil {
			return err
		}
		for _, v := range found {
			known[int(v.item)] = scan.sets.set(v.labels)
		}
		if s := tr.samples[t]; s != nil {
			s.fill(anchors[t], found)
		}
		if s := tr.choices[t]; s != nil {
			s.fill(choices[t], found)
			s.bound()
		}
	}
	if tr.sets, tr.hy, err = scan.sets.finish(); err != nil {
		return err
	}
	tr.sets.setOf = func(item int) uint32 { return known[item] }
	return nil
}

// draw does what add does with vectors that are not there: has yields their items. It returns for each place the
// item whose vector is to be kept there.
func (s *sample) draw(has iter.Seq[int]) (items []int) {
	for item := range has {
		p := s.place(s.n)
		if p == len(items) {
			items = append(items, 0)
			s.kept = append(s.kept, sampled{})
		}
		if p >= 0 {
			items[p], s.kept[p].item = item, s.n
		}
		s.n++
	}
	return items
}

// draw is draw of a sample, for a sample whose places follow from the items.
func (s *choiceSample) draw(has iter.Seq[int]) []int {
	return s.sample.draw(func(yield func(int) bool) {
		for item := range has {
			s.next = item
			if !yield(item) {
				return
			}
		}
	})
}

// fill copies the vectors of items, which draw has returned, from what was found.
func (s *sample) fill(items []int, found []wantedVector) {
	for p, item := range items {
		i, _ := slices.BinarySearchFunc(found, uint32(item), compareWanted)
		x := found[i].x
		s.kept[p].x.set(Modality{Dim: len(x.Value), Sparse: x.IsSparse()}, x)
	}
}

func compareWanted(v wantedVector, item uint32) int {
	switch {
	case v.item < item:
		return -1
	case v.item > item:
		return 1
	}
	return 0
}

// wantedItems returns the items of lists, ascending, each once.
func wantedItems(lists ...[]int) (items []uint32) {
	for _, list := range lists {
		for _, item := range list {
			items = append(items, uint32(item))
		}
	}
	slices.Sort(items)
	return slices.Compact(items)
}

// checkFound refuses vectors that are not of the wanted items.
func checkFound(wanted []uint32, found []wantedVector) error {
	if !slices.EqualFunc(found, wanted, func(v wantedVector, item uint32) bool { return v.item == item }) {
		return fmt.Errorf("%w: the engine was asked for the vectors of %d items, and has %d, or those of others", ErrMismatch, len(wanted), len(found))
	}
	return nil
}

// readElsewhere lets the engine read the items of the sample.
func (s *itemSample) readElsewhere(ctx context.Context, engine Engine, seed uint64) error {
	survey, err := engine.Survey(ctx)
	if err != nil {
		return err
	}
	var items []int // by place
	next := make([]func() (int, bool), len(s.modalities))
	at := make([]int, len(s.modalities)) // by modality: its next item
	for t := range next {
		pull, stop := iter.Pull(survey.Has(t))
		defer stop()
		next[t] = pull
		at[t] = following(next[t])
	}
	for {
		item := slices.Min(at)
		if item == math.MaxInt {
			break
		}
		place := s.place(s.n)
		if place == len(s.kept) {
			s.kept, items = append(s.kept, keptItem{vectors: make([]Vector, len(s.modalities))}), append(items, 0)
		}
		if place >= 0 {
			s.kept[place].item, items[place] = s.n, item
		}
		for t := range at {
			if at[t] == item {
				s.items[t]++
				at[t] = following(next[t])
			}
		}
		s.n++
	}
	p := &Pass{kind: passSample, modalities: s.modalities, seed: seed}
	for t := range s.modalities {
		all := wantedItems(items)
		p.wanted = append(p.wanted, intersection(all, survey.Has(t)))
	}
	sum, err := sumElsewhere(ctx, engine, p)
	if err != nil {
		return err
	}
	for t, found := range sum.(*wantedSums).found {
		if err := checkFound(p.wanted[t], found); err != nil {
			return err
		}
		for place, item := range items {
			if i, ok := slices.BinarySearchFunc(found, uint32(item), compareWanted); ok {
				s.kept[place].vectors[t] = found[i].x
			}
		}
	}
	s.order()
	return nil
}

// following returns the next item, math.MaxInt after the last one.
func following(next func() (int, bool)) int {
	if item, ok := next(); ok {
		return item
	}
	return math.MaxInt
}

// intersection returns those of items that seq yields, too. Both ascend.
func intersection(items []uint32, seq iter.Seq[int]) (both []uint32) {
	for item := range seq {
		for len(items) > 0 && items[0] < uint32(item) {
			items = items[1:]
		}
		if len(items) == 0 {
			break
		}
		if items[0] == uint32(item) {
			both = append(both, items[0])
		}
	}
	return both
}
