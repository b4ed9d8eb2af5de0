package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/files"
)

// A Benchmark is a .mat file in which benchmarks of cross-modal retrieval are published: matrices of images,
// of texts and of labels, in parts for training, for the database and for queries, or as a whole. Row i of
// each is item i.
type Benchmark struct {
	Vectors []Mapped // modalities and their FILE.mat:VARIABLE
	Labels  string   // FILE.mat:VARIABLE; "" if there is none
	mapping []MappedColumn
	sizes   []files.Variable // of Vectors
	note    string
}

// Names of variables, in small letters and without underscores: the name of what they hold, then that of
// their part.
var (
	benchmarkKinds = []struct {
		becomes string
		names   []string
	}{
		{"image", []string{"i", "x", "image", "images", "img"}},
		{"text", []string{"t", "y", "text", "texts", "txt", "tags"}},
		{"labels", []string{"l", "label", "labels"}},
	}
	benchmarkParts = []struct {
		name  string
		names []string
	}{
		{"database", []string{"db", "database", "retrieval"}},
		{"train", []string{"tr", "train"}},
		{"query", []string{"te", "test", "query"}},
		{"", []string{"", "all"}},
	}
)

// Parts are the parts of a benchmark.
var Parts = []string{"database", "train", "query"}

// OpenBenchmark finds the variables of a part; by default of the database, else of the training items, else
// those that have no part.
func OpenBenchmark(file, part string) (*Benchmark, error) {
	all, err := files.Variables(file)
	if err != nil {
		return nil, err
	}
	byName := map[string]files.Variable{}
	var has []string
	for _, v := range all {
		has = append(has, v.Name)
		key := strings.ToLower(strings.ReplaceAll(v.Name, "_", ""))
		if _, twice := byName[key]; !twice {
			byName[key] = v
		}
	}
	var found *Benchmark
	var others []string
	for _, p := range benchmarkParts {
		if b := findPart(file, byName, p.names); b != nil && found == nil && (p.name == part || part == "" && p.name != "query") {
			found = b
		} else if b != nil && p.name != "" {
			others = append(others, "--part "+p.name)
		}
	}
	if found == nil {
		what := "items"
		if part != "" {
			what = "items for --part " + part
		}
		return nil, exit.Failedf("%s: no variables of %s: there is %s; names that are known are such as I_tr, T_tr, L_tr (also _te, _db; X, Y, L; XTrain; XAll, IAll, images, tags, labels); others go by --vectors image=%s:VARIABLE and --labels %s:VARIABLE",
			file, what, orNothing(listStart(has, 20)), file, file)
	}
	if err := found.checkVectors(); err != nil {
		return nil, err
	}
	var parts []string
	for _, c := range found.mapping {
		verb := "is"
		if c.Becomes == "labels" {
			verb = "are"
		}
		parts = append(parts, fmt.Sprintf("%s %s %s", strings.TrimPrefix(c.Becomes, "vector "), verb, c.Column))
	}
	if found.Labels == "" {
		parts = append(parts, "there are no labels")
	}
	if len(others) > 0 {
		parts = append(parts, "the file also has "+strings.Join(others, " and "))
	}
	found.note = file + ": " + strings.Join(parts, "; ")
	return found, nil
}

// findPart finds the variables whose names end so, nil if images or texts are missing.
func findPart(file string, byName map[string]files.Variable, suffixes []string) *Benchmark {
	b := &Benchmark{}
	for _, kind := range benchmarkKinds {
		for _, name := range kind.names {
			i := slices.IndexFunc(suffixes, func(suffix string) bool { _, ok := byName[name+suffix]; return ok })
			if i < 0 {
				continue
			}
			v := byName[name+suffixes[i]]
			m := MappedColumn{Column: v.Name, Type: fmt.Sprintf("%d x %d", v.Rows, v.Cols), Becomes: kind.becomes}
			if kind.becomes == "labels" {
				b.Labels = file + ":" + v.Name
			} else {
				b.Vectors, b.sizes = append(b.Vectors, Mapped{kind.becomes, file + ":" + v.Name}), append(b.sizes, v)
				m.Becomes = "vector " + kind.becomes
			}
			b.mapping = append(b.mapping, m)
			break
		}
	}
	if len(b.Vectors) < 2 {
		return nil
	}
	return b
}

// checkVectors refuses a variable of vectors that has one number for each item: in a file of X and Y it may
// be the labels, which the user has to say.
func (b *Benchmark) checkVectors() error {
	for i, v := range b.sizes {
		other := 1 - i // there are two
		if n := b.sizes[other].Rows; n < 2 || v.Rows*v.Cols != n || b.sizes[other].Cols == 1 {
			continue
		}
		labels := b.Labels
		if labels == "" {
			labels = b.Vectors[i].Column
		}
		return exit.Failedf("%s has one number an item, as labels have, and is no modality: --vectors NAME=%s --labels %s says what the file has",
			b.Vectors[i].Column, b.Vectors[other].Column, labels)
	}
	return nil
}

func orNothing(s string) string {
	if s == "" {
		return "no matrix"
	}
	return s
}

// Mapping returns what the variables become.
func (b *Benchmark) Mapping() []MappedColumn { return b.mapping }

// Note returns in one line which variables were taken, and what else there is.
func (b *Benchmark) Note() string { return b.note }
