package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
)

// importOptions are the flags of import.
type importOptions struct {
	common
	vectors                           flags.NamedList
	codes, labels, names, keys, field string
	items, index                      string
	keyColumn, labelSeparator         string
	labelColumns, fieldColumns        []string
	vectorColumns                     flags.NamedList
	stdin                             *source.Stdin // what - stands for
	model                             string        // file of a model, and no items
	merge, skip, dryRun, init         bool
	fromRow                           int  // -1: where the import was interrupted
	ignore                            bool // ignore values that the collection has no place for
}

func importCommand(e *env) *cobra.Command {
	o := importOptions{vectors: flags.NamedList{Kind: "NAME=FILE"}, vectorColumns: flags.NamedList{Kind: "MODALITY=COLUMN"}}
	onError := flags.OnError{Skip: &o.skip}
	cmd := &cobra.Command{
		Use:     "import DIR --vectors NAME=FILE...",
		Short:   "Bring items in from files",
		GroupID: groupItems,
		Long: usage.Prose(`
			Import stores items from files: whole items from one file, or a file for each
			part of the items, whose row i is item i. - is standard input.

			  --items FILE         whole items: .jsonl or .parquet of export --items, or a
			                       table of another program, .parquet, .jsonl or .csv
			  --vectors NAME=FILE  vectors of a modality, dense or sparse: .npy, .npz
			                       (FILE.npz:MEMBER), .csv, .jsonl (FILE.jsonl:MEMBER),
			                       .parquet (FILE.parquet:COLUMN), .mat of MATLAB v5 to v7
			                       (FILE.mat:VARIABLE). An array of one dimension is one
			                       vector
			  --codes FILE         packed codes of a codes-only collection: .npy of uint8
			  --labels FILE        a 0/1 matrix or class numbers (-1: none) in .npy, .npz, .mat
			                       or .csv; .parquet:COLUMN; or text, a line an item, labels
			                       separated by commas
			  --label-names FILE   names of the columns or classes, one a line
			  --keys FILE          keys, one a line; without it items are numbered
			  --fields FILE        .csv with a header NAME:TYPE,..., or .jsonl; an empty cell
			                       sets no field

			Import guesses what the columns of a table are. The key is the first of key, id,
			_id, uuid, path and filename with distinct values. Labels are the first of labels,
			label, tags, tag, class and category. Lists of numbers of one length are vectors.
			Other strings, numbers, bools and times are fields. A column with the name of a
			modality or field is that one. --dry-run prints the guesses and stores nothing. Flags
			replace the guesses of their kind: --key-column; --label-column (* stands for any
			text; a 0/1 column is a label); --vector-column; --field-column.
			--label-separator says what separates labels in a cell. A column without a place in
			the collection is an error; --ignore-unknown leaves it aside.

			An item replaces the stored item with its key. --merge changes only the parts that
			the files have.

			Import stores parts of 16 to 64 MiB, each in one commit; a smaller import is one
			commit. If an import is interrupted, its parts stay. Give the same command again to
			go on. If the files have changed, or come from standard input, --from-row says where
			to go on.

			A bad row ends the import. --on-error skip leaves bad rows out and prints the
			reasons on stderr. Files with different numbers of rows are always refused.

			--init creates the database and the collection first, with the modalities, bits and
			fields of the files, and prints them. Use init for other dimensions. --index names
			the fields to index: all, none, or a list; alter --index indexes fields later.

			--model FILE imports a model that export --model has written: a space of codes, in
			which all items get codes. The collection needs the modalities of the model.`),
		Example: usage.Example(`
			fddhdb import wiki.db --init --vectors image=train_image.npy \
			    --vectors text=train_text.npy --labels train_labels.npy
			fddhdb import news.db --init --vectors text=tfidf.npz --labels topics.txt
			fddhdb import shop.db --init --items products.parquet --index price,maker
			fddhdb import shop.db --init --items products.csv --key-column sku \
			    --label-column 'is_*' --vector-column image=embedding
			gzip -dc logs.jsonl.gz | fddhdb import logs.db --init --items -
			fddhdb import shop.db --items changes.jsonl --merge
			fddhdb import wiki.db --vectors image=new_image.npy --keys new_keys.txt \
			    --on-error skip
			fddhdb import wiki.db --keys keys.txt --labels better_labels.txt --merge
			fddhdb import news.db --model wiki.model`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.model != "" {
				return e.importModel(cmd, &o, args[0])
			}
			if cmd.Flags().Changed("label-separator") && o.labelSeparator == "" {
				return exit.Usagef("--label-separator \"\": the text between labels is expected, such as a comma")
			}
			if cmd.Flags().Changed("index") && o.index == "" {
				return exit.Usagef("--index \"\": all, none or the names of fields are expected")
			}
			return e.runImport(cmd, &o, args[0])
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	f.StringVar(&o.codes, "codes", "", "packed codes, a `FILE`.npy")
	f.StringVar(&o.labels, "labels", "", "labels, a `FILE`: a matrix, classes or text")
	f.StringVar(&o.names, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.keys, "keys", "", "keys of the items, a text `FILE`")
	f.StringVar(&o.field, "fields", "", "fields, a `FILE`.csv or .jsonl")
	f.StringVar(&o.items, "items", "", "whole items, a `FILE`.jsonl, .csv or .parquet")
	f.StringVar(&o.keyColumn, "key-column", "", "the `COLUMN` of --items that has the keys")
	f.StringArrayVar(&o.labelColumns, "label-column", nil, "a `COLUMN` of labels, or several with a *; repeat it for each")
	f.StringVar(&o.labelSeparator, "label-separator", "", "the `TEXT` between several labels in a cell or string (default: it is one label)")
	f.Var(&o.vectorColumns, "vector-column", "the vectors of a modality; repeat it for each")
	f.StringArrayVar(&o.fieldColumns, "field-column", nil, "a `COLUMN` that becomes a field, or FIELD=COLUMN; repeat it for each")
	f.BoolVar(&o.ignore, "ignore-unknown", false, "leave aside what the items have and the collection has not")
	f.BoolVar(&o.merge, "merge", false, "set only what the files have, of items that are there")
	f.Var(onError, "on-error", "what a bad row does: stop or skip")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, store nothing")
	f.IntVar(&o.fromRow, "from-row", -1, "begin at row `N`, from 0 (default: where this import was interrupted)")
	f.BoolVar(&o.init, "init", false, "create the database or the collection first")
	f.StringVar(&o.model, "model", "", "a model of export --model, a `FILE`, and no items")
	f.StringVar(&o.index, "index", "", "the fields that --init indexes: `all|none|LIST`")
	usage.Matter(cmd.Flags(), "init", "vectors", "labels", "keys", "items", "key-column", "label-column", "vector-column", "codes", "fields", "merge", "on-error", "dry-run")
	return cmd
}

func (e *env) runImport(cmd *cobra.Command, o *importOptions, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	start := time.Now()
	bar := e.NewProgress()
	defer bar.End()
	if err := e.readStdin(cmd.Context(), o, bar); err != nil {
		return err
	}
	if o.stdin != nil {
		defer o.stdin.Close()
	}
	l, err := e.load(cmd, o, dir, bar)
	bar.End()
	if l != nil {
		for _, v := range l.Vectors {
			if v.HasHeader() {
				e.Warnf("%s: its first line is a header, and no item", v.Path())
			}
		}
		if d := l.Whole; d != nil && d.Note() != "" {
			e.Warnf("%s", d.Note())
		}
		e.warnSkipped(&l.skipped)
	}
	if err != nil {
		return err
	}
	return e.reportImport(l, time.Since(start).Seconds())
}

// load imports the files into the collection of the flags. With an error it may also
// return the loader, which knows the skipped rows.
func (e *env) load(cmd *cobra.Command, o *importOptions, dir string, bar *term.Progress) (*loader, error) {
	switch {
	case o.init && o.dryRun:
		return e.rehearse(cmd, o, dir, bar)
	case o.init && e.isNew(cmd, o, dir):
		// Creating a collection cannot be undone, so failures must show before that.
		if _, err := e.rehearse(cmd, o, dir, bar); err != nil {
			return nil, err
		}
	}
	in, err := source.OpenFiles(o.files())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	l := &loader{Files: in, o: o, bar: bar, warnf: e.Warnf, id: idOf(cmd, in, o)}
	if o.init {
		return l, e.withNew(dir, func(d *db.DB) error { return l.loadNew(cmd, d) })
	}
	return l, e.withCollection(dir, &o.common, func(d *db.DB, c *db.Collection) error {
		return l.load(cmd.Context(), d, c)
	})
}

// isNew reports whether --init creates a collection in an existing database, and does
// not continue an interrupted import.
func (e *env) isNew(cmd *cobra.Command, o *importOptions, dir string) bool {
	is := false
	err := e.withDB(dir, func(d *db.DB) error {
		in, err := source.OpenFiles(o.files())
		if err != nil {
			return err
		}
		defer in.Close()
		l := &loader{Files: in, o: o, id: idOf(cmd, in, o)}
		is = !l.wasInterrupted(d)
		return nil
	})
	return is || err != nil && !errors.Is(err, db.ErrNotDatabase)
}

// rehearse is a dry run with --init: it creates the collection in a temporary folder.
func (e *env) rehearse(cmd *cobra.Command, o *importOptions, dir string, bar *term.Progress) (*loader, error) {
	dry := *o
	dry.dryRun = true
	in, err := source.OpenFiles(dry.files())
	if err != nil {
		return nil, err
	}
	defer in.Close()
	err = e.withDB(dir, func(d *db.DB) error {
		_, err := d.Collection(o.collection)
		if err == nil {
			return fmt.Errorf("%w: collection %q: import into it without --init, or name another one with --collection", db.ErrExists, o.collection)
		}
		if errors.Is(err, db.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil && !(errors.Is(err, db.ErrNotDatabase) && isEmpty(dir)) {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "fddhdb-dry-run-")
	if err != nil {
		return nil, err
	}
	l := &loader{Files: in, o: &dry, bar: bar, warnf: e.Warnf}
	err = e.withNew(filepath.Join(tmp, "db"), func(d *db.DB) error { return l.loadNew(cmd, d) })
	return l, errors.Join(err, os.RemoveAll(tmp))
}

// check checks that flags go together.
func (o *importOptions) check() error {
	if o.index != "" && !o.init {
		return exit.Usagef("--index is about --init: alter --index NAME makes an index of a field that is there")
	}
	parts := len(o.vectors.List) > 0 || o.codes != "" || o.labels != "" || o.field != ""
	switch {
	case o.items != "" && (parts || o.keys != "" || o.names != ""):
		return exit.Usagef("--items has whole items: the other files do not go with it; --merge adds to items that are there")
	case o.items == "" && len(o.columnFlags()) > 0:
		return exit.Usagef("%s is about the columns of --items, which is missing", o.columnFlags()[0])
	case o.fromStdin() > 1:
		return exit.Usagef("- is to be read twice: standard input is one file")
	case o.ignore && o.items == "":
		return exit.Usagef("--ignore-unknown is about --items, which is missing")
	case o.items != "" && o.merge && o.init:
		return exit.Usagef("--merge and --init: a new collection has no items to merge with")
	case o.items != "":
		return nil
	case !parts:
		return exit.Usagef("import needs a file: --items FILE, --vectors NAME=FILE, --codes FILE, --labels FILE or --fields FILE")
	case o.names != "" && o.labels == "":
		return exit.Usagef("--label-names names the labels of --labels, which is missing")
	case o.merge && o.keys == "":
		return exit.Usagef("--merge needs --keys FILE, which says what items to merge with, or --items")
	case o.merge && o.init:
		return exit.Usagef("--merge and --init: a new collection has no items to merge with")
	case o.init && o.codes != "" && len(o.vectors.List) > 0:
		return exit.Usagef("--vectors and --codes: a collection either learns its codes or is given them")
	case o.init && o.codes == "" && len(o.vectors.List) == 0:
		return exit.Usagef("--init needs --vectors or --codes, whose shapes say what collection to create, or --items")
	}
	return nil
}

// mapping returns what the flags say about the columns of --items.
func (o *importOptions) mapping() source.Mapping {
	m := source.Mapping{Key: o.keyColumn, Labels: o.labelColumns, Fields: o.fieldColumns, Separator: o.labelSeparator}
	for _, v := range o.vectorColumns.List {
		m.Vectors = append(m.Vectors, source.Mapped{Name: v.Name, Column: v.Value})
	}
	return m
}

// files returns the files that the flags name.
func (o *importOptions) files() source.FileNames {
	n := source.FileNames{
		Codes: o.codes, Labels: o.labels, LabelNames: o.names, Fields: o.field, Keys: o.keys,
		Items: o.input(o.items), Mapping: o.mapping(), Lenient: o.ignore, Declared: o.init,
	}
	for _, v := range o.vectors.List {
		n.Vectors = append(n.Vectors, source.VectorFile{Modality: v.Name, Input: o.input(v.Value)})
	}
	return n
}

// columnFlags returns the flags about columns that are given.
func (o *importOptions) columnFlags() (given []string) {
	if o.keyColumn != "" {
		given = append(given, "--key-column")
	}
	if len(o.labelColumns) > 0 {
		given = append(given, "--label-column")
	}
	if o.labelSeparator != "" {
		given = append(given, "--label-separator")
	}
	if len(o.vectorColumns.List) > 0 {
		given = append(given, "--vector-column")
	}
	if len(o.fieldColumns) > 0 {
		given = append(given, "--field-column")
	}
	return given
}
