package command

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// vectorFiles are the extensions of files of vectors that export writes.
var vectorFiles = []string{".npy", ".npz", ".csv", ".jsonl", ".parquet"}

func checkVectorFile(path string) error {
	ext := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(vectorFiles, ext) {
		if path == outfile.Stdout {
			return exit.Usagef("--vectors %s: the extension of a file says in which format, and standard output has none: write to a file; --items %[1]s writes whole items as .jsonl", path)
		}
		return exit.Usagef("--vectors %s: %s files are written, not %s", path, strings.Join(vectorFiles, ", "), term.FileKind(path))
	}
	return nil
}

// maxExpanded bounds a dense file of a sparse modality, which is mostly zeros.
const maxExpanded = 4 << 30

// vectorSink writes vectors. If a format has a dense and a sparse form the modality
// decides; otherwise vectors are dense.
func vectorSink(f *outfile.File, path string, m db.Modality, items int) (sink, error) {
	ext := strings.ToLower(filepath.Ext(path))
	if m.Sparse && (ext == ".npz" || ext == ".jsonl" || ext == ".parquet") {
		return sparseSink(f, ext, m)
	}
	if bytes := 4 * int64(items) * int64(m.Dim); m.Sparse && bytes > maxExpanded {
		return sink{}, exit.Failedf("--vectors %s=%s: with its zeros the sparse modality takes %s, more than %s: write a .npz",
			m.Name, path, term.Size(bytes), term.Size(maxExpanded))
	}
	write, end, err := denseWriter(f, ext, m, items)
	if err != nil {
		return sink{}, err
	}
	expanded := make([]float32, m.Dim)
	return sink{func(it *db.Item) error {
		if x, ok := it.Vectors[m.Name]; ok {
			return write(x)
		}
		x, ok := it.Sparse[m.Name]
		if !ok {
			return lacks(it, m)
		}
		clear(expanded)
		for e, j := range x.Index {
			expanded[j] = x.Value[e]
		}
		return write(expanded)
	}, end}, nil
}

func lacks(it *db.Item, m db.Modality) error {
	return exit.Failedf("--vectors: item %q has no vector of modality %q", it.Key, m.Name)
}

// denseWriter starts a file of dense vectors.
func denseWriter(f *outfile.File, ext string, m db.Modality, items int) (write func([]float32) error, end func() error, err error) {
	var line []byte
	none := func() error { return nil }
	switch ext {
	case ".csv":
		return func(x []float32) error {
			line = files.AppendCSV(line[:0], x)
			_, err := f.Write(line)
			return err
		}, none, nil
	case ".jsonl":
		return func(x []float32) error {
			line = append(files.AppendJSON(line[:0], x), '\n')
			_, err := f.Write(line)
			return err
		}, none, nil
	case ".parquet":
		w := parquet.NewVectorWriter(f, table.Vector{Name: m.Name, Dim: m.Dim})
		return func(x []float32) error {
			return w.Write(&table.Item{Vectors: map[string][]float32{m.Name: x}})
		}, w.Close, nil
	case ".npz":
		w, err := npy.NewZip[float32](f, m.Name, items, m.Dim)
		if err != nil {
			return nil, nil, err
		}
		return w.Write, w.Close, nil
	}
	w, err := npy.NewWriter[float32](f, items, m.Dim)
	if err != nil {
		return nil, nil, err
	}
	return w.Write, w.Close, nil
}

// sparseSink writes the nonzero numbers of vectors.
func sparseSink(f *outfile.File, ext string, m db.Modality) (sink, error) {
	write, end, err := sparseWriter(f, ext, m)
	if err != nil {
		return sink{}, err
	}
	return sink{func(it *db.Item) error {
		x, ok := it.Sparse[m.Name]
		if !ok {
			return lacks(it, m)
		}
		return write(x.Index, x.Value)
	}, end}, nil
}

// sparseWriter starts a file of sparse vectors.
func sparseWriter(f *outfile.File, ext string, m db.Modality) (write func([]uint32, []float32) error, end func() error, err error) {
	switch ext {
	case ".jsonl":
		var line []byte
		return func(index []uint32, value []float32) error {
			line = append(files.AppendSparseJSON(line[:0], index, value), '\n')
			_, err := f.Write(line)
			return err
		}, func() error { return nil }, nil
	case ".parquet":
		w := parquet.NewVectorWriter(f, table.Vector{Name: m.Name, Dim: m.Dim, Sparse: true})
		return func(index []uint32, value []float32) error {
			return w.Write(&table.Item{Sparse: map[string]table.Sparse{m.Name: {Index: index, Value: value}}})
		}, w.Close, nil
	}
	w, err := npy.NewCSRWriter(f, m.Dim)
	if err != nil {
		return nil, nil, err
	}
	return w.Write, w.Close, nil
}
