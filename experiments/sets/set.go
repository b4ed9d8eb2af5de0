// Package sets reads the sets of files that programs measure with: a folder with train_NAME.npy for
// each modality and train_labels.npy, and for queries query_NAME.npy and query_labels.npy.
// experiments makeset writes such folders, and `fddhdb export` can.
package sets

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/codec/vecfile"
)

// A Set has labelled items, and perhaps queries.
type Set struct {
	Modalities []string
	Dims       []int // of each modality
	Items      Part
	Queries    *Part // nil: there are none
}

// A Part is some rows of every modality, with their labels.
type Part struct {
	Vectors [][][]float32 // [modality][row]
	Labels  [][]string
}

// Read reads the files of a set. It leaves items without labels out.
func Read(dir string) (*Set, error) {
	files, err := filepath.Glob(filepath.Join(dir, "train_*.npy"))
	if err != nil {
		return nil, err
	}
	s := &Set{}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "train_"), ".npy")
		if name != "labels" && name != "codes" {
			s.Modalities = append(s.Modalities, name)
		}
	}
	if len(s.Modalities) == 0 {
		return nil, fmt.Errorf("%s has no files train_NAME.npy", dir)
	}
	items, err := s.read(dir, "train")
	if err != nil {
		return nil, err
	}
	s.Items = *items
	if s.Queries, err = s.read(dir, "query"); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

func (s *Set) read(dir, of string) (*Part, error) {
	labels, err := vecfile.ReadLabels(filepath.Join(dir, of+"_labels.npy"))
	if err != nil {
		return nil, err
	}
	p := &Part{}
	labelled := func(i int) bool { return len(labels.Sets[i]) > 0 }
	for i, of := range labels.Sets {
		var names []string
		for _, l := range of {
			names = append(names, labels.Names[l])
		}
		if labelled(i) {
			p.Labels = append(p.Labels, names)
		}
	}
	s.Dims = nil
	for _, name := range s.Modalities {
		file := filepath.Join(dir, of+"_"+name+".npy")
		x, rows, cols, err := vecfile.ReadAll(file)
		if err != nil {
			return nil, err
		}
		if rows != len(labels.Sets) {
			return nil, fmt.Errorf("%s has %d rows, the labels %d", file, rows, len(labels.Sets))
		}
		var vectors [][]float32
		for i := range rows {
			if labelled(i) {
				vectors = append(vectors, x[i*cols:(i+1)*cols])
			}
		}
		p.Vectors, s.Dims = append(p.Vectors, vectors), append(s.Dims, cols)
	}
	return p, nil
}

// pick returns the given rows.
func (p *Part) pick(rows []int) *Part {
	out := &Part{Vectors: make([][][]float32, len(p.Vectors))}
	for _, i := range rows {
		out.Labels = append(out.Labels, p.Labels[i])
		for t := range p.Vectors {
			out.Vectors[t] = append(out.Vectors[t], p.Vectors[t][i])
		}
	}
	return out
}

// Split returns the items, and at most most queries, in an order drawn with the seed. A set without
// queries gives a sixth of its items as queries.
func (s *Set) Split(seed uint64, most int) (items, queries *Part) {
	order := rand.New(rand.NewPCG(seed, 9)).Perm(len(s.Items.Labels))
	if s.Queries == nil {
		held := len(order) / 6
		items, queries = s.Items.pick(order[held:]), s.Items.pick(order[:held])
	} else {
		items, queries = s.Items.pick(order), s.Queries
	}
	if n := len(queries.Labels); n > most {
		queries = queries.pick(rand.New(rand.NewPCG(seed, 10)).Perm(n)[:most])
	}
	return items, queries
}

// LabelCount returns the number of different labels.
func (s *Set) LabelCount() int {
	var all []string
	for _, l := range s.Items.Labels {
		all = append(all, l...)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}
