package model

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// measure returns the outcomes of the candidates. It returns none if there are too few queries.
func (f *fuser) measure(ctx context.Context, candidates []fusionOutcome) ([]*fusionOutcome, error) {
	directions := f.directions()
	// Queries of each direction: as many as keep all pairs of a query and an item within
	// fusionPairs.
	limit := max(1, fusionPairs/max(1, len(f.items))/len(candidates)/len(directions))
	queries := make([][]int, len(directions)) // by direction: rows
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
			// A query without a relevant item has no average precision.
			if f.has[pair[0]][i] && f.relevantOthers(i, f.has[pair[1]][i], counts) {
				queries[d] = append(queries[d], i)
			}
		}
		if len(queries[d]) == 1 { // one query would count half, and has no standard error
			queries[d] = nil
		}
	}
	if len(slices.Concat(queries...)) < minFusionQueries {
		return nil, nil
	}
	codes := make([]uint64, len(f.items)*f.words)
	scratch := f.scratch(workerCount())
	queryCodes := make([][]uint64, len(f.modalities))
	for _, pair := range directions {
		if from := pair[0]; queryCodes[from] == nil {
			// A query has one modality, so a fusion does not change its code.
			alone := make([]float64, len(f.modalities))
			alone[from] = 1
			queryCodes[from] = make([]uint64, len(codes))
			f.encode(queryCodes[from], fusion{weights: alone}, f.z, f.has, scratch)
		}
	}
	var outcomes []*fusionOutcome
	for _, candidate := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o := candidate
		o.Directions = map[string]float64{}
		f.encode(codes, o.fusion, f.z, f.has, scratch)
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
			// Directions count alike, however many queries each has.
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

// over returns the margin of o over another outcome of the same queries.
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
