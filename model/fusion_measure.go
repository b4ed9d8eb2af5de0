package model

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/codec"
)

// measure returns what the candidates give in a view; nothing where there are too few
// queries to say.
func (f *fuser) measure(ctx context.Context, view int, candidates []fusionOutcome) ([]*fusionOutcome, error) {
	directions := f.directions(view)
	all := 0
	for v := range f.views.count(len(f.modalities)) {
		all += len(f.directions(v))
	}
	limit := max(1, fusionPairs/max(1, len(f.items))/len(candidates)/all)
	queries := make([][]int, len(directions)) // rows
	database := make([][]int, len(directions))
	for d, pair := range directions {
		counts := make([]int32, len(f.relevant))
		for i := range f.items {
			if f.has[pair[1]][i] {
				database[d] = append(database[d], i)
				counts[f.set[i]]++
			}
		}
		for i := 0; i < len(f.items) && len(queries[d]) < limit; i++ {
			if f.has[pair[0]][i] && f.relevantOthers(i, f.has[pair[1]][i], counts) {
				queries[d] = append(queries[d], i)
			}
		}
		if len(queries[d]) == 1 { // which would have half of the say, and no error
			queries[d] = nil
		}
	}
	if len(slices.Concat(queries...)) < minFusionQueries {
		return nil, nil
	}
	codes := make([]uint64, len(f.items)*f.words)
	scratch := make([]fusionScratch, workerCount())
	for w := range scratch {
		scratch[w] = fusionScratch{z: make([]float64, f.q), dist: make([]uint16, len(f.items)), ties: make([]tie, f.q+1)}
	}
	queryCodes := make([][]uint64, len(f.modalities))
	for _, pair := range directions {
		if from := pair[0]; queryCodes[from] == nil {
			alone := make([]float64, len(f.modalities))
			alone[from] = 1
			queryCodes[from] = make([]uint64, len(codes))
			f.encode(queryCodes[from], fusion{weights: alone}, scratch)
		}
	}
	var outcomes []*fusionOutcome
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o := candidate
		o.Directions = map[string]float64{}
		f.encode(codes, o.fusion, scratch)
		var variance float64
		for d, pair := range directions {
			from, to := pair[0], pair[1]
			precisions := make([]float64, len(queries[d]))
			chunks(len(scratch), len(precisions), 16, func(worker, first, end int) {
				s := &scratch[worker]
				for k := first; k < end; k++ {
					i := queries[d][k]
					precisions[k] = f.precision(s, i, queryCodes[from][i*f.words:(i+1)*f.words], codes, database[d])
				}
			})
			o.precisions = append(o.precisions, precisions)
			if len(precisions) == 0 {
				continue
			}
			mean, stderr := meanError(precisions)
			o.MAP += mean
			variance += stderr * stderr
			o.Directions[f.modalities[from].Name+"->"+f.modalities[to].Name] = mean
		}
		if n := float64(len(o.Directions)); n > 0 {
			o.MAP, o.StdErr = o.MAP/n, math.Sqrt(variance)/n
		}
		outcomes = append(outcomes, &o)
	}
	return outcomes, nil
}

// relevantOthers reports whether another row than i is relevant to it. counts are by
// label set; counted says whether row i is in them.
func (f *fuser) relevantOthers(i int, counted bool, counts []int32) bool {
	for s, relevant := range f.relevant[f.set[i]] {
		n := counts[s]
		if counted && int32(s) == f.set[i] {
			n--
		}
		if relevant && n > 0 {
			return true
		}
	}
	return false
}

// fusionScratch is the memory of one goroutine.
type fusionScratch struct {
	z    []float64
	dist []uint16
	ties []tie
}

// encode writes the codes of all rows.
func (f *fuser) encode(codes []uint64, how fusion, scratch []fusionScratch) {
	m := &Model{fusions: []fusion{how}, mean: f.mean}
	chunks(len(scratch), len(f.items), 64, func(worker, from, to int) {
		s := &scratch[worker]
		z := make([][]float64, len(f.modalities))
		room := make([]float64, len(f.modalities)*f.q)
		for i := from; i < to; i++ {
			for t := range f.modalities {
				z[t] = nil
				if f.has[t][i] {
					z[t] = room[t*f.q : (t+1)*f.q]
					for j, v := range f.z[t][i*f.q : (i+1)*f.q] {
						z[t][j] = float64(v)
					}
				}
			}
			m.Fuse(s.z, 0, z)
			codec.PackSigns(codes[i*f.words:(i+1)*f.words], s.z)
		}
	})
}

// precision returns the average precision of row i with a code among the other rows
// of the database, expected over all orders of ties.
func (f *fuser) precision(s *fusionScratch, i int, code, codes []uint64, database []int) float64 {
	clear(s.ties)
	relevant := f.relevant[f.set[i]]
	codec.Distances(s.dist, code, codes)
	for _, row := range database {
		if row == i {
			continue
		}
		t := &s.ties[s.dist[row]]
		t.rows++
		if relevant[f.set[row]] {
			t.relevant++
		}
	}
	return expectedPrecision(s.ties, f.harmonic)
}

// over returns by how much the outcome is better than another, of equal queries.
func (o *fusionOutcome) over(other *fusionOutcome) *FusionMargin {
	if other == nil {
		return nil
	}
	m := &FusionMargin{Name: other.Name, Centre: other.Centre}
	n, variance := 0.0, 0.0
	for d, p := range o.precisions {
		if len(p) == 0 {
			continue
		}
		differences := make([]float64, len(p))
		for i, v := range p {
			differences[i] = v - other.precisions[d][i]
		}
		mean, stderr := meanError(differences)
		m.MAP += mean
		variance += stderr * stderr
		n++
	}
	if n > 0 {
		m.MAP, m.StdErr = m.MAP/n, math.Sqrt(variance)/n
	}
	return m
}

// simplestFusion is simplest for fusions.
func simplestFusion(outcomes []*fusionOutcome) *fusionOutcome {
	best := slices.MaxFunc(outcomes, func(a, b *fusionOutcome) int { return cmp.Compare(a.MAP, b.MAP) })
	for _, o := range outcomes {
		if m := best.over(o); m.MAP <= m.StdErr {
			return o
		}
	}
	return best
}
