// Package sets reads the sets of files that experiments measure with, and stores them. A set is
//
//   - a folder with train_NAME.npy for each modality and train_labels.npy, and for queries query_NAME.npy and
//     query_labels.npy; experiments makeset writes such folders, and `fddhdb export` can;
//   - or a .mat file in one of the layouts in which sets of pictures and texts are published (layouts).
package sets

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
)

// A Set has labelled items, and perhaps queries.
type Set struct {
	Modalities []string
	Dims       []int // of each modality
	Items      Part
	Queries    *Part // nil: there are none

	// Train are the files of Items, as fddhdb import takes them.
	Train Files
}

// Files are where the rows of a part are: a file, or a variable of one (FILE.mat:VARIABLE).
type Files struct {
	Vectors []string // by modality
	Labels  string
}

// A Part is some rows of every modality, with their labels.
type Part struct {
	Vectors [][][]float32 // [modality][row]
	Labels  [][]string
}

// layouts are the variables of published .mat files: pictures, texts and labels of the training items, and of
// the queries; no queries if the authors divide one set as they like.
var layouts = [][2][3]string{
	// FDDH, DCH, SCRATCH and most others: wiki, MIRFlickr-25K, NUS-WIDE, IAPR TC-12
	{{"I_tr", "T_tr", "L_tr"}, {"I_te", "T_te", "L_te"}},
	{{"XTrain", "YTrain", "LTrain"}, {"XTest", "YTest", "LTest"}}, // as DLFH, SRLCH and BATCH name them
	{{"IAll", "TAll", "LAll"}},
}

// Read reads a set. It leaves items without labels out.
func Read(path string) (*Set, error) {
	s := &Set{}
	var queries Files
	if strings.EqualFold(filepath.Ext(path), ".mat") {
		layout, err := layoutOf(path)
		if err != nil {
			return nil, err
		}
		s.Modalities = []string{"image", "text"}
		s.Train = variables(path, layout[0])
		if queries = variables(path, layout[1]); layout[1][0] == "" {
			queries.Labels = ""
		}
	} else {
		found, err := filepath.Glob(filepath.Join(path, "train_*.npy"))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "train_"), ".npy")
			if name != "labels" && name != "codes" {
				s.Modalities = append(s.Modalities, name)
			}
		}
		if len(s.Modalities) == 0 {
			return nil, fmt.Errorf("%s has no files train_NAME.npy, and is no .mat file", path)
		}
		s.Train, queries = s.inFolder(path, "train"), s.inFolder(path, "query")
		if _, err := os.Stat(queries.Labels); errors.Is(err, fs.ErrNotExist) {
			queries.Labels = ""
		}
	}
	items, err := s.read(s.Train)
	if err != nil {
		return nil, err
	}
	s.Items = *items
	if queries.Labels == "" {
		return s, nil
	}
	dims := s.Dims
	if s.Queries, err = s.read(queries); err != nil {
		return nil, err
	}
	if !slices.Equal(s.Dims, dims) {
		return nil, fmt.Errorf("%s: training items have vectors of %d dimensions, queries of %d", path, dims,
			s.Dims)
	}
	return s, nil
}

// layoutOf returns the layout of a .mat file, by its variables of pictures and labels.
func layoutOf(path string) (l [2][3]string, err error) {
	var expected []string
	for _, l := range layouts {
		if _, err = files.ReadLabels(path + ":" + l[0][2]); err == nil {
			x, missing := files.Open(path+":"+l[0][0], "")
			if err = missing; err == nil {
				return l, x.Close()
			}
		}
		names := strings.Join(slices.Concat(l[0][:], l[1][:]), " ")
		expected = append(expected, strings.TrimSpace(names))
	}
	return l, fmt.Errorf("%w; these layouts are known: %s", err, strings.Join(expected, "; "))
}

// variables returns the variables of a part.
func variables(path string, names [3]string) Files {
	return Files{Vectors: []string{path + ":" + names[0], path + ":" + names[1]},
		Labels: path + ":" + names[2]}
}

// inFolder returns the files of a part.
func (s *Set) inFolder(dir, part string) Files {
	f := Files{Labels: filepath.Join(dir, part+"_labels.npy")}
	for _, name := range s.Modalities {
		f.Vectors = append(f.Vectors, filepath.Join(dir, part+"_"+name+".npy"))
	}
	return f
}

// read reads a part, and sets Dims.
func (s *Set) read(f Files) (*Part, error) {
	labels, err := files.ReadLabels(f.Labels)
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
	for _, file := range f.Vectors {
		x, rows, cols, err := files.ReadAll(file)
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
func (s *Set) LabelCount() int { return len(s.labels()) }

// labels returns the labels of items, sorted, each once.
func (s *Set) labels() []string {
	all := slices.Concat(s.Items.Labels...)
	slices.Sort(all)
	return slices.Compact(all)
}

// Schema returns a schema with the modalities of the set.
func (s *Set) Schema() db.Schema {
	var schema db.Schema
	for t, name := range s.Modalities {
		schema.Modalities = append(schema.Modalities, db.Modality{Name: name, Dim: s.Dims[t]})
	}
	return schema
}

// Item returns row i of a part as an item without labels, whose key is the number of the row.
func (s *Set) Item(p *Part, i int) *db.Item {
	it := &db.Item{Key: strconv.Itoa(i), Vectors: map[string][]float32{}}
	for t, name := range s.Modalities {
		it.Vectors[name] = p.Vectors[t][i]
	}
	return it
}

// Put stores items in a collection, all or none.
func Put(ctx context.Context, d *db.DB, c *db.Collection, items []*db.Item) error {
	b := d.NewBatch()
	for _, it := range items {
		if err := b.Put(c, it); err != nil {
			return err
		}
	}
	return b.Commit(ctx)
}

// WithDatabase calls f with a database of its own, which is removed afterwards. fill, if it is not nil, makes
// the database in a folder.
func WithDatabase(fill func(dir string) error, f func(d *db.DB) error) (err error) {
	dir, err := os.MkdirTemp("", "experiments")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if fill != nil {
		if err := fill(dir); err != nil {
			return err
		}
	}
	d, err := db.Open(dir, &db.Options{NoSync: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return f(d)
}
