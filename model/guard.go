package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// MinHeld is how many held items it takes at least for a Guard to adopt anything: so
// many that ask for others with which they have a label in common.
const MinHeld = 50

// A Guard tries what items without labels would teach, on a copy of an Online, and
// says whether retrieval of labelled items that it holds back is better for it.
// Without that, such an update may well lose: what a projection teaches is its own
// errors, too. Once a Verdict says so, Learn the same items with the Online itself.
//
// It may refuse what would gain: where gains are about as small as what so many held
// items can tell, and, of held items that have taught, where there are about as many
// features as labelled items and gamma is small, because projections without them are
// then not what they are with them. So hold back items that have not taught yet, if there
// are any. Many items tell more than few: let those that were refused wait, and try them
// again with those that follow.
//
// It is for one goroutine at a time, and independent of the Online from when it has
// been made. It takes the memory of another Online and, for each held item, 4 q bytes
// and 5 codes a modality.
type Guard struct {
	online *Online
	held   []Example // those that are measured
	rows   among
	has    [][]bool // by modality and held item
	labels []uint64 // the codes of their labels
	before heldCodes
	lead   int
}

// heldCodes are the codes that projections give to the held items.
type heldCodes struct {
	queries [][]uint64 // by modality
	stored  [][]uint64 // by view: what they would be stored as if they had no labels
}

// A Verdict says whether an update from items without labels is worth adopting, by
// the mean average precision, expected over ties, of held items as queries among the
// others.
//
// There is one ranking for each ordered pair of modalities, and three databases, of
// equal weight: the codes of the held items' labels; the codes that they had without
// labels by the projections from before the update, as items have that are stored
// already; and those by the projections that ask, as items will have that come later.
type Verdict struct {
	Adopt bool
	Lead  int // the modality that taught
	Held  int // held items that were measured
	// By modality that asks, the mean over databases and modalities that are asked for,
	// without and with the update; both 0 where nothing could be measured.
	Before, After []float64
	Gain, StdErr  float64 // mean gain over the ordered pairs, and its standard error over items
	Reason        string  // why it is adopted or not, in words
}

// Guard returns a Guard for updates of o from items without labels. held are labelled
// items to judge by, some tens or better some hundreds, that represent what there will
// be; lessons, parallel to them, are what they have taught, for the Guard to forget, and
// empty for those that have taught nothing. Held items whose labels the model does not
// know are forgotten, but not measured. The Guard keeps the slices of the items: leave
// them as they are.
//
// It costs k^3/3 + q k^2 multiplications a modality, what Forget costs, the projections
// of the held items, and n^2 distances a modality for n of them (as bounded as Verdict). The error is one of
// Forget or a *SingularError; o learns and forgets nothing.
func (o *Online) Guard(ctx context.Context, held []Example, lessons []Lesson) (g *Guard, err error) {
	defer guard(&err, "making a guard")
	g = &Guard{online: o.clone()}
	for _, item := range held {
		if err := o.model.checkVectors(item); err != nil {
			return nil, err
		}
		for t, x := range item.Vectors {
			if !x.Present() {
				continue
			}
			if err := o.model.checkInput(t, x); err != nil {
				return nil, err
			}
		}
	}
	if err := g.online.Forget(ctx, held, lessons); err != nil {
		return nil, err
	}
	m, err := g.online.Revision()
	if err != nil {
		return nil, err
	}
	g.hold(held)
	if g.before, err = g.encode(m); err != nil {
		return nil, err
	}
	if g.lead, err = g.stronger(ctx); err != nil {
		return nil, err
	}
	return g, nil
}

// clone returns a copy that shares nothing that changes.
func (o *Online) clone() *Online {
	c := *o
	c.stats = o.Statistics().Clone()
	c.parts = slices.Clone(o.parts)
	for t := range c.parts {
		p := &c.parts[t]
		p.factor.Data, p.p = slices.Clone(p.factor.Data), slices.Clone(p.p)
		p.phi, p.h = nil, nil
	}
	return &c
}

// Lead returns the modality that teaches: the one whose projections, which have not
// learned from the held items, find the codes of their labels best.
func (g *Guard) Lead() int { return g.lead }

// Learn has items taught by Lead, as Online.Learn does with TeacherModality, at its cost
// and with its errors; labelled items teach by their labels. It may be called often.
func (g *Guard) Learn(ctx context.Context, items []Example) error {
	_, err := g.online.Learn(ctx, items, TeacherModality, g.lead)
	return err
}

// Verdict judges what the Guard has learned. An update is adopted if the gain is more
// than its standard error and no modality that asks loses more than its own, with
// MinHeld items or more. It costs a Revision, the projections of the held items, and 5
// n^2 distances for each ordered pair of modalities, but at most 2^28 in all, about a
// second of one core: beyond that not all items ask. The error is a *SingularError.
func (g *Guard) Verdict() (v Verdict, err error) {
	defer guard(&err, "judging an update")
	m, err := g.online.Revision()
	if err != nil {
		return v, err
	}
	after, err := g.encode(m)
	if err != nil {
		return v, err
	}
	return g.judge(after), nil
}

// hold takes the held items that have known labels.
func (g *Guard) hold(held []Example) {
	m := g.online.model
	all := &labelSets{labels: m.labels}
	numbers := map[string]uint32{}
	var setOf []uint32
	code := codec.NewCode(m.bits)
	for _, item := range held {
		if !m.LabelCode(code, item.Labels) {
			continue
		}
		columns := appendKnown(nil, m.labels, item.Labels)
		key := fmt.Sprint(columns)
		set, ok := numbers[key]
		if !ok {
			set = uint32(len(all.sets))
			numbers[key] = set
			all.sets = append(all.sets, columns)
		}
		setOf = append(setOf, set)
		g.held, g.labels = append(g.held, item), append(g.labels, code...)
	}
	g.rows = among{q: m.bits, words: codec.Words(m.bits), mean: m.mean, harmonic: harmonicNumbers(len(g.held))}
	g.rows.set, _, g.rows.relevant = relevantSets(setOf, all)
	for t := range m.maps {
		has := make([]bool, len(g.held))
		for i, item := range g.held {
			has[i] = item.Vectors[t].Present()
		}
		g.has = append(g.has, has)
	}
}

// encode returns the codes that the model gives to the held items.
func (g *Guard) encode(m *Model) (codes heldCodes, err error) {
	scratch := g.rows.scratch(g.online.workers())
	T, n, q := len(m.maps), len(g.held), m.bits
	z := make([][]float32, T)
	for t := range z {
		if z[t], err = g.project(m, t); err != nil {
			return codes, err
		}
	}
	made := func(how fusion) []uint64 {
		c := make([]uint64, n*codec.Words(q))
		g.rows.encode(c, how, z, g.has, scratch)
		return c
	}
	for t := range T {
		alone := fusion{weights: make([]float64, T)}
		alone.weights[t] = 1
		codes.queries = append(codes.queries, made(alone))
	}
	for _, how := range m.fusions {
		codes.stored = append(codes.stored, made(how))
	}
	return codes, nil
}

// project returns the projections of the held items that have modality t, q numbers a
// row.
func (g *Guard) project(m *Model, t int) ([]float32, error) {
	q, workers := m.bits, g.online.workers()
	var at []int
	var xs []Vector
	for i, has := range g.has[t] {
		if has {
			at, xs = append(at, i), append(xs, g.held[i].Vectors[t])
		}
	}
	z := make([]float32, len(g.held)*q)
	encoders, errs := make([]*Encoder, workers), make([]error, workers)
	chunks(workers, len(xs), mapRows, func(worker, from, to int) {
		if encoders[worker] == nil {
			encoders[worker] = m.NewEncoder()
		}
		rows := make([]float64, (to-from)*q)
		if err := encoders[worker].ProjectVectors(rows, t, xs[from:to]); err != nil {
			errs[worker] = err
			return
		}
		for r, i := range at[from:to] {
			for j, v := range rows[r*q : (r+1)*q] {
				z[i*q+j] = float32(v)
			}
		}
	})
	return z, errors.Join(errs...)
}

// explain decides. worst is the modality that loses most of those that lose more than
// the standard error of that, or -1.
func (v *Verdict) explain(modalities []Modality, worst int, loss, stderr float64) {
	switch name := modalities[v.Lead].Name; {
	case v.Held < MinHeld:
		v.Reason = fmt.Sprintf("%d labelled items could be measured, and it takes %d: hold back more", v.Held, MinHeld)
	case !(v.Gain > v.StdErr):
		v.Reason = fmt.Sprintf("if %s taught them, labelled items that are held back would be found with %+.3f mAP, standard error %.3f: no clear gain", name, v.Gain, v.StdErr)
	case worst >= 0:
		v.Reason = fmt.Sprintf("if %s taught them, labelled items that are held back would be found with %+.3f mAP by %s, standard error %.3f: a loss", name, loss, modalities[worst].Name, stderr)
	default:
		v.Adopt = true
		v.Reason = fmt.Sprintf("taught by %s, labelled items that are held back are found with %+.3f mAP, standard error %.3f", name, v.Gain, v.StdErr)
	}
}
