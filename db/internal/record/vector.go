package record

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/model"
)

// OfDense checks a vector that a user gives as one number for each dimension, and returns it
// in the form of the modality. The result aliases dense if the modality is dense too. A wrong
// length is a *fault.DimensionError, a number that is not finite an ErrInvalid.
func (m *Modality) OfDense(dense []float32) (model.Vector, error) {
	if err := m.checkDense(dense); err != nil {
		return model.Vector{}, err
	}
	if !m.Sparse {
		return model.Dense(dense), nil
	}
	v := model.Sparse(nil, nil)
	for j, x := range dense {
		if x != 0 {
			v.Index, v.Value = append(v.Index, uint32(j)), append(v.Value, x)
		}
	}
	return v, nil
}

// OfSparse checks a vector that a user gives by its numbers that are not 0, and returns it in
// the form of the modality. Zeros are left out. The result may alias index and value, if the
// modality is sparse too. Errors are ErrInvalid.
func (m *Modality) OfSparse(index []uint32, value []float32) (model.Vector, error) {
	if err := m.checkSparse(index, value); err != nil {
		return model.Vector{}, err
	}
	v := model.Sparse(index, value)
	if !m.Sparse {
		return model.Dense(Expand(v, m.Dim)), nil
	}
	if slices.Contains(v.Value, 0) {
		v = model.Sparse(nil, nil)
		for e, x := range value {
			if x != 0 {
				v.Index, v.Value = append(v.Index, index[e]), append(v.Value, x)
			}
		}
	}
	return v, nil
}

// checkDense checks the length of a vector and that its values are finite.
func (m *Modality) checkDense(x []float32) error {
	if len(x) != m.Dim {
		return &fault.DimensionError{Modality: m.Name, Got: len(x), Want: m.Dim}
	}
	for i, v := range x {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fault.Invalid("modality %q: dimension %d is %g", m.Name, i, f)
		}
	}
	return nil
}

// checkSparse checks that indices ascend within the dimensions, and that values are
// finite. There can be no more of them than dimensions.
func (m *Modality) checkSparse(index []uint32, value []float32) error {
	if len(index) != len(value) {
		return fault.Invalid("modality %q: a sparse vector of %d indices and %d values: there is one index for each value", m.Name, len(index), len(value))
	}
	for e, j := range index {
		switch f := float64(value[e]); {
		case int64(j) >= int64(m.Dim):
			return fault.Invalid("modality %q: a sparse vector has index %d, dimensions are 0 to %d", m.Name,
				j, m.Dim-1)
		case e > 0 && j <= index[e-1]:
			return fault.Invalid("modality %q: index %d of a sparse vector follows %d: indices ascend, each once", m.Name, j, index[e-1])
		case math.IsNaN(f) || math.IsInf(f, 0):
			return fault.Invalid("modality %q: dimension %d is %g", m.Name, j, f)
		}
	}
	return nil
}

// Expand returns a new slice with a number for each dimension of a sparse vector.
func Expand(v model.Vector, dim int) []float32 {
	x := make([]float32, dim)
	for e, j := range v.Index {
		x[j] = v.Value[e]
	}
	return x
}

// CloneVector returns a copy that shares no memory with v.
func CloneVector(v model.Vector) model.Vector {
	return model.Vector{Index: slices.Clone(v.Index), Value: slices.Clone(v.Value)}
}

// AppendVector appends the feature record of a vector, which has the form of its modality.
func AppendVector(dst []byte, v model.Vector) []byte {
	if v.IsSparse() {
		return codec.AppendSparseFeatures(dst, v.Index, v.Value)
	}
	return codec.AppendFeatures(dst, v.Value)
}

// DecodeVector reads the feature record of a vector of the modality into v. It reuses the slices of v if they
// are large enough, and keeps nothing of b. The error wraps codec.ErrCorrupt; v is then undefined.
func (m *Modality) DecodeVector(v *model.Vector, b []byte) (err error) {
	if m.Sparse {
		if v.Index == nil {
			*v = model.Sparse(nil, nil)
		}
		index, value, err := codec.AppendDecodedSparse(v.Index[:0], v.Value[:0], m.Dim, b)
		if err == nil {
			v.Index, v.Value = index, value
		}
		return err
	}
	if len(v.Value) != m.Dim {
		if len(b) < 4*m.Dim { // before allocating memory for missing numbers
			return fmt.Errorf("%w: features: %d bytes for %d dimensions", codec.ErrCorrupt, len(b), m.Dim)
		}
		v.Value = make([]float32, m.Dim)
	}
	return codec.DecodeFeatures(v.Value, b)
}

// FeatureReader reads the features of rows in ascending order, in one pass over the store.
// Vectors are decoded into buffers that are used again for each row, so a pass over a million
// items allocates a few vectors. It is for one goroutine. Close it.
type FeatureReader struct {
	collection uint32
	it         *pebble.Iterator // at the first feature record that has not been read
	valid      bool             // it stands at a record, and not at the end or after an error
	modalities []Modality
	buffers    []model.Vector // by modality: the one read last; Hand takes it out
}

// NewFeatureReader returns a reader that stands before row from. It keeps the modalities of d.
func NewFeatureReader(r pebble.Reader, d *Descriptor, from uint32) (*FeatureReader, error) {
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindFeatures, d.ID))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: codec.FeatureKey(d.ID, from, 0), UpperBound: end})
	if err != nil {
		return nil, fault.ReadError(err, "features")
	}
	return &FeatureReader{
		collection: d.ID, it: it, valid: it.First(),
		modalities: d.Modalities, buffers: make([]model.Vector, len(d.Modalities)),
	}, nil
}

// Close closes the iterator. Vectors that were handed over stay valid.
func (f *FeatureReader) Close() error { return f.it.Close() }

// Seek fills vectors, one for each modality of the collection, with the features of the row, or the zero
// Vector where the row lacks one. Rows have to ascend from call to call; the iterator skips rows in between
// by a seek. The vectors are valid until the next call, except the ones that Hand has given to the caller. A
// row without an item has no features, which is no error here.
func (f *FeatureReader) Seek(vectors []model.Vector, row uint32) error {
	if f.valid {
		if at, _ := codec.FeatureKeyParts(f.it.Key()); at < row {
			f.valid = f.it.SeekGE(codec.FeatureKey(f.collection, row, 0))
		}
	}
	return f.read(vectors, row)
}

// read is Seek for the next rows: it steps over records in between one by one.
func (f *FeatureReader) read(vectors []model.Vector, row uint32) error {
	clear(vectors)
	for ; f.valid; f.valid = f.it.Next() {
		if err := codec.CheckKey(f.it.Key()); err != nil {
			return fault.Corrupt(err, "key")
		}
		at, t := codec.FeatureKeyParts(f.it.Key())
		if at > row {
			break
		}
		if at < row {
			continue
		}
		value, err := f.it.ValueAndErr()
		if err != nil {
			return fault.ReadError(err, "features %d of row %d", t, row)
		}
		if int(t) >= len(vectors) {
			return fault.Corrupt(fmt.Errorf("modality %d of %d", t, len(vectors)), "features of row %d", row)
		}
		if err := f.modalities[t].DecodeVector(&f.buffers[t], value); err != nil {
			return fault.Corrupt(err, "features %d of row %d", t, row)
		}
		vectors[t] = f.buffers[t]
	}
	return fault.ReadError(f.it.Error(), "features of row %d", row)
}

// Hand gives the last vector of modality t to the caller: the next row gets another buffer.
func (f *FeatureReader) Hand(t int) { f.buffers[t] = model.Vector{} }

// ForEachItem calls f with every item from row from on, in order of rows, in one pass over
// item records and features side by side. vectors has one for each modality of the collection,
// the zero Vector where the item lacks it, and is valid until f returns. rec is f's own.
func ForEachItem(r pebble.Reader, d *Descriptor, from uint32,
	f func(row uint32, rec *codec.ItemRecord, vectors []model.Vector) error) error {
	features, err := NewFeatureReader(r, d, from)
	if err != nil {
		return err
	}
	defer features.Close()
	vectors := make([]model.Vector, len(d.Modalities))
	end := codec.PrefixEnd(codec.CollectionKey(codec.KindItem, d.ID))
	return ForEachIn(r, codec.NumberKey(codec.KindItem, d.ID, from), end, func(key, value []byte) error {
		row := codec.LastNumber(key)
		rec, err := codec.DecodeItemRecord(value)
		if err != nil {
			return fault.Corrupt(err, "item in row %d", row)
		}
		if err := features.read(vectors, row); err != nil {
			return err
		}
		return f(row, rec, vectors)
	})
}

// A Metric is the way to compare the vectors of a modality where nothing is trained. Only the descriptor
// stores it: nothing but answers depends on it.
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
	return fault.Invalid("modality %q: unknown metric %q: cosine, dot and l2 are possible",
		Shortened(modality), Shortened(string(m)))
}

// Modalities share a space if their vectors can be compared with each other, as vectors of pictures and texts
// by one encoder. That is an equivalence: each modality is in one space, alone or with others. In a
// descriptor the SpaceOf of all but the first modality of a space names the first, and the first has none. So
// a space has one stored form, however it was declared.

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
	// a modality of the space that the named one joins, with all that share its space; "": it leaves its
	// space
	SpaceOf map[string]string
	Metrics map[string]Metric // of the named one and of all that share its space then
}

// Settle brings the spaces and metrics of the modalities into their stored form. A SpaceOf may name any other
// modality of the space, and one metric is enough for a space. A contradiction is an ErrInvalid.
func (d *Descriptor) Settle() error { return d.settle(0, Respacing{}) }

// settle is Settle for a schema whose first modalities, as many as stored says, already have the stored form,
// and then change. It makes a new slice of modalities.
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
			return "", fault.Invalid("modality %q is %s, and %q is %s: they cannot share a space", m.Name,
				spellForm(m), first.Name, spellForm(first))
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

// spaces returns a number for the space of each modality, after change.
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
			return fault.Invalid("the space of modality %q: there is no modality %q: collection %q has %s",
				Shortened(name), Shortened(of), d.Name, Names(d.Modalities))
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
