package command

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/outfile"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/files/parquet"
	"github.com/fddhdb/fddhdb/files/table"
)

// An exporting is a run of export.
type exporting struct {
	*run.Verb
	vectors                           flags.NamedList
	codes, keys, labels, names, items string

	rows  int
	files outfile.Set
	sinks []sink
}

// A sink writes its part of each item to a file.
type sink struct {
	put   func(it *db.Item) error
	close func() error
}

func exportCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "export DIR --codes FILE.npy...", "Write items out to files", `
		Export writes what a collection holds, or of it what matches --where, to files
		that import reads: row i of each of them is the same item, in database order.

		  --codes FILE.npy         codes, uint8, bits/8 columns
		  --keys FILE              keys, one a line
		  --labels FILE.npy        a 0/1 matrix, a column a label
		  --label-names FILE       the names of those columns, one a line
		  --vectors NAME=FILE      vectors of a modality, float32, .npy; of a sparse modality
		                           also .npz, which scipy.sparse.load_npz reads
		  --items FILE             everything, .jsonl, an object a line, or .parquet, a
		                           column a thing

		One of these files, but for that of --vectors, can be -, standard output: items as
		.jsonl, codes and labels as .npy. How many were exported stands on stderr then.

		--model FILE writes what a space has learned instead, the active one or --space,
		with its labels by name, for import --model into another database. Equal
		trainings give equal files.

		An item without a code, or without a vector of a modality that is asked for,
		is an error, as rows would not match any more; use --items then. Files get
		their names when all are complete, so a failure leaves none half-written.`, `
		fddhdb export wiki.db --codes codes.npy --keys keys.txt
		fddhdb export wiki.db --labels labels.npy --label-names labels.txt
		fddhdb export news.db --vectors text=text.npz --keys keys.txt
		fddhdb export wiki.db --items wiki.parquet
		fddhdb export wiki.db --where "label = 'art'" --keys art.txt
		fddhdb export wiki.db --items -
		fddhdb export wiki.db --model wiki.model`).
		OnCollection().InSpace().Filtered()
	o, model := exporting{Verb: v, vectors: flags.NamedList{Kind: "NAME=FILE"}}, ""
	v.Flags.StringVar(&o.codes, "codes", "", "codes, to `FILE`.npy")
	v.Flags.StringVar(&o.keys, "keys", "", "keys, to a text `FILE`")
	v.Flags.StringVar(&o.labels, "labels", "", "labels, to `FILE`.npy")
	v.Flags.StringVar(&o.names, "label-names", "", "names of the labels, to a text `FILE`")
	v.Flags.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	v.Flags.StringVar(&o.items, "items", "", "everything, to `FILE`.jsonl or .parquet")
	v.Flags.StringVar(&model, "model", "", "the model of a space, to `FILE`, and no items")
	usage.Matter(v.Flags, "codes", "keys", "items", "labels", "vectors", "where", "model", "json")
	return v.Does(func() error {
		if model != "" {
			return exportModel(v, model)
		}
		if err := o.check(); err != nil {
			return err
		}
		return v.Share(o.run)
	})
}

func (o *exporting) check() error {
	if o.codes+o.keys+o.labels+o.names+o.items == "" && len(o.vectors.List) == 0 {
		return exit.Usagef("export needs a file to write: --codes FILE.npy, --items FILE.jsonl, ...")
	}
	for flag, path := range map[string]string{"--codes": o.codes, "--labels": o.labels} {
		if path == "" || path == outfile.Stdout {
			continue
		}
		if err := checkNPY(flag, path); err != nil {
			return err
		}
	}
	for _, v := range o.vectors.List {
		if !slices.Contains([]string{".npy", ".npz"}, strings.ToLower(filepath.Ext(v.Value))) {
			return exit.Usagef("--vectors %s: a .npy is written, or a .npz of a sparse modality, not %s; --items writes whole items as .jsonl and .parquet", v.Value, term.FileKind(v.Value))
		}
	}
	switch ext := strings.ToLower(filepath.Ext(o.items)); ext {
	case ".jsonl", ".parquet", "": // without an extension, such as standard output
	default:
		return exit.Usagef("--items %s: a .jsonl or .parquet file is written, not %s", o.items, ext)
	}
	return o.CheckStdout(o.toStdout())
}

// toStdout reports whether a file is standard output.
func (o *exporting) toStdout() bool {
	return slices.Contains([]string{o.codes, o.keys, o.labels, o.names, o.items}, outfile.Stdout)
}

// run writes all files in one pass over the items.
func (o *exporting) run() (err error) {
	if o.rows, err = o.Collection.Count(o.Ctx, o.Filter.Expr); err != nil {
		return err
	}
	o.files = outfile.NewSet(o.Stdout)
	defer o.files.Discard()
	if err := o.openSinks(); err != nil {
		return err
	}
	n := 0
	for it, err := range o.Collection.Items(o.Ctx, o.Filter.Expr) {
		if err != nil {
			return err
		}
		o.Progress().Report("exporting", int64(n), int64(o.rows))
		for _, s := range o.sinks {
			if err := s.put(it); err != nil {
				return err
			}
		}
		n++
	}
	for _, s := range o.sinks {
		if s.close == nil {
			continue
		}
		if err := s.close(); err != nil {
			return err
		}
	}
	if err := o.files.Commit(); err != nil {
		return err
	}
	return o.TellBeside(o.toStdout(), map[string]int{"items": n}, "exported %s", term.Plural(n, "item",
		"items"))
}

// openSinks opens the files. What the collection may lack is checked before.
func (o *exporting) openSinks() error {
	type file struct {
		path string
		open func(f *outfile.File) (sink, error)
	}
	all := []file{{o.codes, o.codeSink}, {o.keys, o.keySink}, {o.labels, o.labelSink}, {o.names, o.nameSink}}
	for _, v := range o.vectors.List {
		m, err := o.FindModality("--vectors", v.Name)
		if err != nil {
			return err
		}
		if o.Schema.IndexOnly {
			return exit.Failedf("--vectors %s: collection %q is index-only: its items have no vectors here; export from the database that it is a copy of", v.Name, o.Collection.Name())
		}
		all = append(all, file{v.Value, func(f *outfile.File) (sink, error) {
			return o.vectorSink(f, v.Value,
				m)
		}})
	}
	for _, x := range append(all, file{o.items, o.itemSink}) {
		if x.path == "" {
			continue
		}
		f, err := o.files.Create(x.path)
		if err != nil {
			return err
		}
		s, err := x.open(f)
		if err != nil {
			return err
		}
		o.sinks = append(o.sinks, s)
	}
	return nil
}

func (o *exporting) codeSink(f *outfile.File) (sink, error) {
	stats, err := o.Trained()
	if err != nil {
		return sink{}, err
	}
	w, err := npy.NewWriter[uint8](f, o.rows, stats.Bits/8)
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

func (o *exporting) labelSink(f *outfile.File) (sink, error) {
	names, err := o.Collection.Labels(o.Ctx)
	if err != nil {
		return sink{}, err
	}
	if len(names) == 0 {
		return sink{}, exit.Failedf("--labels: collection %q knows no labels: there is no column to write",
			o.Collection.Name())
	}
	column := make(map[string]int, len(names))
	for i, name := range names {
		column[name] = i
	}
	w, err := npy.NewWriter[uint8](f, o.rows, len(names))
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

func (o *exporting) nameSink(f *outfile.File) (sink, error) {
	names, err := o.Collection.Labels(o.Ctx)
	for _, name := range names {
		if err == nil {
			err = writeLine(f, "--label-names: the label", name)
		}
	}
	return sink{put: func(*db.Item) error { return nil }}, err
}

func (o *exporting) keySink(f *outfile.File) (sink, error) {
	return sink{put: func(it *db.Item) error { return writeLine(f, "--keys: the key", it.Key) }}, nil
}

// writeLine writes a string to a file with one a line. It refuses strings that would
// not be read back unchanged.
func writeLine(f *outfile.File, what, s string) error {
	if strings.Contains(s, "\n") || strings.HasSuffix(s, "\r") || strings.HasPrefix(s, "\ufeff") {
		return exit.Failedf("%s %q does not fit on a line: use --items", what, s)
	}
	_, err := fmt.Fprintln(f, s)
	return err
}

// itemSink writes whole items.
func (o *exporting) itemSink(f *outfile.File) (sink, error) {
	if strings.EqualFold(filepath.Ext(o.items), ".parquet") {
		return o.parquetSink(f)
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
func (o *exporting) parquetSink(f *outfile.File) (sink, error) {
	if o.Schema.IndexOnly {
		return sink{}, exit.Failedf(
			"--items %s: collection %q is index-only: its items have no vectors here; write a .jsonl, or export from the database that it is a copy of", o.items, o.Collection.Name())
	}
	shape := &table.Shape{Code: o.Schema.Bits / 8}
	for _, m := range o.Schema.Modalities {
		shape.Vectors = append(shape.Vectors, table.Vector{Name: m.Name, Dim: m.Dim, Sparse: m.Sparse})
	}
	for _, d := range o.Schema.Fields {
		shape.Fields = append(shape.Fields, table.Field{Name: d.Name, Type: string(d.Type)})
	}
	w, err := parquet.NewItemWriter(f, shape)
	if err != nil {
		return sink{}, exit.Failedf("--items %s: %w; a .jsonl takes any names", o.items, err)
	}
	var out table.Item
	return sink{func(it *db.Item) error {
		out.Reset()
		out.Key, out.Labels, out.Payload, out.Code = it.Key, it.Labels, it.Payload, it.Code
		maps.Copy(out.Vectors, it.Vectors)
		for name, x := range it.Sparse {
			out.Sparse[name] = table.Sparse{Index: x.Index, Value: x.Value}
		}
		maps.Copy(out.Fields, it.Fields)
		return w.Write(&out)
	}, w.Close}, nil
}

// vectorSink writes the vectors of a modality: a .npz as scipy has sparse matrices, a .npy with all zeros.
func (o *exporting) vectorSink(f *outfile.File, path string, m db.Modality) (sink, error) {
	if strings.EqualFold(filepath.Ext(path), ".npz") {
		if !m.Sparse {
			return sink{}, exit.Failedf("--vectors %s=%s: a .npz is of a sparse modality: write a .npy", m.Name, path)
		}
		w, err := npy.NewCSRWriter(f, m.Dim)
		if err != nil {
			return sink{}, err
		}
		return sink{func(it *db.Item) error {
			x, ok := it.Sparse[m.Name]
			if !ok {
				return lacks(it, m)
			}
			return w.Write(x.Index, x.Value)
		}, w.Close}, nil
	}
	const most = 4 << 30 // of a dense file of a sparse modality, which is mostly zeros
	if bytes := 4 * int64(o.rows) * int64(m.Dim); m.Sparse && bytes > most {
		return sink{}, exit.Failedf(
			"--vectors %s=%s: with its zeros the sparse modality takes %s, more than %s: write a .npz",
			m.Name, path, term.Size(bytes), term.Size(most))
	}
	w, err := npy.NewWriter[float32](f, o.rows, m.Dim)
	if err != nil {
		return sink{}, err
	}
	expanded := make([]float32, m.Dim)
	return sink{func(it *db.Item) error {
		if x, ok := it.Vectors[m.Name]; ok {
			return w.Write(x)
		}
		x, ok := it.Sparse[m.Name]
		if !ok {
			return lacks(it, m)
		}
		clear(expanded)
		for e, j := range x.Index {
			expanded[j] = x.Value[e]
		}
		return w.Write(expanded)
	}, w.Close}, nil
}

func lacks(it *db.Item, m db.Modality) error {
	return exit.Failedf("--vectors: item %q has no vector of modality %q", it.Key, m.Name)
}
