package command

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// exportOptions are the flags of export.
type exportOptions struct {
	common
	vectors                           flags.NamedList
	codes, keys, labels, names, items string
	model                             string
	where                             whereFlag
}

func exportCommand(e *env) *cobra.Command {
	o := exportOptions{vectors: flags.NamedList{Kind: "NAME=FILE"}}
	cmd := &cobra.Command{
		Use:     "export DIR --codes FILE.npy...",
		Short:   "Write items out to files",
		GroupID: groupItems,
		Long: usage.Prose(`
			Export writes what a collection holds, or of it what matches --where, to files
			that import reads: row i of each of them is the same item, in database order.

			  --codes FILE.npy         codes, uint8, bits/8 columns
			  --keys FILE              keys, one a line
			  --labels FILE.npy        a 0/1 matrix, a column a label
			  --label-names FILE       the names of those columns, one a line
			  --vectors NAME=FILE      vectors of a modality, float32: .npy, .csv, .jsonl,
			                           .parquet, or .npz, which is an array that numpy.load
			                           reads, or of a sparse modality a matrix that
			                           scipy.sparse.load_npz reads
			  --items FILE             everything, .jsonl, an object a line, or .parquet, a
			                           column a thing

			One of these files, but for that of --vectors, can be -, standard output: items as
			.jsonl, codes and labels as .npy. How many were exported stands on stderr then.

			--model FILE writes what a space has learned instead, the active one or --space,
			with its labels by name, for import --model into another database. Equal
			trainings give equal files.

			An item without a code, or without a vector of a modality that is asked for,
			is an error, as rows would not match any more; use --items then. Files get
			their names when all are complete, so a failure leaves none half-written.`),
		Example: usage.Example(`
			fddhdb export wiki.db --codes codes.npy --keys keys.txt
			fddhdb export wiki.db --labels labels.npy --label-names labels.txt
			fddhdb export news.db --vectors text=text.npz --keys keys.txt
			fddhdb export wiki.db --items wiki.parquet
			fddhdb export wiki.db --where "label = 'art'" --keys art.txt
			fddhdb export wiki.db --items -
			fddhdb export wiki.db --model wiki.model`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.model != "" {
				return e.exportModel(cmd, &o, args[0])
			}
			if err := o.check(); err != nil {
				return err
			}
			return e.lookAtCollection(args[0], &o.common, func(_ *db.DB, c *db.Collection) error {
				o.where.warnOfLabels(e, c)
				bar := e.NewProgress()
				defer bar.End()
				n, err := o.run(cmd.Context(), c, outfile.NewSet(e.Stdout), bar)
				bar.End()
				exported := "exported " + term.Plural(n, "item", "items")
				switch {
				case err != nil:
					return err
				case o.json:
					return e.PrintJSON(map[string]int{"items": n})
				case o.toStdout():
					e.Notef("%s", exported)
				default:
					e.Printf("%s\n", exported)
				}
				return nil
			})
		},
	}
	o.register(cmd)
	o.registerSpace(cmd)
	f := cmd.Flags()
	f.StringVar(&o.codes, "codes", "", "codes, to `FILE`.npy")
	f.StringVar(&o.keys, "keys", "", "keys, to a text `FILE`")
	f.StringVar(&o.labels, "labels", "", "labels, to `FILE`.npy")
	f.StringVar(&o.names, "label-names", "", "names of the labels, to a text `FILE`")
	f.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	f.StringVar(&o.items, "items", "", "everything, to `FILE`.jsonl or .parquet")
	f.StringVar(&o.model, "model", "", "the model of a space, to `FILE`, and no items")
	o.where.register(cmd)
	usage.Matter(cmd.Flags(), "codes", "keys", "items", "labels", "vectors", "where", "model", "json")
	return cmd
}

func (o *exportOptions) check() error {
	if o.codes == "" && o.keys == "" && o.labels == "" && o.names == "" && o.items == "" &&
		len(o.vectors.List) == 0 {
		return exit.Usagef("export needs a file to write: --codes FILE.npy, --items FILE.jsonl, ...")
	}
	matrices := []flags.Named{{Name: "--codes", Value: o.codes}, {Name: "--labels", Value: o.labels}}
	for _, v := range o.vectors.List {
		if err := checkVectorFile(v.Value); err != nil {
			return err
		}
	}
	for _, m := range matrices {
		if m.Value == "" || m.Value == outfile.Stdout {
			continue
		}
		if err := checkNPY(m.Name, m.Value); err != nil {
			return err
		}
	}
	switch ext := strings.ToLower(filepath.Ext(o.items)); ext {
	case ".jsonl", ".parquet", "": // without an extension, such as standard output
	default:
		return exit.Usagef("--items %s: a .jsonl or .parquet file is written, not %s", o.items, ext)
	}
	if o.json && o.toStdout() {
		return exit.Usagef("%s: standard output cannot be the file and have the JSON of --json or --mode, too: leave one of them out", outfile.Stdout)
	}
	return nil
}

// toStdout reports whether a file is standard output.
func (o *exportOptions) toStdout() bool {
	return slices.Contains([]string{o.codes, o.keys, o.labels, o.names, o.items}, outfile.Stdout)
}

// A sink writes its part of each item to a file.
type sink struct {
	put   func(it *db.Item) error
	close func() error
}

// run writes all files in one pass over the items.
func (o *exportOptions) run(ctx context.Context, c *db.Collection, files outfile.Set,
	bar *term.Progress) (int, error) {
	defer files.Discard()
	total, err := c.Count(ctx, o.where.Expr)
	if err != nil {
		return 0, o.where.wrap(err)
	}
	sinks, err := o.sinks(&files, c, total)
	if err != nil {
		return 0, err
	}
	n := 0
	for it, err := range ahead(c.Items(ctx, o.where.Expr)) {
		if err != nil {
			return 0, err
		}
		if n%256 == 0 {
			bar.Report("exporting", int64(n), int64(total))
		}
		for _, s := range sinks {
			if err := s.put(it); err != nil {
				return 0, err
			}
		}
		n++
	}
	for _, s := range sinks {
		if s.close == nil {
			continue
		}
		if err := s.close(); err != nil {
			return 0, err
		}
	}
	return n, files.Commit()
}

// sinks opens the files for so many items.
func (o *exportOptions) sinks(files *outfile.Set, c *db.Collection, items int) ([]sink, error) {
	schema, err := c.Schema()
	if err != nil {
		return nil, err
	}
	var sinks []sink
	add := func(path string, open func(f *outfile.File) (sink, error)) error {
		if path == "" {
			return nil
		}
		f, err := files.Create(path)
		if err != nil {
			return err
		}
		s, err := open(f)
		sinks = append(sinks, s)
		return err
	}
	// Check everything that the collection may lack before opening files.
	modalities := make([]db.Modality, len(o.vectors.List))
	for i, v := range o.vectors.List {
		if modalities[i], err = source.FindModality(c.Name(), schema, "--vectors", v.Name); err != nil {
			return nil, err
		}
		if schema.IndexOnly {
			return nil, exit.Failedf("--vectors %s: collection %q is index-only: its items have no vectors here; export from the database that it is a copy of", v.Name, c.Name())
		}
	}
	if err := add(o.codes, func(f *outfile.File) (sink, error) { return codeSink(f, c, items) }); err != nil {
		return nil, err
	}
	if err := add(o.keys, func(f *outfile.File) (sink, error) { return keySink(f), nil }); err != nil {
		return nil, err
	}
	if err := add(o.labels, func(f *outfile.File) (sink,
		error) {
		return labelSink(f, c, items)
	}); err != nil {
		return nil, err
	}
	if err := add(o.names, func(f *outfile.File) (sink, error) { return nameSink(f, c) }); err != nil {
		return nil, err
	}
	for i, v := range o.vectors.List {
		if err := add(v.Value, func(f *outfile.File) (sink,
			error) {
			return vectorSink(f, v.Value, modalities[i], items)
		}); err != nil {
			return nil, err
		}
	}
	return sinks, add(o.items, func(f *outfile.File) (sink, error) { return itemSink(f, o.items, c, schema) })
}

func codeSink(f *outfile.File, c *db.Collection, items int) (sink, error) {
	stats, err := c.Stats()
	if err != nil {
		return sink{}, err
	}
	if !stats.Trained {
		return sink{}, untrained(c)
	}
	w, err := npy.NewWriter[uint8](f, items, stats.Bits/8)
	if err != nil {
		return sink{}, err
	}
	return sink{func(it *db.Item) error {
		if it.Code == nil {
			return exit.Failedf("--codes: item %q has no code: it has neither vectors nor a label that the model knows", it.Key)
		}
		return w.Write(it.Code)
	}, w.Close}, nil
}

func labelSink(f *outfile.File, c *db.Collection, items int) (sink, error) {
	names, err := c.Labels()
	if err != nil {
		return sink{}, err
	}
	if len(names) == 0 {
		return sink{}, exit.Failedf("--labels: collection %q knows no labels: there is no column to write",
			c.Name())
	}
	column := make(map[string]int, len(names))
	for i, name := range names {
		column[name] = i
	}
	w, err := npy.NewWriter[uint8](f, items, len(names))
	if err != nil {
		return sink{}, err
	}
	row := make([]uint8, len(names))
	return sink{func(it *db.Item) error {
		clear(row)
		for _, l := range it.Labels {
			row[column[l]] = 1
		}
		return w.Write(row)
	}, w.Close}, nil
}

func nameSink(f *outfile.File, c *db.Collection) (sink, error) {
	names, err := c.Labels()
	if err != nil {
		return sink{}, err
	}
	for _, name := range names {
		if err := writeLine(f, "--label-names: the label", name); err != nil {
			return sink{}, err
		}
	}
	return sink{put: func(*db.Item) error { return nil }}, nil
}

func keySink(f *outfile.File) sink {
	return sink{put: func(it *db.Item) error { return writeLine(f, "--keys: the key", it.Key) }}
}

// writeLine writes a string to a file with one a line. It refuses strings that would
// not be read back unchanged.
func writeLine(f *outfile.File, what, s string) error {
	if slices.Contains([]byte(s), '\n') || strings.HasSuffix(s, "\r") || strings.HasPrefix(s, "\ufeff") {
		return exit.Failedf("%s %q does not fit on a line: use --items", what, s)
	}
	_, err := fmt.Fprintln(f, s)
	return err
}

// aheadItems and aheadBytes are the approximate size of a batch of ahead.
const (
	aheadItems = 256
	aheadBytes = 1 << 20
)

// ahead yields the pairs of items. Another goroutine reads ahead, and a few batches are
// in memory. The goroutine ends before ahead returns.
func ahead(items iter.Seq2[*db.Item, error]) iter.Seq2[*db.Item, error] {
	type pair struct {
		item *db.Item
		err  error
	}
	return func(yield func(*db.Item, error) bool) {
		batches, stop := make(chan []pair, 1), make(chan struct{})
		go func() {
			defer close(batches)
			var batch []pair
			bytes := 0
			send := func() bool {
				select {
				case batches <- batch:
					batch, bytes = nil, 0
					return true
				case <-stop:
					return false
				}
			}
			for it, err := range items {
				batch = append(batch, pair{it, err})
				if err == nil {
					bytes += itemBytes(it)
				}
				if (len(batch) == aheadItems || bytes >= aheadBytes) && !send() {
					return
				}
			}
			send()
		}()
		defer func() {
			close(stop)
			for range batches { // wait until nothing is read any more
			}
		}()
		for batch := range batches {
			for _, p := range batch {
				if !yield(p.item, p.err) {
					return
				}
			}
		}
	}
}

// itemBytes returns the approximate memory of an item.
func itemBytes(it *db.Item) int {
	n := len(it.Payload)
	for _, x := range it.Vectors {
		n += 4 * len(x)
	}
	for _, x := range it.Sparse {
		n += 8 * len(x.Value)
	}
	return n
}

// itemSink writes whole items.
func itemSink(f *outfile.File, path string, c *db.Collection, schema db.Schema) (sink, error) {
	if strings.EqualFold(filepath.Ext(path), ".parquet") {
		return parquetSink(f, path, c, schema)
	}
	return sink{put: func(it *db.Item) error {
		b, err := it.MarshalJSON() // an encoder would go over it again
		if err == nil {
			_, err = f.Write(append(b, '\n'))
		}
		return err
	}}, nil
}

// parquetSink writes the columns that import reads. Of codes it writes only given ones.
func parquetSink(f *outfile.File, path string, c *db.Collection, schema db.Schema) (sink, error) {
	if schema.IndexOnly {
		return sink{}, exit.Failedf(
			"--items %s: collection %q is index-only: its items have no vectors here; write a .jsonl, or export from the database that it is a copy of", path, c.Name())
	}
	shape := &table.Shape{Code: schema.Bits / 8}
	for _, m := range schema.Modalities {
		shape.Vectors = append(shape.Vectors, table.Vector{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse})
	}
	for _, d := range schema.Fields {
		shape.Fields = append(shape.Fields, table.Field{Name: d.Name, Type: string(d.Type)})
	}
	w, err := parquet.NewItemWriter(f, shape)
	if err != nil {
		return sink{}, exit.Failedf("--items %s: %w; a .jsonl takes any names", path, err)
	}
	var out table.Item
	return sink{func(it *db.Item) error {
		out.Reset()
		out.Key, out.Labels, out.Payload, out.Code = it.Key, it.Labels, it.Payload, it.Code
		for name, x := range it.Vectors {
			out.Vectors[name] = x
		}
		for name, x := range it.Sparse {
			out.Sparse[name] = table.Sparse{Index: x.Index, Value: x.Value}
		}
		for name, v := range it.Fields {
			out.Fields[name] = v
		}
		return w.Write(&out)
	}, w.Close}, nil
}

// vectorFiles are the extensions of files of vectors that export writes.
var vectorFiles = []string{".npy", ".npz", ".csv", ".jsonl", ".parquet"}

func checkVectorFile(path string) error {
	ext := strings.ToLower(filepath.Ext(path))
	if !slices.Contains(vectorFiles, ext) {
		if path == outfile.Stdout {
			return exit.Usagef("--vectors %s: the extension of a file says in which format, and standard output has none: write to a file; --items %[1]s writes whole items as .jsonl", path)
		}
		return exit.Usagef("--vectors %s: %s files are written, not %s", path,
			strings.Join(vectorFiles, ", "), term.FileKind(path))
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
		return sink{}, exit.Failedf(
			"--vectors %s=%s: with its zeros the sparse modality takes %s, more than %s: write a .npz",
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
func denseWriter(f *outfile.File, ext string, m db.Modality,
	items int) (write func([]float32) error, end func() error, err error) {
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
func sparseWriter(f *outfile.File, ext string,
	m db.Modality) (write func([]uint32, []float32) error, end func() error, err error) {
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
