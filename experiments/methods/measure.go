package methods

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model/eval"
)

// Protocols: what trains, and what is the database.
const (
	unlabelled = "unlabelled" // half of the items train; the others are the database, coded by projections
	labelled   = "labelled"   // all items train, and are the database, with the codes that they have learned
)

// A row has the figures of a method with codes of one length: means over the seeds.
type row struct {
	Split      string       `json:"split"`
	Method     string       `json:"method"`
	Paper      string       `json:"paper,omitempty"`
	Bits       int          `json:"bits"`
	Seeds      int          `json:"seeds"`
	Seconds    float64      `json:"seconds"`       // of a training
	MiB        float64      `json:"allocated_mib"` // by a training, in all
	Directions []*direction `json:"retrieval"`
}

// A direction has the figures of queries by one modality for another.
type direction struct {
	From      string  `json:"from"`
	To        string  `json:"to"`
	MAP       float64 `json:"map"`
	MAPStd    float64 `json:"map_std"`
	MAPTie    float64 `json:"map_tie"`
	Precision float64 `json:"precision_at"`
	// Lead is the mean difference in mAP from Best, the best other row of as many bits, over the seeds.
	Best      string  `json:"best_other,omitempty"`
	Lead      float64 `json:"lead"`
	LeadError float64 `json:"lead_stderr"` // its standard error
	// Curves are of the first seed.
	ByTop    []eval.TopPoint    `json:"by_top"`
	ByRadius []eval.RadiusPoint `json:"by_radius"`

	maps []float64 // mAP by seed
}

// A lab measures methods on a set.
type lab struct {
	modalities     []string
	items, queries *Data
	top            int
}

// newLab reads a set, which has queries.
func newLab(dir string, top int) (*lab, error) {
	s, err := sets.Read(dir)
	if err != nil {
		return nil, err
	}
	if s.Queries == nil || len(s.Queries.Labels) == 0 || len(s.Items.Labels) < 4 {
		return nil, fmt.Errorf("%s has no queries, or less than four labelled items: files query_NAME.npy and query_labels.npy are expected", dir)
	}
	names := slices.Concat(slices.Concat(s.Items.Labels...), slices.Concat(s.Queries.Labels...))
	slices.Sort(names)
	names = slices.Compact(names)
	l := &lab{modalities: s.Modalities, top: top, items: &Data{}, queries: &Data{}}
	for d, p := range map[*Data]*sets.Part{l.items: &s.Items, l.queries: s.Queries} {
		d.Y = mat.NewDense(len(p.Labels), len(names), nil)
		for i, labels := range p.Labels {
			for _, label := range labels {
				k, _ := slices.BinarySearch(names, label)
				d.Y.Set(i, k, 1)
			}
		}
		for t, vectors := range p.Vectors {
			x := mat.NewDense(len(vectors), s.Dims[t], nil)
			x.Apply(func(i, j int, _ float64) float64 { return float64(vectors[i][j]) }, x)
			d.X = append(d.X, x)
		}
	}
	return l, nil
}

// pick returns some rows, in the order of the files.
func (d *Data) pick(rows []int) *Data {
	slices.Sort(rows)
	p := &Data{Y: rowsOf(d.Y, rows)}
	for _, x := range d.X {
		p.X = append(p.X, rowsOf(x, rows))
	}
	return p
}

// measure trains a method with each seed and returns its row. It calls report before each training.
func (l *lab) measure(ctx context.Context, m *Method, o Options, split string, seeds int, report func()) (*row,
	error) {
	r := l.row(split, m.Name, o.Bits, seeds)
	if r.Paper = m.Paper; o.Target {
		r.Method += " + target"
	}
	for seed := range seeds {
		report()
		train, database := l.items, l.items
		if split == unlabelled {
			order := rand.New(rand.NewPCG(uint64(seed), 12)).Perm(l.items.Y.RawMatrix().Rows)
			half := len(order) / 2
			train, database = l.items.pick(order[:half]), l.items.pick(order[half:])
		}
		o.Seed = uint64(seed)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		model, err := m.Fit(ctx, train, o)
		if err != nil {
			return nil, err
		}
		r.Seconds += time.Since(start).Seconds() / float64(seeds)
		runtime.ReadMemStats(&after)
		r.MiB += float64(after.TotalAlloc-before.TotalAlloc) / (1 << 20) / float64(seeds)
		codes, queries := model.Codes, model.codesOf(l.queries, true)
		if split == unlabelled {
			codes = model.codesOf(database, m.Separate)
		}
		for _, d := range r.Directions {
			from, to := slices.Index(l.modalities, d.From), slices.Index(l.modalities, d.To)
			if err := l.add(ctx, d, pack(codes[to]), database.Y, pack(queries[from])); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// row returns a row without figures.
func (l *lab) row(split, method string, bits, seeds int) *row {
	r := &row{Split: split, Method: method, Bits: bits, Seeds: seeds}
	for _, from := range l.modalities {
		for _, to := range l.modalities {
			if from != to {
				r.Directions = append(r.Directions, &direction{From: from, To: to})
			}
		}
	}
	return r
}

// add adds the figures of one seed.
func (l *lab) add(ctx context.Context, d *direction, database codec.Codes, labels *mat.Dense,
	queries codec.Codes) error {
	found, err := eval.Evaluate(ctx, database, labelSets(labels), queries, labelSets(l.queries.Y), l.top)
	if err != nil {
		return err
	}
	if d.maps == nil {
		d.ByTop, d.ByRadius = found.ByTop, found.ByRadius
	}
	d.maps = append(d.maps, found.MAP)
	d.MAP, d.MAPStd = meanStd(d.maps)
	of := 1 / float64(len(d.maps))
	d.MAPTie += of * (found.MAPTie - d.MAPTie)
	d.Precision += of * (found.PrecisionAt - d.Precision)
	return nil
}

// codesOf returns the codes of other items by modality: of each modality alone, or of all together.
func (m *Model) codesOf(d *Data, separate bool) []*mat.Dense {
	encode, fuse, z := m.Encode, m.Fuse, make([]*mat.Dense, len(d.X))
	if encode == nil {
		encode = signs
	}
	if fuse == nil {
		fuse = sum
	}
	for t, x := range d.X {
		z[t] = m.Project[t](x)
	}
	if !separate {
		return slices.Repeat([]*mat.Dense{encode(fuse(z))}, len(z))
	}
	for t := range z {
		z[t] = encode(z[t])
	}
	return z
}

// pack returns the rows of +-1 as codes.
func pack(m *mat.Dense) codec.Codes {
	n, q := m.Dims()
	codes, code := codec.NewCodes(q, n), codec.NewCode(q)
	for i := range n {
		codes.Append(codec.PackSigns(code, m.RawRowView(i)))
	}
	return codes
}

// compare sets the leads of rows of one protocol and length.
func compare(rows []*row) {
	for i := range rows {
		for at, d := range rows[i].Directions {
			var best *direction
			for j, other := range rows {
				if o := other.Directions[at]; i != j && (best == nil || o.MAP > best.MAP) {
					best, d.Best = o, other.Method
				}
			}
			if best == nil {
				continue
			}
			differences := slices.Clone(d.maps)
			for s := range differences {
				differences[s] -= best.maps[s]
			}
			d.Lead, d.LeadError = meanStd(differences)
			d.LeadError /= math.Sqrt(float64(len(differences)))
		}
	}
}

// meanStd returns the mean and the standard deviation; 0 of one value.
func meanStd(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / float64(max(len(values)-1, 1)))
}
