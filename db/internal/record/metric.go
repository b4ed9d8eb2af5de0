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

// OrCosine returns the metric, Cosine for "".
func (m Metric) OrCosine() Metric {
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
	switch m.OrCosine() {
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
	for i := range d.Modalities {
		if d.Modalities[i].space() == d.Modalities[t].space() {
			all = append(all, i)
		}
	}
	return all
}

// space returns the name of the first modality of the space of a modality that is stored so.
func (m *Modality) space() string {
	if m.SpaceOf != "" {
		return m.SpaceOf
	}
	return m.Name
}

// A Respacing changes spaces and metrics of modalities, both by name.
type Respacing struct {
	SpaceOf map[string]string // a modality of the space that the named one joins, with all that share its space; "": it leaves its space
	Metrics map[string]Metric // of the named one and of all that share its space then
}

// Settle brings the spaces and metrics of the modalities into the form in which they are stored.
// A SpaceOf may name any other modality of the space, and one
// metric is enough for a space. What contradicts itself is an ErrInvalid.
func (d *Descriptor) Settle() error { return d.settle(0, Respacing{}) }

// settle is Settle where the first modalities, so many as stored says, are in this form already, and
// change. It makes a new slice of modalities.
func (d *Descriptor) settle(stored int, change Respacing) error {
	space, err := d.spaces(change.SpaceOf)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(change.Metrics)) {
		if _, err := d.ModalityOf(name); err != nil {
			return err
		}
	}
	members := map[int][]int{} // of each space, ascending
	for t, n := range space {
		members[n] = append(members[n], t)
	}
	all := slices.Clone(d.Modalities)
	for t, n := range space {
		if t != members[n][0] {
			continue // it goes with the first of its space
		}
		metric, err := d.metricOf(members[n], stored, change.Metrics)
		if err != nil {
			return err
		}
		for i, t := range members[n] {
			all[t].Metric, all[t].SpaceOf = metric.stored(), ""
			if i > 0 {
				all[t].SpaceOf = all[members[n][0]].Name
			}
		}
	}
	d.Modalities = all
	return nil
}

// metricOf returns the metric of a space with these members: the one that change gives for any of
// them, else the one that they have. The stored ones do not contradict change, as they follow it.
func (d *Descriptor) metricOf(members []int, stored int, change map[string]Metric) (Metric, error) {
	metric, from := Metric(""), "" // and the name of the modality that gives it
	agree := func(name string, other Metric) error {
		switch {
		case metric == "":
			metric, from = other, name
			return other.check(name)
		case other != metric:
			return fault.Invalid("modality %q has the metric %s, and %q, which shares its space, %s: a space has one metric",
				Shortened(name), Shortened(string(other)), Shortened(from), metric)
		}
		return nil
	}
	first := d.Modalities[members[0]]
	for _, t := range members {
		m := d.Modalities[t]
		if m.Dim != first.Dim || m.Sparse != first.Sparse {
			return "", fault.Invalid("modality %q is %s, and %q is %s: they cannot share a space", m.Name, spellForm(m), first.Name, spellForm(first))
		}
		if given, changes := change[m.Name]; changes {
			if err := agree(m.Name, given.OrCosine()); err != nil {
				return "", err
			}
		}
	}
	changes := metric != ""
	for _, t := range members {
		own := d.Modalities[t].Metric
		if t < stored {
			if changes {
				continue
			}
			own = own.OrCosine()
		}
		if own != "" {
			if err := agree(d.Modalities[t].Name, own); err != nil {
				return "", err
			}
		}
	}
	return metric, nil
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
