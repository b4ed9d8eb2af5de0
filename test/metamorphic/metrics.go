package metamorphic

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/fddhdb/fddhdb/db"
)

// firstOfSpace returns the name of the first modality of the space of one. The schema is settled.
func firstOfSpace(m db.Modality) string { return cmp.Or(m.SpaceOf, m.Name) }

// settled returns modalities as the database has them, with what a schema changes; or ErrInvalid if
// there can be none such. The first of them, so many as stored says, are so already.
//
// Modalities are the nodes of a graph, and share a space if they are connected.
func settled(all []db.Modality, stored int, change *Schema) ([]db.Modality, error) {
	all = slices.Clone(all)
	at := func(name string) int {
		return slices.IndexFunc(all, func(m db.Modality) bool { return m.Name == name })
	}
	edges := map[[2]int]bool{}
	connect := func(a, b int) bool {
		edges[[2]int{a, b}], edges[[2]int{b, a}] = true, true
		return a >= 0 && b >= 0 && a != b
	}
	possible := true
	for i, m := range all {
		if i >= stored && m.SpaceOf != "" {
			possible = connect(i, at(m.SpaceOf)) && possible
		}
		for j, o := range all[:min(i, stored)] {
			of, leaves := change.SpaceOf[m.Name]
			ofOther, leavesToo := change.SpaceOf[o.Name]
			if i < stored && firstOfSpace(m) == firstOfSpace(o) && !(leaves && of == "") && !(leavesToo && ofOther == "") {
				connect(i, j)
			}
		}
	}
	for name, of := range change.SpaceOf {
		if of != "" {
			possible = connect(at(name), at(of)) && possible
		} else {
			possible = possible && at(name) >= 0
		}
	}
	for name, m := range change.Metrics {
		possible = possible && at(name) >= 0 && knownMetric(m)
	}
	if !possible || slices.ContainsFunc(all, func(m db.Modality) bool { return !knownMetric(m.Metric) }) {
		return nil, db.ErrInvalid
	}
	seen := map[int]bool{}
	for first := range all {
		if seen[first] {
			continue
		}
		members := []int{first}
		seen[first] = true
		for i := 0; i < len(members); i++ { // it grows
			for j := range all {
				if edges[[2]int{members[i], j}] && !seen[j] {
					seen[j] = true
					members = append(members, j)
				}
			}
		}
		given, own := map[db.Metric]bool{}, map[db.Metric]bool{}
		for _, i := range members {
			m := all[i]
			if m.Dim != all[first].Dim || m.Sparse != all[first].Sparse {
				return nil, db.ErrInvalid
			}
			if metric, is := change.Metrics[m.Name]; is {
				given[cmp.Or(metric, db.Cosine)] = true
			}
			switch {
			case i < stored:
				own[cmp.Or(m.Metric, db.Cosine)] = true
			case m.Metric != "":
				own[m.Metric] = true
			}
		}
		if len(given) > 0 {
			for _, i := range members {
				if i >= stored && all[i].Metric != "" {
					given[all[i].Metric] = true
				}
			}
			own = given
		}
		if len(own) > 1 {
			return nil, db.ErrInvalid
		}
		for _, i := range members {
			all[i].Metric, all[i].SpaceOf = "", ""
			for metric := range maps.Keys(own) {
				if metric != db.Cosine {
					all[i].Metric = metric
				}
			}
			if i != first {
				all[i].SpaceOf = all[first].Name
			}
		}
	}
	return all, nil
}

func knownMetric(m db.Metric) bool {
	return slices.Contains([]db.Metric{"", db.Cosine, db.Dot, db.L2}, m)
}

// comparedWith returns the names of the modalities whose vectors a query is compared with.
func (s *Schema) comparedWith(from, to string) (names []string) {
	of := ""
	for _, m := range s.Modalities {
		if m.Name == from {
			of = firstOfSpace(m)
		}
	}
	for _, m := range s.Modalities {
		switch {
		case m.Name == to && firstOfSpace(m) == of:
			return []string{to}
		case firstOfSpace(m) == of:
			names = append(names, m.Name)
		}
	}
	if to != "" {
		return []string{from}
	}
	return names
}

// similar returns where the metric puts a vector in the order of an answer, the highest first, and
// its similarity with x.
func similar(metric db.Metric, x, y []float32) (place, similarity float32) {
	var xy, apart float64
	for j := range x {
		a, b := float64(x[j]), float64(y[j])
		xy, apart = xy+a*b, apart+(a-b)*(a-b)
	}
	switch metric {
	case db.Dot:
		return float32(xy), float32(xy)
	case db.L2:
		d := float32(min(apart, math.MaxFloat32))
		return -d, float32(1 / (1 + float64(d)))
	}
	c := cosine(x, y)
	return c, c
}
