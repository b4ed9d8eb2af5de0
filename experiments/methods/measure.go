package methods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/experiments/common"
	"github.com/fddhdb/fddhdb/experiments/sets"
	"github.com/fddhdb/fddhdb/model/eval"
)

// Protocols: what trains, and what is the database.
const (
	unlabelled = "unlabelled" // half of the items train; the others are the database, coded by projections
	labelled   = "labelled"   // all items train, and are the database, with the codes that they have learned
)

// A row has the figures of a method with codes of one length, of queries by one modality for another: means
// over the seeds.
type row struct {
	Set       string  `json:"set"`
	Split     string  `json:"split"`
	Method    string  `json:"method"`
	Paper     string  `json:"paper,omitempty"`
	From      string  `json:"from"`
	To        string  `json:"to"`
	Bits      int     `json:"bits"`
	MAP       float64 `json:"map"`
	MAPStd    float64 `json:"map_std"`
	MAPTie    float64 `json:"map_tie"`
	Precision float64 `json:"precision_at"`
	// Lead is the mean difference in mAP from Best, the best other method by MAP.
	Best      string  `json:"best_other,omitempty"`
	Lead      float64 `json:"lead"`
	LeadError float64 `json:"lead_stderr"`   // its standard error
	Seconds   float64 `json:"seconds"`       // of a training
	MiB       float64 `json:"allocated_mib"` // by a training, in all
	// Curves are of the first seed.
	ByTop    []eval.TopPoint    `json:"by_top"`
	ByRadius []eval.RadiusPoint `json:"by_radius"`

	maps []float64 // mAP by seed
}

// direction names what the queries and the items found are.
func (r *row) direction() string { return r.From + "->" + r.To }

// A lab measures methods on a set.
type lab struct {
	*options
	name           string
	modalities     []string
	items, queries *Data
	rows           []*row
	spoil          noise // of the labels of training items
}

// newLab reads a set. A sixth of the items are the queries if it has none.
func newLab(dir string, o *options) (*lab, error) {
	s, err := sets.Read(dir)
	if err != nil {
		return nil, err
	}
	items, queries := &s.Items, s.Queries
	if queries == nil && len(o.codes.List) > 0 {
		return nil, fmt.Errorf("--codes: %s has no queries of its own, so their codes cannot be known", dir)
	} else if queries == nil {
		items, queries = s.Split(0, math.MaxInt)
	}
	if len(queries.Labels) == 0 || len(items.Labels) < 4 {
		return nil, fmt.Errorf("%s has %d labelled items and %d queries: give at least four, and one", dir,
			len(items.Labels), len(queries.Labels))
	}
	names := slices.Concat(slices.Concat(items.Labels...), slices.Concat(queries.Labels...))
	slices.Sort(names)
	names = slices.Compact(names)
	l := &lab{options: o, name: filepath.Base(filepath.Clean(dir)), modalities: s.Modalities,
		items: &Data{Names: s.Modalities}, queries: &Data{}}
	for d, p := range map[*Data]*sets.Part{l.items: items, l.queries: queries} {
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

// run measures the methods. left are the reasons for which it left some out that were not asked for.
func (l *lab) run(ctx context.Context, chosen []*Method,
	report func(split, method string, done, all int)) (left []error, err error) {
	given, err := l.given(ctx)
	if err != nil {
		return nil, err
	}
	for _, split := range []string{unlabelled, labelled} {
		if l.split != split && l.split != "both" {
			continue
		}
		for i := range 2 * len(l.bits) * len(chosen) {
			m, o := chosen[i/2/len(l.bits)], Options{Bits: l.bits[i/2%len(l.bits)], Target: i%2 > 0}
			if o.Target && !(m.Target && l.target) {
				continue
			}
			report(split, m.Name, i, 2*len(l.bits)*len(chosen))
			rows, err := l.measure(ctx, m, o, split)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			same := func(other error) bool { return other.Error() == err.Error() }
			if err != nil && !slices.ContainsFunc(left, same) {
				left = append(left, err)
			}
			l.rows = append(l.rows, rows...)
		}
	}
	if l.rows = append(l.rows, given...); len(l.rows) == 0 {
		return nil, errors.Join(left...)
	}
	l.compare()
	return left, nil
}

// measure trains a method with each seed and returns its rows.
func (l *lab) measure(ctx context.Context, m *Method, o Options, split string) ([]*row, error) {
	rows := l.blank(split, m.Name+map[bool]string{true: " + target"}[o.Target], o.Bits)
	for seed := range l.seeds {
		train, database := l.items, l.items
		if split == unlabelled {
			order := rand.New(rand.NewPCG(uint64(seed), 12)).Perm(l.items.Y.RawMatrix().Rows)
			half := len(order) / 2
			train, database = l.items.pick(order[:half]), l.items.pick(order[half:])
		}
		o.Seed = uint64(seed)
		train, err := l.spoil.of(train, o.Seed)
		if err != nil {
			return nil, err
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		model, err := m.Fit(ctx, train, o)
		if err != nil {
			return nil, err
		}
		seconds := time.Since(start).Seconds()
		runtime.ReadMemStats(&after)
		codes, queries := model.Codes, model.codesOf(l.queries, true)
		if split == unlabelled {
			codes = model.codesOf(database, m.Separate)
		}
		for _, r := range rows {
			r.Paper = m.Paper
			r.Seconds += seconds / float64(l.seeds)
			r.MiB += float64(after.TotalAlloc-before.TotalAlloc) / (1 << 20) / float64(l.seeds)
			from, to := slices.Index(l.modalities, r.From), slices.Index(l.modalities, r.To)
			if err := l.add(ctx, r, pack(codes[to]), database.Y, pack(queries[from])); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// pick returns some rows, in the order of the files.
func (d *Data) pick(rows []int) *Data {
	slices.Sort(rows)
	p := &Data{Y: rowsOf(d.Y, rows), Names: d.Names}
	for _, x := range d.X {
		p.X = append(p.X, rowsOf(x, rows))
	}
	return p
}

// blank returns rows without figures, one for each pair of modalities.
func (l *lab) blank(split, name string, bits int) (rows []*row) {
	for i := range len(l.modalities) * len(l.modalities) {
		from, to := l.modalities[i/len(l.modalities)], l.modalities[i%len(l.modalities)]
		if from != to {
			rows = append(rows, &row{Set: l.name, Split: split, Method: name, Bits: bits, From: from, To: to})
		}
	}
	return rows
}

// add adds the figures of one seed.
func (l *lab) add(ctx context.Context, r *row, items codec.Codes, y *mat.Dense, queries codec.Codes) error {
	found, err := eval.Evaluate(ctx, items, labelSets(y), queries, labelSets(l.queries.Y), l.top)
	if err != nil {
		return err
	}
	if r.maps == nil {
		r.ByTop, r.ByRadius = found.ByTop, found.ByRadius
	}
	r.maps = append(r.maps, found.MAP)
	r.MAP, r.MAPStd = common.MeanStd(r.maps)
	r.MAPTie += found.MAPTie / float64(l.seeds)
	r.Precision += found.PrecisionAt / float64(l.seeds)
	return nil
}

// compare sets the leads.
func (l *lab) compare() {
	for _, r := range l.rows {
		best := &row{maps: r.maps} // no other: no lead
		for _, o := range l.rows {
			same := o.Split == r.Split && o.Bits == r.Bits && o.direction() == r.direction()
			if same && o != r && o.MAP > best.MAP {
				best = o
			}
		}
		differences := slices.Clone(r.maps)
		for s := range differences {
			differences[s] -= best.maps[s]
		}
		r.Best = best.Method
		r.Lead, r.LeadError = common.MeanStd(differences)
		r.LeadError /= math.Sqrt(float64(l.seeds))
	}
}

// codesOf returns the codes of other items by modality: of each modality alone, or of all together.
func (m *Model) codesOf(d *Data, separate bool) (codes []*mat.Dense) {
	for t, x := range d.X {
		codes = append(codes, m.Project[t](x))
	}
	if !separate {
		codes = slices.Repeat([]*mat.Dense{m.Fuse(codes)}, len(codes))
	}
	for t := range codes {
		codes[t] = m.Encode(codes[t])
	}
	return codes
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
