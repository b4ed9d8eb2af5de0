package model

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// MinHeld is the least number of held items with which a Guard adopts anything. It
// counts the items that share a label with another held item.
const MinHeld = 50

// A Guard decides whether items without labels should teach an Online. It lets them
// teach a copy, and measures the retrieval of labelled items that it holds back.
// Without a Guard such an update may well lose, as a projection also teaches its own
// errors. If the Verdict says Adopt, let the Online itself Learn the same items.
//
// A Guard may refuse an update that would gain. That happens if the gain is about as
// small as the error of so few held items. It also happens if held items have taught
// before, there are about as many features as labelled items, and gamma is small:
// projections without the held items then differ from those with them. So hold back
// items that have not taught yet, if there are any. Many items tell more than few: let
// refused items wait, and try them again with those that follow.
//
// One goroutine at a time may use a Guard. Once made it is independent of the Online.
// It takes the memory of another Online and, for each held item, 4 q bytes and 5 codes
// a modality.
type Guard struct {
	online *Online   // the copy that learns
	held   []Example // the held items that are measured
	rows   among
	has    [][]bool  // by modality and held item: whether it has the modality
	labels []uint64  // codes of their labels
	before heldCodes // codes before the copy has learned anything
	lead   int       // see Lead
}

// heldCodes are the codes that projections give the held items.
type heldCodes struct {
	queries [][]uint64 // by modality: as queries
	stored  []uint64   // as they would be stored without labels
}

// A Verdict says whether an update from items without labels is worth adopting. It
// compares the mean average precision, expected over ties, of held items as queries
// among the other held items.
//
// There is a ranking for each ordered pair of modalities and each of three databases,
// all with equal weight. In the first database held items have the codes of their
// labels. In the second they have the codes that projections from before the update
// give them without labels, as stored items have. In the third they have such codes
// from the projections under test, as later items will have.
type Verdict struct {
	Adopt bool
	Lead  int // position of the modality that taught
	Held  int // number of held items that were measured
	// By querying modality: the mean over databases and searched modalities, without
	// and with the update. Both are 0 if nothing could be measured.
	Before, After []float64
	Gain, StdErr  float64 // mean gain over the ordered pairs, and its standard error over items
	Reason        string  // why it is adopted or not, in words
}

// Guard returns a Guard for updates of o from items without labels.
//
// held are labelled items to judge by: tens, better hundreds, that represent the items
// to come. lessons are parallel to held: what each of them has taught o, which the
// Guard forgets; empty for an item that has taught nothing. Held items whose labels are
// unknown to the model are forgotten but not measured. The Guard keeps the slices of
// the items, so the caller must not change them.
//
// It costs k^3/3 + q k^2 multiplications a modality, the cost of Forget, the
// projections of the held items, and n^2 distances a modality for n held items, bounded
// as in Verdict. The error is one of Forget or a *SingularError. o learns and forgets
// nothing.
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

// clone returns a copy that shares only what never changes.
func (o *Online) clone() *Online {
	c := *o
	c.stats = o.Statistics().Clone()
	c.parts = slices.Clone(o.parts)
	for t := range c.parts {
		p := &c.parts[t]
		p.factor.Data, p.w = slices.Clone(p.factor.Data), slices.Clone(p.w)
		p.phi, p.waiting = nil, teaching{}
	}
	return &c
}

// Lead returns the modality that teaches: the one whose projections find the codes of
// the held items' labels best, without having learned from the held items.
func (g *Guard) Lead() int { return g.lead }

// Learn lets items be taught by Lead, as Online.Learn does with TeacherModality, at its
// cost and with its errors. Labelled items teach by their labels. It may be called
// often.
func (g *Guard) Learn(ctx context.Context, items []Example) error {
	_, err := g.online.Learn(ctx, items, TeacherModality, g.lead)
	return err
}

// Verdict judges what the Guard has learned. It adopts an update with MinHeld items or
// more if the gain is larger than its standard error and no querying modality loses
// more than its own standard error. It costs a Revision, the projections of the held
// items, and 5 n^2 distances for each ordered pair of modalities, but at most 2^28 in
// all, about a second of one core; beyond that not all items are queries. The error is
// a *SingularError.
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

// hold keeps the held items that have known labels.
func (g *Guard) hold(held []Example) {
	m := g.online.model
	var sets [][]int32
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
			set = uint32(len(sets))
			numbers[key] = set
			sets = append(sets, columns)
		}
		setOf = append(setOf, set)
		g.held, g.labels = append(g.held, item), append(g.labels, code...)
	}
	g.rows = among{q: m.bits, words: codec.Words(m.bits), mean: m.mean, harmonic: harmonicNumbers(len(g.held))}
	g.rows.set, _, g.rows.relevant = relevantSets(setOf, sets, len(m.labels))
	for t := range m.maps {
		has := make([]bool, len(g.held))
		for i, item := range g.held {
			has[i] = item.Vectors[t].Present()
		}
		g.has = append(g.has, has)
	}
}

// encode returns the codes that a model gives the held items.
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
	codes.stored = made(m.fusion)
	return codes, nil
}

// project returns the projections of the held items with modality t, q numbers a row.
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

// explain decides and gives the reason. worst is the modality with the largest loss of
// those that lose more than their standard error, or -1.
func (v *Verdict) explain(modalities []Modality, worst int, loss, stderr float64) {
	switch name := modalities[v.Lead].Name; {
	case v.Held < MinHeld:
		v.Reason = fmt.Sprintf("%d labelled items could be measured, and it takes %d: it needs more of them", v.Held, MinHeld)
	case !(v.Gain > v.StdErr):
		v.Reason = fmt.Sprintf("if %s taught them, labelled items that are held back would be found with %+.3f mAP, standard error %.3f: no clear gain", name, v.Gain, v.StdErr)
	case worst >= 0:
		v.Reason = fmt.Sprintf("if %s taught them, labelled items that are held back would be found with %+.3f mAP by %s, standard error %.3f: a loss", name, loss, modalities[worst].Name, stderr)
	default:
		v.Adopt = true
		v.Reason = fmt.Sprintf("taught by %s, labelled items that are held back are found with %+.3f mAP, standard error %.3f", name, v.Gain, v.StdErr)
	}
}
