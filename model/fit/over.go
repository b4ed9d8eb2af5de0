package fit

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/model"
	"github.com/fddhdb/fddhdb/model/internal/parallel"
	"github.com/fddhdb/fddhdb/model/sum"
)

// TrainOver is Train with the items of an engine: the same items in the same order give the same Result to
// the last bit. Exceptions are Report.Seconds, and sparse vectors with more than 8,000 numbers each, of which
// Train may have kept another sample.
//
// It takes the memory of Train, less 4 bytes an item and all but one of the sums of the tree. It holds only
// samples of the items. It draws two random numbers for each item and modality.
//
// The methods joint and paper hold numbers for each item, from one sweep to the next: they are for Train.
func TrainOver(ctx context.Context, modalities []model.Modality, engine sum.Engine,
	opt Options) (*Result, error) {
	result, err := trainOver(ctx, slices.Clone(modalities), engine, opt)
	if err != nil {
		return nil, fmt.Errorf("training: %w", err)
	}
	return result, nil
}

func trainOver(ctx context.Context, modalities []model.Modality, engine sum.Engine,
	opt Options) (*Result, error) {
	survey, err := engine.Survey(ctx)
	if err != nil {
		return nil, err
	}
	if survey.Items > math.MaxInt32 {
		return nil, fmt.Errorf("%w: training takes at most %d items", model.ErrOption, math.MaxInt32)
	}
	engine = surveyed{engine, survey}
	if opt.Method.LabelFree() && opt.Method <= model.MethodCCAITQ {
		return trainLabelFree(ctx, modalities, nil, engine, opt)
	}
	opt, from, err := begin(opt, modalities)
	if err != nil {
		return nil, err
	}
	if opt.Method != model.MethodLabels {
		return nil, fmt.Errorf("%w: method %v holds numbers for each item from one sweep to the next, and the items are elsewhere: use the method labels, or train in one process", model.ErrOption, opt.Method)
	}
	if !survey.Labelled {
		return nil, errNoneHasLabels
	}
	return train(ctx, modalities, nil, engine, opt, from)
}

// surveyed is an engine that has done its survey.
type surveyed struct {
	sum.Engine
	survey *sum.Survey
}

func (s surveyed) Survey(context.Context) (*sum.Survey, error) { return s.survey, nil }

// scanElsewhere lets the engine read the items for scan. The choice of the vectors that a sample keeps does
// not depend on their contents, so the engine reads these alone.
func (tr *trainer) scanElsewhere(ctx context.Context, anchors []*sample,
	samples []*choiceSample) (*labelSets, []float64, []*model.Moments, error) {
	survey, err := tr.reader.Engine.Survey(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	var wanted [][]uint32
	var drawn, choices [][]int // by modality and place: the item to keep there
	for t := range tr.reader.Modalities {
		has := survey.Has(t)
		var a, c []int
		if s := anchors[t]; s != nil {
			a = s.draw(has)
		}
		if s := samples[t]; s != nil {
			c = s.draw(has)
		}
		drawn, choices = append(drawn, a), append(choices, c)
		wanted = append(wanted, wantedItems(a, c))
	}
	s, err := tr.reader.Sum(ctx, sum.ScanPass(tr.reader.Modalities, tr.opt.Bits, tr.opt.Seed, tr.mostLabels(),
		wanted), nil)
	if err != nil {
		return nil, nil, nil, err
	}
	scan := s.(*sum.ScanSums)
	if scan.Sets.Items != survey.Items {
		return nil, nil, nil, fmt.Errorf("%w: the engine has found %d items, and summed up %d",
			model.ErrMismatch, survey.Items, scan.Sets.Items)
	}
	known := map[int]uint32{} // sets of sampled items
	for t, found := range scan.Wanted.Found {
		if err := checkFound(wanted[t], found); err != nil {
			return nil, nil, nil, err
		}
		for _, v := range found {
			known[int(v.Item)] = scan.Sets.Set(v.Labels)
		}
		if s := anchors[t]; s != nil {
			s.fill(drawn[t], found)
		}
		if s := samples[t]; s != nil {
			s.fill(choices[t], found)
			s.bound()
		}
	}
	sets, hy, err := newLabelSets(scan.Sets)
	if err != nil {
		return nil, nil, nil, err
	}
	sets.setOf = func(item int) uint32 { return known[item] }
	return sets, hy, scan.Moments.Of, nil
}

// draw is add for vectors that are elsewhere: has yields their items. It returns for each place the item
// whose vector to keep there.
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

// fill copies the vectors of items, which draw has returned, from found.
func (s *sample) fill(items []int, found []sum.Wanted) {
	for p, item := range items {
		i, _ := slices.BinarySearchFunc(found, uint32(item), compareWanted)
		x := found[i].Vector
		s.kept[p].x.Set(model.Modality{Dim: len(x.Value), Sparse: x.IsSparse()}, x)
	}
}

func compareWanted(v sum.Wanted, item uint32) int {
	switch {
	case v.Item < item:
		return -1
	case v.Item > item:
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
func checkFound(wanted []uint32, found []sum.Wanted) error {
	if !slices.EqualFunc(found, wanted, func(v sum.Wanted, item uint32) bool { return v.Item == item }) {
		return fmt.Errorf("%w: the engine was asked for the vectors of %d items, and has %d, or those of others", model.ErrMismatch, len(wanted), len(found))
	}
	return nil
}

// readElsewhere lets the engine read the items of the sample.
func (s *itemSample) readElsewhere(ctx context.Context, engine sum.Engine, seed uint64) error {
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
			s.kept, items = append(s.kept, keptItem{vectors: make([]model.Vector, len(s.modalities))}),
				append(items, 0)
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
	var wanted [][]uint32
	for t := range s.modalities {
		wanted = append(wanted, intersection(wantedItems(items), survey.Has(t)))
	}
	all, err := (&sum.Reader{Engine: engine}).Sum(ctx, sum.SamplePass(s.modalities, seed, wanted), nil)
	if err != nil {
		return err
	}
	for t, found := range all.(*sum.WantedSums).Found {
		if err := checkFound(wanted[t], found); err != nil {
			return err
		}
		for place, item := range items {
			if i, ok := slices.BinarySearchFunc(found, uint32(item), compareWanted); ok {
				s.kept[place].vectors[t] = found[i].Vector
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

// intersection returns the items that seq yields, too. Both ascend.
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

// UpdateOver refits the projections of m to the labelled items of an engine, as they are now. It returns the
// new revision and its statistics, which cover exactly these items. The result equals an Online with
// TeacherLabels on the same items, up to rounding. It needs no record of earlier lessons, and costs one pass
// over all items. A modality without items keeps its projection.
//
// It calls Sum of the engine once. The items have their labels as the numbers that m knows them by. The
// engine leaves out items without a label that m knows: they teach nothing.
//
// Errors: one that wraps ErrMismatch if m was learned without labels, or by the methods joint or paper, whose
// statistics hold codes of the training; a *SingularError; the error of the engine.
func UpdateOver(ctx context.Context, m *model.Model,
	engine sum.Engine) (next *model.Model, s *model.Statistics, err error) {
	defer parallel.Guard(&err, "in an update")
	if m.Method() != model.MethodLabels {
		return nil, nil, fmt.Errorf("%w: method %v does not learn from labels alone: train again",
			model.ErrMismatch, m.Method())
	}
	all, err := (&sum.Reader{Engine: engine}).Sum(ctx, sum.StatisticsPass(m, nil), nil)
	if err != nil {
		return nil, nil, err
	}
	s = all.(*sum.StatisticsSums).Tally.Statistics
	o, err := model.NewOnline(m, s)
	if err != nil {
		return nil, nil, err
	}
	o.Refit()
	next, err = o.Revision()
	return next, s, err
}
