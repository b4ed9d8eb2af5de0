package main

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

// A set has labelled items, and perhaps queries.
type set struct {
	modalities []string
	dims       []int
	items      part
	queries    *part // nil: there are none
}

// A part is some rows of every modality, with their labels.
type part struct {
	vectors [][][]float32 // [modality][row]
	labels  [][]string
}

// readSet reads the files of a set. It leaves items without labels out.
func readSet(dir string) (*set, error) {
	files, err := filepath.Glob(filepath.Join(dir, "train_*.npy"))
	if err != nil {
		return nil, err
	}
	s := &set{}
	for _, file := range files {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "train_"), ".npy")
		if name != "labels" && name != "codes" {
			s.modalities = append(s.modalities, name)
		}
	}
	if len(s.modalities) == 0 {
		return nil, fmt.Errorf("%s has no files train_NAME.npy", dir)
	}
	items, err := s.read(dir, "train")
	if err != nil {
		return nil, err
	}
	s.items = *items
	if s.queries, err = s.read(dir, "query"); errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

func (s *set) read(dir, of string) (*part, error) {
	labels, err := vecfile.ReadLabels(filepath.Join(dir, of+"_labels.npy"))
	if err != nil {
		return nil, err
	}
	p := &part{}
	labelled := func(i int) bool { return len(labels.Sets[i]) > 0 }
	for i, of := range labels.Sets {
		var names []string
		for _, l := range of {
			names = append(names, labels.Names[l])
		}
		if labelled(i) {
			p.labels = append(p.labels, names)
		}
	}
	s.dims = nil
	for _, name := range s.modalities {
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
		p.vectors, s.dims = append(p.vectors, vectors), append(s.dims, cols)
	}
	return p, nil
}

// pick returns the given rows.
func (p *part) pick(rows []int) *part {
	out := &part{vectors: make([][][]float32, len(p.vectors))}
	for _, i := range rows {
		out.labels = append(out.labels, p.labels[i])
		for t := range p.vectors {
			out.vectors[t] = append(out.vectors[t], p.vectors[t][i])
		}
	}
	return out
}

// split returns the items, and at most most queries, in an order drawn with the seed.
func (s *set) split(seed uint64, most int) (items, queries *part) {
	order := rand.New(rand.NewPCG(seed, 9)).Perm(len(s.items.labels))
	if s.queries == nil {
		held := len(order) / 6
		items, queries = s.items.pick(order[held:]), s.items.pick(order[:held])
	} else {
		items, queries = s.items.pick(order), s.queries
	}
	if n := len(queries.labels); n > most {
		queries = queries.pick(rand.New(rand.NewPCG(seed, 10)).Perm(n)[:most])
	}
	return items, queries
}

// labelCount returns the number of different labels.
func (s *set) labelCount() int {
	var all []string
	for _, l := range s.items.labels {
		all = append(all, l...)
	}
	slices.Sort(all)
	return len(slices.Compact(all))
}
