package record

import (
	"maps"
	"slices"

	"github.com/fddhdb/fddhdb/db/fault"
)

// A Metric says how the vectors of a modality are compared where nothing is trained. Only the
// descriptor is stored with it: nothing else depends on it but answers.
type Metric string

// Metrics, as users give them. Descriptors store Cosine as "", so that there is one form of it.
const (
	Cosine Metric = "cosine"
	Dot    Metric = "dot" // the inner product
	L2     Metric = "l2"  // the Euclidean distance
)

// Or returns the metric, Cosine for "".
func (m Metric) Or() Metric {
	if m == "" {
		return Cosine
	}
	return m
}

// stored returns the metric as descriptors have it.
func (m Metric) stored() Metric {
	if m == Cosine {
		return ""
	}
	return m
}

func (m Metric) check(modality string) error {
	switch m.Or() {
	case Cosine, Dot, L2:
		return nil
	}
	return fault.Invalid("modality %q: unknown metric %q: cosine, dot and l2 are possible", Shortened(modality), Shortened(string(m)))
}

// Modalities share a space if their vectors can be compared with each other, as those that one
// encoder makes of pictures and of texts. That is an equivalence: each modality is in one space,
// alone or with others. In a descriptor the SpaceOf of all but the first modality of a space names
// the first, which has none. So there is one way to store a space, however it was declared.

// Sharing returns the positions of the modalities that share the space of modality t, ascending, t
// among them.
func (d *Descriptor) Sharing(t int) (all []int) {
	first := d.first(t)
	for i := range d.Modalities {
		if d.first(i) == first {
			all = append(all, i)
		}
	}
	return all
}

// first returns the position of the first modality of the space of modality t.
func (d *Descriptor) first(t int) int {
	if of := d.Modalities[t].SpaceOf; of != "" {
		return slices.IndexFunc(d.Modalities, func(m Modality) bool { return m.Name == of })
	}
	return t
}

// A Respacing changes spaces and metrics of modalities, both by name.
type Respacing struct {
	SpaceOf map[string]string // a modality of the space that the named one joins, with all that share its space; "": it leaves its space
	Metrics map[string]Metric // of the named one and of all that share its space then
}

// Settle brings the spaces and metrics of the modalities into the form in which they are stored,
// and sets Version to go with them. A SpaceOf may name any other modality of the space, and one
// metric is enough for a space. What contradicts itself is an ErrInvalid.
func (d *Descriptor) Settle() error { return d.settle(0, Respacing{}) }

// settle is Settle where the first modalities, so many as stored says, are in this form already, and
// change. It makes a new slice of modalities.
func (d *Descriptor) settle(stored int, change Respacing) error {
	all := slices.Clone(d.Modalities)
	space, err := d.spaces(change.SpaceOf)
	if err != nil {
		return err
	}
	given := map[int]string{} // by space: the name of a modality for which a metric is given
	for _, name := range slices.Sorted(maps.Keys(change.Metrics)) {
		t, err := d.ModalityOf(name)
		if err != nil {
			return err
		}
		if other, is := given[space[t]]; is && change.Metrics[other].stored() != change.Metrics[name].stored() {
			return metricsDiffer(name, change.Metrics[name], other, change.Metrics[other])
		}
		given[space[t]] = name
	}
	for first := range all {
		if slices.Index(space, space[first]) != first {
			continue // it has been seen with the first of its space
		}
		metric, from := Metric(""), first // the metric, and the modality that gives it
		name, changes := given[space[first]]
		if changes {
			metric = change.Metrics[name].Or()
			if from, err = d.ModalityOf(name); err != nil {
				return err
			}
		}
		for t := first; t < len(all); t++ {
			m := &all[t]
			if space[t] != space[first] {
				continue
			}
			if a := all[first]; a.Dim != m.Dim || a.Sparse != m.Sparse {
				return fault.Invalid("modality %q is %s, and %q is %s: they cannot share a space", Shortened(m.Name), spellForm(*m), Shortened(a.Name), spellForm(a))
			}
			own := m.Metric
			if t < stored {
				own = own.Or()
			}
			switch {
			case own == "" || changes && t < stored:
			case metric == "":
				metric, from = own, t
			case own != metric:
				return metricsDiffer(m.Name, own, all[from].Name, metric)
			}
		}
		if err := metric.check(all[from].Name); err != nil {
			return err
		}
		for t := first; t < len(all); t++ {
			if space[t] != space[first] {
				continue
			}
			all[t].Metric, all[t].SpaceOf = metric.stored(), ""
			if t > first {
				all[t].SpaceOf = all[first].Name
			}
		}
	}
	d.Modalities = all
	d.Version = d.version()
	return nil
}

// spaces returns a number for the space of each modality: as the modalities say, and then as change
// has it.
func (d *Descriptor) spaces(change map[string]string) ([]int, error) {
	space := make([]int, len(d.Modalities))
	for t := range space {
		space[t] = t
	}
	join := func(t int, of string) error {
		name := d.Modalities[t].Name
		other, err := d.ModalityOf(of)
		switch {
		case err != nil:
			return fault.Invalid("the space of modality %q: there is no modality %q: collection %q has %s", Shortened(name), Shortened(of), d.Name, Names(d.Modalities))
		case other == t:
			return fault.Invalid("the space of modality %q: it names itself: name another modality, whose vectors are compared with its own", Shortened(name))
		}
		from, to := space[t], space[other]
		for i := range space {
			if space[i] == from {
				space[i] = to
			}
		}
		return nil
	}
	for t, m := range d.Modalities {
		if m.SpaceOf != "" {
			if err := join(t, m.SpaceOf); err != nil {
				return nil, err
			}
		}
	}
	names := slices.Sorted(maps.Keys(change))
	for _, name := range names { // first, so that an alteration can take a modality from one space to another
		t, err := d.ModalityOf(name)
		if err != nil {
			return nil, err
		}
		if change[name] == "" {
			space[t] = len(space) + t
		}
	}
	for _, name := range names {
		if t, err := d.ModalityOf(name); err == nil && change[name] != "" {
			if err := join(t, change[name]); err != nil {
				return nil, err
			}
		}
	}
	return space, nil
}

func metricsDiffer(a string, of Metric, b string, ofB Metric) error {
	return fault.Invalid("modality %q has the metric %s, and %q, which shares its space, %s: a space has one metric", Shortened(a), of.Or(), Shortened(b), ofB.Or())
}
