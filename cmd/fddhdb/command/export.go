package command

import (
	"context"
	"fmt"
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
	"github.com/fddhdb/fddhdb/files/npy"
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
	if o.codes == "" && o.keys == "" && o.labels == "" && o.names == "" && o.items == "" && len(o.vectors.List) == 0 {
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
func (o *exportOptions) run(ctx context.Context, c *db.Collection, files outfile.Set, bar *term.Progress) (int, error) {
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
	if err := add(o.labels, func(f *outfile.File) (sink, error) { return labelSink(f, c, items) }); err != nil {
		return nil, err
	}
	if err := add(o.names, func(f *outfile.File) (sink, error) { return nameSink(f, c) }); err != nil {
		return nil, err
	}
	for i, v := range o.vectors.List {
		if err := add(v.Value, func(f *outfile.File) (sink, error) { return vectorSink(f, v.Value, modalities[i], items) }); err != nil {
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
		return sink{}, exit.Failedf("--labels: collection %q knows no labels: there is no column to write", c.Name())
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
