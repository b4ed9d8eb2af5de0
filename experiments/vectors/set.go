package vectors

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"sync"

	"github.com/fddhdb/fddhdb/internal/synth"
)

// Names of the files of a set: rows of float32, little-endian.
const (
	itemsFile   = "items.f32"
	queriesFile = "queries.f32"
)

// A set has the vectors that all sides get, and what they should find.
type set struct {
	dims, k        int
	items, queries []float32 // row by row
	nearest        []float64 // similarity of the k-th nearest item, by query
}

// generate makes n items and their nearest neighbours.
func generate(ctx context.Context, source *synth.EmbeddingSource, n, queries, dims, k int) *set {
	s := &set{dims: dims, k: min(k, n), items: make([]float32, n*dims),
		queries: make([]float32, queries*dims), nearest: make([]float64, queries)}
	inParallel(ctx, n, func(i int) { copy(s.item(i), source.Vector(i)) })
	inParallel(ctx, queries, func(q int) {
		copy(s.query(q), source.Vector(1<<40+q))
		s.nearest[q] = s.kth(q)
	})
	return s
}

// inParallel calls f with the numbers below n, on all cores, until the context ends.
func inParallel(ctx context.Context, n int, f func(i int)) {
	var group sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() {
			for i := w; i < n && ctx.Err() == nil; i += workers {
				f(i)
			}
		})
	}
	group.Wait()
}

func (s *set) item(i int) []float32  { return s.items[i*s.dims : (i+1)*s.dims] }
func (s *set) query(q int) []float32 { return s.queries[q*s.dims : (q+1)*s.dims] }

// kth returns the similarity of the k-th nearest item of a query, by comparing all.
func (s *set) kth(q int) float64 {
	best := make([]float64, 0, s.k+1) // descending
	for i := range len(s.items) / s.dims {
		x := cosine(s.query(q), s.item(i))
		if len(best) == s.k && x <= best[s.k-1] {
			continue
		}
		at := sort.Search(len(best), func(j int) bool { return best[j] < x })
		best = slices.Insert(best, at, x)
		best = best[:min(len(best), s.k)]
	}
	return best[s.k-1]
}

// cosine shares no code with fddhdb, whose exact searches it checks.
func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for j, x := range a {
		x, y := float64(x), float64(b[j])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb)
}

// recall returns the share of the nearest items of a query in an answer. Items count by
// their similarity: programs that sum in other orders, or with fewer bits, disagree on
// which of two comes first that are equally near.
func (s *set) recall(q int, answer []int) (float64, error) {
	const rounding = 1e-6
	hits := 0
	for at, i := range answer {
		if i < 0 || i >= len(s.items)/s.dims {
			return 0, fmt.Errorf("there is no item %d, which was found", i)
		}
		if slices.Contains(answer[:at], i) {
			return 0, fmt.Errorf("item %d was found twice", i)
		}
		if cosine(s.query(q), s.item(i)) >= s.nearest[q]-rounding {
			hits++
		}
	}
	return float64(min(hits, s.k)) / float64(s.k), nil
}

// write writes the files of the set.
func (s *set) write(dir string) error {
	for name, rows := range map[string][]float32{itemsFile: s.items, queriesFile: s.queries} {
		if err := writeRows(filepath.Join(dir, name), rows, s.dims); err != nil {
			return err
		}
	}
	return nil
}

func writeRows(path string, rows []float32, dims int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	for row := range slices.Chunk(rows, dims) {
		if err := binary.Write(w, binary.LittleEndian, row); err != nil {
			return err
		}
	}
	return w.Flush()
}

// readRows yields the rows of a file, each in a slice of its own.
func readRows(path string, dims int) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		f, err := os.Open(path)
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		r := bufio.NewReaderSize(f, 1<<20)
		for {
			row := make([]float32, dims)
			err := binary.Read(r, binary.LittleEndian, row)
			if err == io.EOF || !yield(row, err) || err != nil {
				return
			}
		}
	}
}
