package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/textform"
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
	o := importOptions{vectors: flags.NamedList{Kind: "NAME=FILE"},
		vectorColumns: flags.NamedList{Kind: "MODALITY=COLUMN"}}
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
	f.StringArrayVar(&o.labelColumns, "label-column", nil,
		"a `COLUMN` of labels, or several with a *; repeat it for each")
	f.StringVar(&o.labelSeparator, "label-separator", "",
		"the `TEXT` between several labels in a cell or string (default: it is one label)")
	f.Var(&o.vectorColumns, "vector-column", "the vectors of a modality; repeat it for each")
	f.StringArrayVar(&o.fieldColumns, "field-column", nil,
		"a `COLUMN` that becomes a field, or FIELD=COLUMN; repeat it for each")
	f.BoolVar(&o.ignore, "ignore-unknown", false,
		"leave aside what the items have and the collection has not")
	f.BoolVar(&o.merge, "merge", false, "set only what the files have, of items that are there")
	f.Var(onError, "on-error", "what a bad row does: stop or skip")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, store nothing")
	f.IntVar(&o.fromRow, "from-row", -1,
		"begin at row `N`, from 0 (default: where this import was interrupted)")
	f.BoolVar(&o.init, "init", false, "create the database or the collection first")
	f.StringVar(&o.model, "model", "", "a model of export --model, a `FILE`, and no items")
	f.StringVar(&o.index, "index", "", "the fields that --init indexes: `all|none|LIST`")
	usage.Matter(cmd.Flags(), "init", "vectors", "labels", "keys", "items", "key-column", "label-column",
		"vector-column", "codes", "fields", "merge", "on-error", "dry-run")
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
func (e *env) rehearse(cmd *cobra.Command, o *importOptions, dir string,
	bar *term.Progress) (*loader, error) {
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
	m := source.Mapping{Key: o.keyColumn, Labels: o.labelColumns, Fields: o.fieldColumns,
		Separator: o.labelSeparator}
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

// A loader stores the items of files.
type loader struct {
	*source.Files
	o       *importOptions
	bar     *term.Progress
	warnf   func(format string, args ...any)
	id      importID // zero: the import cannot go on after an interruption
	from    int      // the row to begin with
	before  int      // items that the import had stored when it was interrupted
	items   int      // stored with these, or checked in a dry run
	skipped source.SkippedRows
	created *db.Schema // schema of the collection of --init
}

// loadNew creates the collection for the files and loads them. If an interrupted import
// of the same files has created it already, it goes on with that one.
func (l *loader) loadNew(cmd *cobra.Command, d *db.DB) error {
	schema, err := l.Schema()
	if err == nil && l.o.index != "" {
		schema.Fields, err = indexed(schema.Fields, l.o.index)
	}
	if err != nil {
		return err
	}
	c, err := createCollection(cmd, d, l.o.collection, schema)
	switch {
	case errors.Is(err, db.ErrExists) && l.wasInterrupted(d):
		c, err = d.Collection(l.o.collection)
	case err == nil && l.id != (importID{}):
		// From here on the same command goes on with this collection.
		b := d.NewBatch()
		if err = l.mark(b, c, 0, 0); err == nil {
			err = b.Commit(cmd.Context())
		}
	}
	if err != nil {
		return err
	}
	l.created = &schema
	return l.load(cmd.Context(), d, c)
}

// indexed returns fields, with an index of those that --index names: all, none or a list.
func indexed(fields []db.Field, index string) ([]db.Field, error) {
	list := strings.Split(index, ",")
	switch index {
	case "none":
		list = nil
	case "all":
		list = namesOf(fields)
	}
	out := slices.Clone(fields)
	for i := range out {
		out[i].Indexed = slices.Contains(list, out[i].Name)
	}
	for _, name := range list {
		if !slices.Contains(namesOf(fields), name) {
			return nil, exit.Usagef("--index: the files have no field %q: all, none and lists of %s are possible", name, term.OrDash(strings.Join(namesOf(fields), ",")))
		}
	}
	return out, nil
}

func namesOf(fields []db.Field) (names []string) {
	for _, f := range fields {
		names = append(names, f.Name)
	}
	return names
}

// load stores the items of all rows.
func (l *loader) load(ctx context.Context, d *db.DB, c *db.Collection) error {
	if err := l.Check(c, l.o.merge); err != nil {
		return err
	}
	p, err := l.newParts(ctx, d, c)
	if err != nil {
		return err
	}
	if l.Labels != nil && l.Labels.Ordered {
		if err := p.b.RegisterLabels(c, l.Labels.Names()); err != nil {
			return exit.Failedf("%s: %s", cmp.Or(l.o.names, l.Labels.Path()), exit.Reason(err.Error()))
		}
	}
	err = l.each(ctx, func(row int, item *db.Item, err error) error {
		if err == nil {
			if err = p.put(item); err == nil && p.b.Full() {
				return p.commit(true)
			}
			if errors.Is(err, db.ErrInvalid) {
				err = &source.RowError{Err: exit.Failedf("%s: row %d: %s", l.Names(), row,
					exit.Reason(err.Error()))}
			}
		}
		var bad *source.RowError
		if l.o.skip && errors.As(err, &bad) {
			p.skip(exit.Message(err))
			return nil
		}
		return err
	})
	if err == nil {
		l.bar.Report("storing", 0, 0)
		err = p.end()
	}
	if err != nil {
		return p.failed(err)
	}
	return nil
}

// each calls f with the rows from the one at which the import goes on. f gets an item,
// which is valid until f returns, or the error of the row. The next rows are read while
// f works.
func (l *loader) each(ctx context.Context, f func(row int, item *db.Item, err error) error) error {
	rows := l.Rows()
	row := l.from
	return l.Pipeline(ctx, l.from, func(r *source.Row) error {
		if (row-l.from)%1000 == 0 {
			l.bar.Report("reading", int64(row-l.from), int64(max(0, rows-l.from)))
		}
		row++
		return f(row-1, &r.Item, r.Err)
	})
}

// An importMark is the value of the mark that an import leaves with each part, as JSON. The same
// import goes on there.
type importMark struct {
	Files   string                  `json:"files"` // importID.files
	Row     int                     `json:"row"`   // the first row that is not in
	Items   int                     `json:"items"` // that are in
	Skipped []*source.SkippedReason `json:"skipped,omitempty"`
}

// maxReason is the length to which the reasons for skipped rows are cut in a mark, in bytes, so that
// those of source.SkippedRows fit.
const maxReason = 256

// name returns the name of the mark of an import into a collection.
func (id importID) name(c *db.Collection) string {
	return fmt.Sprintf("fddhdb import/%d/%s", c.ID(), id.command)
}

// markIn returns the mark of the import, nil if there is none.
func (l *loader) markIn(d *db.DB, c *db.Collection) (*importMark, error) {
	if l.id == (importID{}) {
		return nil, nil
	}
	b, err := d.Mark(l.id.name(c))
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	m := &importMark{}
	if err == nil {
		err = json.Unmarshal(b, m)
	}
	return m, err
}

// parts stores the rows of an import. It commits whenever the batch is full, with a mark of how
// far it is, so that an import takes little memory and the same command goes on after an
// interruption. A dry run commits nothing.
type parts struct {
	ctx    context.Context
	l      *loader
	d      *db.DB
	c      *db.Collection
	b      *db.Batch
	row    int  // the next row
	in     int  // the first row that is not in
	items  int  // in b
	marked bool // the database has a mark of this import
}

// newParts returns parts that begin at the row of --from-row, or where the same import was
// interrupted, and tells of the latter.
func (l *loader) newParts(ctx context.Context, d *db.DB, c *db.Collection) (*parts, error) {
	p := &parts{ctx: ctx, l: l, d: d, c: c, b: d.NewBatch()}
	mark, err := l.markIn(d, c)
	if err != nil {
		return nil, err
	}
	p.marked = mark != nil
	switch {
	case l.o.fromRow >= 0:
		l.from = l.o.fromRow
		if rows := l.Rows(); rows >= 0 && l.from > rows {
			return nil, exit.Usagef("--from-row %d: the files have %s", l.from,
				term.Plural(rows, "row", "rows"))
		}
	case l.o.dryRun || mark == nil || mark.Row == 0:
	case mark.Files != l.id.files:
		return nil, exit.Failedf("%s: changed since this import was interrupted, when %s: --from-row %d goes on there, --from-row 0 begins anew",
			l.Names(), l.rowsIn(mark.Row), mark.Row)
	default:
		l.from, l.before, l.items = mark.Row, mark.Items, mark.Items
		l.skipped.GoOn(mark.Skipped)
		l.warnf("going on at row %s, where this import was interrupted (--from-row 0 begins anew)",
			l.ofRows(l.from))
	}
	p.row, p.in = l.from, l.from
	return p, nil
}

// ofRows returns a number of rows, and of how many where that is known.
func (l *loader) ofRows(n int) string {
	if rows := l.Rows(); rows >= 0 {
		return term.Thousands(n) + " of " + term.Thousands(rows)
	}
	return term.Thousands(n)
}

// rowsIn returns the words for so many rows being stored.
func (l *loader) rowsIn(n int) string {
	if rows := l.Rows(); rows >= 0 {
		return l.ofRows(n) + " rows are in"
	}
	return term.Plural(n, "row is in", "rows are in")
}

// put adds the item of the next row. One that gives ErrInvalid is left out: skip may follow.
func (p *parts) put(item *db.Item) error {
	if p.l.o.skip { // a batch is lost after a bad item
		if err := p.add(p.d.NewBatch(), item); err != nil {
			return err
		}
	}
	if err := p.add(p.b, item); err != nil {
		return err
	}
	p.items++
	p.row++
	return nil
}

func (p *parts) add(b *db.Batch, item *db.Item) error {
	if p.l.o.merge {
		return b.Merge(p.c, item)
	}
	return b.Put(p.c, item)
}

// skip leaves out the next row.
func (p *parts) skip(why string) {
	p.l.skipped.Add(p.row, why)
	p.row++
}

// commit stores the batch, with a mark or without one.
func (p *parts) commit(mark bool) error {
	l := p.l
	if !l.o.dryRun {
		if mark = mark && l.id != (importID{}); mark {
			if err := l.mark(p.b, p.c, p.row, l.items+p.items); err != nil {
				return err
			}
		}
		if err := p.b.Commit(p.ctx); err != nil {
			if errors.Is(err, db.ErrInvalid) {
				err = exit.Failedf("%w", err)
			}
			return err
		}
	}
	p.marked = p.marked || mark
	l.items += p.items
	p.in, p.items, p.b = p.row, 0, p.d.NewBatch()
	return nil
}

// mark adds the mark to a batch.
func (l *loader) mark(b *db.Batch, c *db.Collection, row, items int) error {
	m := importMark{Files: l.id.files, Row: row, Items: items}
	for _, g := range l.skipped.Groups {
		short := *g
		short.Reason = short.Reason[:min(len(short.Reason), maxReason)]
		m.Skipped = append(m.Skipped, &short)
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Mark(l.id.name(c), value)
}

// end stores what is left, and takes away the mark: so an import that is interrupted before
// that stores nothing twice.
func (p *parts) end() error {
	if p.b.Len() > 0 {
		if err := p.commit(p.marked); err != nil {
			return err
		}
	}
	if p.l.o.dryRun || !p.marked {
		return nil
	}
	p.b.Mark(p.l.id.name(p.c), nil)
	return p.b.Commit(p.ctx)
}

// failed returns an error with what is in, and how to go on.
func (p *parts) failed(err error) error {
	var bad *source.RowError
	isBad := errors.As(err, &bad)
	switch {
	case isBad && p.in == 0:
		return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
	case p.in == 0:
		return err
	case isBad:
		return &partlyError{exit.Failedf("%w", err), fmt.Sprintf(
			"%s: --on-error skip leaves such rows out and goes on; with a file that you have corrected, --from-row %d goes on", p.l.rowsIn(p.in), p.in)}
	case p.l.id == (importID{}):
		return &partlyError{err, fmt.Sprintf("%s: with the same input, --from-row %d goes on",
			p.l.rowsIn(p.in), p.in)}
	}
	return &partlyError{err, p.l.rowsIn(p.in) + ": give the same command again to go on"}
}

// A partlyError ends an import of which a part is stored.
type partlyError struct {
	err error
	in  string // what is stored, and how to go on
}

func (e *partlyError) Error() string { return e.err.Error() + "; " + e.in }
func (e *partlyError) Unwrap() error { return e.err }

func (e *env) reportImport(l *loader, took float64) error {
	rate := 0.0
	if took > 0 {
		rate = float64(l.items-l.before) / took
	}
	var columns []source.MappedColumn
	if d := l.Whole; d != nil {
		columns = d.Mapping()
	}
	if l.o.json {
		return e.PrintJSON(struct {
			Items   int                     `json:"items"`
			Skipped int                     `json:"skipped"`
			Seconds float64                 `json:"seconds"`
			Rate    float64                 `json:"items_per_second"`
			DryRun  bool                    `json:"dry_run,omitempty"`
			From    int                     `json:"resumed_at,omitempty"`
			Reasons []*source.SkippedReason `json:"skipped_reasons,omitempty"`
			Columns []source.MappedColumn   `json:"columns,omitempty"`
		}{l.items, l.skipped.N, took, rate, l.o.dryRun, l.from, l.skipped.Groups, columns})
	}
	if l.o.dryRun && columns != nil {
		e.printColumns(columns)
	}
	if l.created != nil && l.Whole != nil {
		// The user did not declare this schema: it was derived from the data.
		e.Printf("collection %s, from %s: %s\n", l.o.collection, l.o.input(l.o.items).Name,
			textform.DescribeSchema(*l.created))
	}
	skipped := ""
	if l.skipped.N > 0 {
		skipped = fmt.Sprintf(", skipped %s", term.Thousands(l.skipped.N))
	}
	if l.o.dryRun {
		e.Printf("%s can be imported%s; nothing was stored\n", term.Plural(l.items, "item", "items"), skipped)
		return nil
	}
	e.Printf("imported %s%s in %s\n", term.Plural(l.items, "item", "items"), skipped, term.Seconds(took))
	return nil
}

// printColumns prints what the columns of a table become.
func (e *env) printColumns(columns []source.MappedColumn) {
	rows := make([][]any, len(columns))
	for i, c := range columns {
		rows[i] = []any{term.TextCell(c.Column), c.Type, term.TextCell(c.Becomes), term.TextCell(c.Example)}
	}
	e.PrintTable([]term.Column{term.Left("column"), term.Left("type"), term.Left("becomes"),
		term.Left("example")}, rows)
}

// warnSkipped prints why rows were skipped.
func (e *env) warnSkipped(s *source.SkippedRows) {
	for _, g := range s.Groups {
		more := g.Count - 1
		if more == 0 {
			e.Warnf("skipped: %s", g.Reason)
			continue
		}
		var rows []string
		for _, row := range g.Rows[1:] {
			rows = append(rows, term.Thousands(row))
		}
		if more > len(rows) {
			rows = append(rows, "...")
		}
		e.Warnf("skipped: %s; and %s like it: row %s", g.Reason, term.Thousands(more),
			strings.Join(rows, ", "))
	}
}
