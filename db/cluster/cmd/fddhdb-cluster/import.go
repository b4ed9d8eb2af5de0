package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// importOptions are the flags of import.
type importOptions struct {
	files          source.FileNames
	vectors        flags.NamedList
	vectorColumns  flags.NamedList
	items          string
	numberFrom     int64
	numbered, skip bool
	model          string
	activate       bool
}

func importCommand(e *env) *cobra.Command {
	o := importOptions{vectors: flags.NamedList{Kind: "NAME=FILE"},
		vectorColumns: flags.NamedList{Kind: "MODALITY=COLUMN"}}
	cmd := &cobra.Command{
		Use:     "import COLLECTION --items FILE",
		Short:   "Bring items in from files, or a model",
		GroupID: groupItems,
		Long: usage.Prose(`
			Import stores items from files: whole ones from one file, or parts from a file
			each, row i of every file belonging to item i. The files are those of fddhdb
			import, and fddhdb help import explains them: - is standard input.

			Every item has a key: --keys, a column of keys, or --number-from N, which numbers
			the rows. An item whose key is there already is replaced, so that an import that
			was interrupted is made again, whole.

			Everything is checked first, and if a row is bad nothing is stored. With
			--on-error skip bad rows are left out, and the reasons go to stderr. The import as
			a whole is not one commit: searches see items as they come.

			--model FILE brings in what fddhdb export --model or fddhdb-beam train has written:
			a space of codes, in which every shard gives its items the codes that they would
			have there. Searches go on meanwhile. --activate makes it the active space, which
			the first one always is.`),
		Example: usage.Example(`
			fddhdb-cluster import hashes --codes codes.npy --keys keys.txt
			fddhdb-cluster import shop --items products.parquet --key-column sku
			fddhdb-cluster import wiki --vectors image=image.npy --vectors text=text.npy \
			    --labels labels.npy --number-from 0
			gzip -dc logs.jsonl.gz | fddhdb-cluster import logs --items - --on-error skip
			fddhdb-cluster import wiki --model wiki.model --activate`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.numbered = cmd.Flags().Changed("number-from")
			if o.model != "" {
				return o.importModel(e, cmd, args[0])
			}
			if err := o.check(); err != nil {
				return err
			}
			return o.run(e, cmd.Context(), args[0])
		},
	}
	f := cmd.Flags()
	f.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	f.StringVar(&o.files.Codes, "codes", "", "packed codes, a `FILE`.npy")
	f.StringVar(&o.files.Labels, "labels", "", "labels, a `FILE`: a matrix, classes or text")
	f.StringVar(&o.files.LabelNames, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.files.Keys, "keys", "", "keys of the items, a text `FILE`")
	f.StringVar(&o.files.Fields, "fields", "", "fields, a `FILE`.csv or .jsonl")
	f.StringVar(&o.items, "items", "", "whole items, a `FILE`.jsonl, .csv, .parquet or .mat")
	f.StringVar(&o.files.Mapping.Key, "key-column", "", "the `COLUMN` of --items that has the keys")
	f.StringArrayVar(&o.files.Mapping.Labels, "label-column", nil,
		"a `COLUMN` of labels, or several with a *; repeat it for each")
	f.StringVar(&o.files.Mapping.Separator, "label-separator", "",
		"the `TEXT` between several labels in a cell or string (default: it is one label)")
	f.Var(&o.vectorColumns, "vector-column", "the vectors of a modality; repeat it for each")
	f.StringArrayVar(&o.files.Mapping.Fields, "field-column", nil,
		"a `COLUMN` that becomes a field, or FIELD=COLUMN; repeat it for each")
	f.BoolVar(&o.files.Lenient, "ignore-unknown", false,
		"leave aside what the items have and the collection has not")
	f.Int64Var(&o.numberFrom, "number-from", 0, "the keys are numbers: the first row has `N`")
	f.Var(flags.OnError{Skip: &o.skip}, "on-error",
		"what a bad row does: stop, and nothing is stored, or skip")
	f.StringVar(&o.model, "model", "", "a model of fddhdb export --model, a `FILE`, and no items")
	f.BoolVar(&o.activate, "activate", false, "make the space of --model the active one")
	return cmd
}

// check checks the combination of flags.
func (o *importOptions) check() error {
	f := &o.files
	parts := len(o.vectors.List) > 0 || f.Codes != "" || f.Labels != "" || f.Fields != ""
	columns := f.Mapping.Key != "" || len(f.Mapping.Labels)+len(f.Mapping.Fields)+len(
		o.vectorColumns.List) > 0 || f.Mapping.Separator != ""
	stdin := 0
	for _, file := range append([]flags.Named{{Value: o.items}}, o.vectors.List...) {
		if file.Value == "-" {
			stdin++
		}
	}
	switch {
	case o.activate:
		return exit.Usagef("--activate is about the space of --model, which is missing")
	case o.items != "" && (parts || f.Keys != "" || f.LabelNames != ""):
		return exit.Usagef("--items has whole items: the other files do not go with it")
	case o.items == "" && !parts:
		return exit.Usagef("import needs a file: --items FILE, --vectors NAME=FILE, --codes FILE, or --model FILE")
	case o.items == "" && columns:
		return exit.Usagef("--key-column, --label-column, --label-separator, --vector-column and --field-column are about the columns of --items, which is missing")
	case o.items == "" && f.Lenient:
		return exit.Usagef("--ignore-unknown is about --items, which is missing")
	case o.items == "" && f.Keys == "" && !o.numbered:
		return exit.Usagef("items need keys: --keys FILE has them, a line each, or --number-from 0 numbers the rows")
	case f.Keys != "" && o.numbered:
		return exit.Usagef("--keys and --number-from: one of them says the keys")
	case o.numberFrom < 0:
		return exit.Usagef("--number-from %d: 0 or more are possible", o.numberFrom)
	case f.LabelNames != "" && f.Labels == "":
		return exit.Usagef("--label-names names the labels of --labels, which is missing")
	case stdin > 1:
		return exit.Usagef("- is to be read twice: standard input is one file")
	}
	return nil
}

// An importing is a running import.
type importing struct {
	o     *importOptions
	names source.FileNames
	local api.Collection // empty, with the cluster collection's schema, to check rows against
	d     api.Database

	mu      sync.Mutex // guards skipped: shards refuse items at the same time
	skipped source.SkippedRows
}

func (o *importOptions) run(e *env, ctx context.Context, name string) error {
	begin := time.Now()
	bar := e.Progress()
	defer bar.End()
	im := &importing{o: o, names: o.files}
	in := func(file string) source.Input { return source.Input{Path: file, Name: file} }
	if o.items == "-" || slices.ContainsFunc(o.vectors.List,
		func(v flags.Named) bool { return v.Value == "-" }) {
		stdin, err := source.ReadStdin(ctx, e.stdin, o.items == "",
			func(bytes int64) { bar.Bytes("reading standard input", bytes, 0) })
		if err != nil {
			return err
		}
		defer stdin.Close()
		in = func(file string) source.Input {
			if file == "-" {
				return stdin.Input
			}
			return source.Input{Path: file, Name: file}
		}
	}
	if o.items != "" {
		im.names.Items = in(o.items)
	}
	for _, v := range o.vectors.List {
		im.names.Vectors = append(im.names.Vectors, source.VectorFile{Modality: v.Name, Input: in(v.Value)})
	}
	for _, v := range o.vectorColumns.List {
		im.names.Mapping.Vectors = append(im.names.Mapping.Vectors,
			source.Mapped{Name: v.Name, Column: v.Value})
	}
	return e.withCollection(ctx, name, func(ctx context.Context, c *cluster.Client,
		coll *cluster.Collection) error {
		schema, err := coll.Schema(ctx)
		if err != nil {
			return e.noCollection(ctx, c, name, err)
		}
		d, err := db.Open("import", &db.Options{FS: vfs.NewMem()})
		if err != nil {
			return err
		}
		im.d = api.Folder(d, nil)
		defer im.d.Close()
		if im.local, err = im.d.CreateCollection(ctx, name, schema); err != nil {
			return err
		}
		if !o.skip {
			if err := im.rehearse(ctx, e, bar); err != nil {
				return err
			}
		}
		n, err := im.store(ctx, e, coll, bar)
		bar.End()
		e.warnSkipped(&im.skipped)
		if err != nil {
			if errors.Is(err, db.ErrInvalid) {
				err = exit.Failedf("%w", err)
			}
			return exit.Wrap(err, "stored %s; the same import may be made again",
				term.Plural(n, "item", "items"))
		}
		took := time.Since(begin).Seconds()
		if e.json {
			return e.PrintJSON(struct {
				Items   int                     `json:"items"`
				Skipped int                     `json:"skipped"`
				Seconds float64                 `json:"seconds"`
				Rate    float64                 `json:"items_per_second"`
				Reasons []*source.SkippedReason `json:"skipped_reasons,omitempty"`
			}{n, im.skipped.N, took, float64(n) / took, im.skipped.Groups})
		}
		skipped := ""
		if im.skipped.N > 0 {
			skipped = ", skipped " + term.Thousands(im.skipped.N)
		}
		e.Printf("imported %s%s in %s\n", term.Plural(n, "item", "items"), skipped, term.Seconds(took))
		return nil
	})
}

// open opens the files and checks their shapes.
func (im *importing) open(ctx context.Context) (*source.Files, error) {
	files, err := source.OpenFiles(im.names)
	if err != nil {
		return nil, err
	}
	if err := files.Check(ctx, im.local, false); err != nil {
		files.Close()
		return nil, err
	}
	return files, nil
}

// rehearse reads all rows and checks them.
func (im *importing) rehearse(ctx context.Context, e *env, bar *term.Progress) error {
	files, err := im.open(ctx)
	if err != nil {
		return err
	}
	defer files.Close()
	for _, v := range files.Vectors {
		if v.HasHeader() {
			e.warnf("%s: its first line is a header, and no item", v.Path())
		}
	}
	if d := files.Whole; d != nil && d.Note() != "" {
		e.warnf("%s", d.Note())
	}
	rows := int64(max(0, files.Rows()))
	for row, err := range im.rows(ctx, files) {
		if err != nil {
			return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
		}
		if row.n%1000 == 0 {
			bar.Report("checking", int64(row.n), rows)
		}
	}
	return nil
}

// store stores the good rows.
func (im *importing) store(ctx context.Context, e *env, coll *cluster.Collection,
	bar *term.Progress) (int, error) {
	files, err := im.open(ctx)
	if err != nil {
		return 0, err
	}
	defer files.Close()
	rows := int64(max(0, files.Rows()))
	items := func(yield func(*db.Item, error) bool) {
		for row, err := range im.rows(ctx, files) {
			var bad *source.RowError
			if errors.As(err, &bad) && im.o.skip {
				im.skip(row.n, message(err))
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(row.item, nil) {
				return
			}
		}
	}
	o := cluster.ImportOptions{Progress: func(_ string, n, _ int64) { bar.Report("storing", n, rows) }}
	if im.o.skip {
		o.Refused = func(it *db.Item, why error) error {
			if !errors.Is(why, db.ErrInvalid) {
				return why
			}
			im.skip(-1, message(exit.Failedf("item %q: %w", it.Key, why)))
			return nil
		}
	}
	return coll.Import(ctx, items, o)
}

func (im *importing) skip(row int, why string) {
	im.mu.Lock()
	defer im.mu.Unlock()
	im.skipped.Add(row, why)
}

// A row is an item with its number. It shares no memory with other rows.
type row struct {
	n    int
	item *db.Item
}

// errEnough ends the reading of rows.
var errEnough = errors.New("enough")

// rows yields the rows. An error of one row is a *source.RowError; any other error ends the rows.
func (im *importing) rows(ctx context.Context, files *source.Files) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		n := -1
		err := files.Pipeline(ctx, 0, func(r *source.Row) error {
			n++
			err := r.Err
			var own source.Row
			if err == nil {
				own.Set(&r.Item, nil)
				switch it := &own.Item; {
				case im.o.numbered && it.Key != "":
					err = &source.RowError{Err: exit.Failedf(
						"%s: row %d has the key %q, and --number-from would give it another", files.Names(),
						n, it.Key)}
				case im.o.numbered:
					it.Key = strconv.FormatInt(im.o.numberFrom+int64(n), 10)
				case it.Key == "":
					err = &source.RowError{Err: exit.Failedf(
						"%s: row %d has no key: --key-column names the column of keys, --number-from 0 numbers the rows", files.Names(), n)}
				}
			}
			if err == nil {
				if err = im.d.NewBatch().Put(im.local, &own.Item); err != nil { // checks it as its shard will
					err = &source.RowError{Err: exit.Failedf("%s: row %d: %s", files.Names(), n,
						exit.Reason(err.Error()))}
				}
			}
			if !yield(row{n, &own.Item}, err) {
				return errEnough
			}
			return nil
		})
		if err != nil && err != errEnough && err != io.EOF {
			yield(row{n: n}, err)
		}
	}
}

func (o *importOptions) importModel(e *env, cmd *cobra.Command, name string) error {
	var others []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(f.Name) == nil && f.Name != "model" && f.Name != "activate" {
			others = append(others, "--"+f.Name)
		}
	})
	if len(others) > 0 {
		return exit.Usagef("--model is about a model and not about items: %s does not go with it",
			strings.Join(others, ", "))
	}
	f, err := os.Open(o.model)
	if err != nil {
		return exit.Failedf("--model: %w", err)
	}
	defer f.Close()
	bar := e.Progress()
	defer bar.End()
	return e.withCollection(cmd.Context(), name, func(ctx context.Context, c *cluster.Client,
		coll *cluster.Collection) error {
		ctx, cancel := context.WithTimeout(ctx, forever)
		defer cancel()
		bar.Report("making codes", 0, 0)
		space, err := coll.ImportModel(ctx, f, o.activate)
		bar.End()
		switch {
		case errors.Is(err, db.ErrNotFound):
			return e.noCollection(ctx, c, name, err)
		case errors.Is(err, db.ErrInvalid): // the command line is right
			return exit.Failedf("--model %s: %w", o.model, err)
		case err != nil:
			return err
		}
		return e.printSpace(ctx, coll, space, "")
	})
}
