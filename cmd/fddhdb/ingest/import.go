package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/forms"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/importer"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// An importing is a run of import.
type importing struct {
	*run.Verb
	vectors                           flags.NamedList
	names                             source.FileNames // but for those of vectors
	items, texts, index, words, model string
	vectorColumns                     flags.NamedList
	fieldColumns                      []string
	skip, dryRun, makes               bool
	sync                              bool   // delete items of pictures that are gone
	encoder                           string // of the pictures of a new collection
	fromRow, numberFrom               int
	stdin                             *source.Stdin // what - stands for

	*source.Files
	store   rows.Import
	id      importID   // zero: the import cannot go on after an interruption
	created *db.Schema // schema of the collection of --init
	skipped source.SkippedRows
	begun   rows.Done // where this run began, after an interruption
	marked  bool      // the database has a mark of this import
	gone    []string  // keys that --sync deletes
}

func ImportCommand(e *run.Env) *cobra.Command {
	v := e.NewVerb(run.GroupItems, "import DIR (FILE | FOLDER | --vectors NAME=FILE)", "Bring items in from files", `
		Import stores items from files: whole items from one file, or a file for each
		part of the items, whose row i is item i. - is standard input. FILE alone is that of
		--items, and FOLDER that of --pictures.

		  --items FILE         whole items: .jsonl or .parquet of export --items, or a
		                       table of another program, .parquet, .jsonl, .json (an
		                       array of objects), or .csv (commas, semicolons or tabs);
		                       .npy or .npz, vectors alone
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
		  --keys FILE          keys, one a line; without it items get the next free numbers,
		                       or from N on with --number-from N
		  --fields FILE        .csv with a header NAME:TYPE,..., or .jsonl; an empty cell
		                       sets no field
		  --pictures FOLDER    the .jpg, .jpeg, .png, .gif and .webp in a folder and the
		                       folders below it
		  --texts FILE         texts, one a line of a .txt, or the column --text-column of a
		                       .jsonl, .csv or .parquet, for a collection with a --hash

		Any file may be compressed: .jsonl.gz, .npy.zst.

		Import guesses what the columns of a table are. The key is the first of key, id,
		_id, uuid, path and filename with distinct values. Labels are the first of labels,
		label, tags, tag, class and category. Lists of numbers of one length are vectors, and
		so are 8 or more columns of numbers d0, d1, ... (--vector-column 'image=d*' takes
		fewer). Other strings, numbers, bools and times are fields. A column with the name of a
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
		reasons on stderr. Files with different numbers of rows are always refused. A row
		whose key an earlier row has is bad, too; --on-duplicate first or last stores one of
		them.

		--pictures stores an item for each picture. The key is the path below FOLDER. Fields
		are width, height, bytes, modified, and what the camera noted: taken_at and camera.
		  --encoder COMMAND  makes the vectors in a new collection (see encoder). Without it
		                     they are of shapes and colours, so that pictures find
		                     pictures that look alike
		  --hash NAME        makes codes instead, by which dups finds copies: pdq, phash or
		                     dhash. pdq adds the field quality, from 0 to 100: below 50 there
		                     is little to see
		  --folder-labels    labels a picture with the folders on its path
		  --thumbnails       stores a JPEG of at most 256 pixels a side as the payload
		  --sync             deletes the pictures of the collection whose files are gone:
		                     from FOLDER, and from others that were imported
		Give the same command again when pictures have come or changed: import leaves out
		those that are stored as they are, and keeps labels and fields that you have added.
		A picture that cannot be read is left out and named, unless --on-error stop is
		given. Links to folders are not followed, nor are files changed.

		--texts makes codes by simhash. A text without a key column has its number, from 1;
		columns become fields if --field-column names them. A text without words is left
		out, as a broken picture is.

		--init creates the database and the collection first, with the modalities, bits and
		fields of the files, and prints them. Use init for other dimensions. --index names
		the fields to index: all, none, or a list, and --index-words the text fields whose
		words to index, for CONTAINS and LIKE; alter has both flags for later.

		--model FILE imports a model that export --model has written: a space of codes, in
		which all items get codes. The collection needs the modalities of the model.`, `
		fddhdb import wiki.db --init --vectors image=train_image.npy \
		    --vectors text=train_text.npy --labels train_labels.npy
		fddhdb import shop.db products.parquet --init --index price,maker
		fddhdb import photos.db ~/Pictures --init --thumbnails
		fddhdb import copies.db --init --pictures ~/Pictures --hash pdq
		fddhdb import mails.db --init --texts mails.jsonl --text-column body --key-column id
		fddhdb import news.db --init --vectors text=tfidf.npz --labels topics.txt
		fddhdb import shop.db --init --items products.csv --key-column sku \
		    --label-column 'is_*' --vector-column image=embedding
		fddhdb import logs.db --init --items logs.jsonl.gz
		fddhdb import shop.db --items changes.jsonl --merge
		fddhdb import wiki.db --vectors image=new_image.npy --keys new_keys.txt \
		    --on-error skip
		fddhdb import wiki.db --keys keys.txt --labels better_labels.txt --merge
		fddhdb import news.db --model wiki.model`).OnCollection()
	o, f := newImporting(v), v.Flags
	f.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	f.StringVar(&o.names.Codes, "codes", "", "packed codes, a `FILE`.npy")
	f.StringVar(&o.names.Labels, "labels", "", "labels, a `FILE`: a matrix, classes or text")
	f.StringVar(&o.names.LabelNames, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.names.Keys, "keys", "", "keys of the items, a text `FILE`")
	f.StringVar(&o.names.Fields, "fields", "", "fields, a `FILE`.csv or .jsonl")
	f.StringVar(&o.items, "items", "", "whole items, a `FILE`.jsonl, .json, .csv, .parquet or .npy")
	f.StringVar(&o.names.Pictures.Folder, "pictures", "", "pictures, a `FOLDER`")
	f.StringVar(&o.encoder, "encoder", "", "with --init: the `COMMAND` that makes vectors of the pictures")
	f.BoolVar(&o.names.Pictures.Labels, "folder-labels", false, "label a picture with the folders on its path")
	f.BoolVar(&o.names.Pictures.Thumbnails, "thumbnails", false, "store a small picture as the payload")
	f.BoolVar(&o.sync, "sync", false, "delete the pictures of the collection whose files are gone")
	f.StringVar(&o.texts, "texts", "", "texts, a `FILE`.txt, .jsonl, .csv or .parquet")
	f.StringVar(&o.names.TextColumn, "text-column", "text", "the `COLUMN` of --texts that has the texts")
	f.StringVar(&o.names.Hash, "hash", "", "make codes by `NAME`: pdq, phash, dhash or simhash (default: the collection's)")
	opt := &o.names.Options
	say := &opt.Mapping
	f.StringVar(&say.Key, "key-column", "", "the `COLUMN` of --items or --texts that has the keys")
	f.StringArrayVar(&say.Labels, "label-column", nil,
		"a `COLUMN` of labels, or several with a *; repeat it for each")
	f.StringVar(&say.Separator, "label-separator", "",
		"the `TEXT` between several labels in a cell or string (default: it is one label)")
	f.Var(&o.vectorColumns, "vector-column", "the vectors of a modality; repeat it for each")
	f.StringArrayVar(&o.fieldColumns, "field-column", nil,
		"a `COLUMN` that becomes a field, or FIELD=COLUMN; repeat it for each")
	f.BoolVar(&opt.IgnoreUnknown, "ignore-unknown", false,
		"leave aside what the items have and the collection has not")
	f.BoolVar(&opt.Merge, "merge", false, "set only what the files have, of items that are there")
	f.Var(flags.OnError{Skip: &o.skip}, "on-error", "what a bad row does: stop or skip")
	f.Var(flags.Choice[importer.Duplicates]{Words: []string{"error", "first", "last"},
		Value: &opt.OnDuplicate}, "on-duplicate", "which row with a key that comes twice is stored, or neither")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, store nothing")
	v.Count(&o.numberFrom, "number-from", 0, 0, "keys are numbers: row 0 has `N` (default: the next free ones)")
	v.Count(&o.fromRow, "from-row", 0, 0, "begin at row `N`, from 0 (default: where this import was interrupted)")
	f.BoolVar(&o.makes, "init", false, "create the database or the collection first")
	f.StringVar(&o.model, "model", "", "a model of export --model, a `FILE`, and no items")
	f.StringVar(&o.index, "index", "", "the fields that --init indexes: `all|none|LIST`")
	f.StringVar(&o.words, "index-words", "", "the text fields whose words --init indexes: `all|none|LIST`")
	usage.Matter(f, "init", "vectors", "labels", "keys", "items", "key-column", "label-column",
		"vector-column", "folder-labels", "thumbnails", "merge", "on-error", "on-duplicate", "dry-run",
		"pictures", "texts", "hash", "encoder", "sync")
	return v.Does(func() error {
		if o.model != "" {
			return importModel(v, o.model)
		}
		return o.run()
	})
}

func newImporting(v *run.Verb) *importing {
	return &importing{Verb: v, vectors: flags.NamedList{Kind: "NAME=FILE"},
		vectorColumns: flags.NamedList{Kind: "MODALITY=COLUMN"}}
}

// named sets the flag of a file or folder that is named without one.
func (o *importing) named() error {
	if len(o.Args) < 2 {
		return nil
	}
	file, more := o.Args[1], o.Args[2:]
	flag := "items"
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		flag = "pictures"
	}
	switch {
	case len(more) > 0:
		return exit.Usagef("import takes one file of whole items, and %q and %q are given: import one after the other; files of parts of items go by --vectors NAME=FILE, --labels and --keys",
			file, more[0])
	case file == "":
		return exit.Usagef("\"\": the name of a file or folder is expected")
	case o.Given(flag):
		return exit.Usagef("%q and --%s: one of them is possible in an import", file, flag)
	}
	return o.Flags.Set(flag, file)
}

func (o *importing) run() error {
	err := o.named()
	if err == nil {
		err = o.check()
	}
	if err != nil {
		return err
	}
	start := time.Now()
	if err := o.readStdin(); err != nil {
		return err
	}
	if o.stdin != nil {
		defer o.stdin.Close()
	}
	err = o.load()
	if o.Files != nil {
		for _, v := range o.Vectors {
			if v.HasHeader() {
				o.Warnf("%s: its first line is a header, and no item", v.Path())
			}
		}
		if o.Whole != nil && o.Whole.Note() != "" {
			o.Warnf("%s", o.Whole.Note())
		}
	}
	o.tellSkipped()
	if err != nil {
		return err
	}
	return o.report(time.Since(start).Seconds())
}

// tellSkipped says which rows were left out, and why.
func (o *importing) tellSkipped() {
	pictures, _ := o.pictures()
	for _, g := range o.skipped.Groups {
		more := ""
		var rows []string
		for _, row := range g.Rows {
			if rows = append(rows, strconv.Itoa(row)); pictures != nil {
				g.Files = append(g.Files, pictures.Name(row))
			}
		}
		if g.Count > 1 {
			kind := "row "
			if pictures != nil {
				kind, rows = "", g.Files
			}
			rows = rows[min(1, len(rows)):]
			if g.Count > len(g.Rows) {
				rows = append(slices.Clip(rows), "...")
			}
			more = fmt.Sprintf("; and %s like it: %s%s", term.Thousands(g.Count-1), kind,
				term.Plain(strings.Join(rows, ", ")))
		}
		o.Warnf("skipped: %s%s", g.Reason, more)
	}
}

// pictures returns the pictures of --pictures, if the import has them.
func (o *importing) pictures() (p *source.Pictures, ok bool) {
	if o.Files != nil {
		p, ok = o.Made.(*source.Pictures)
	}
	return p, ok
}

// check checks that flags go together.
func (o *importing) check() error {
	n := &o.names
	var whole []string // flags of sources of whole items
	for _, flag := range []string{"items", "pictures", "texts"} {
		if o.Flags.Lookup(flag).Value.String() != "" {
			whole = append(whole, "--"+flag)
		}
	}
	pictures := n.Pictures.Folder != ""
	hashes := pictures || o.texts != ""
	if hashes && !o.Given("on-error") {
		o.skip = true // one of thousands of pictures is always broken
	}
	parts := len(o.vectors.List) > 0 || n.Codes != "" || n.Labels != "" || n.Fields != ""
	for _, flag := range []string{"key-column", "label-column", "label-separator", "vector-column",
		"field-column",
		"ignore-unknown"} {
		if o.Given(flag) && o.items+o.texts == "" {
			return exit.Usagef("--%s is about the columns of --items or --texts, which is missing", flag)
		}
	}
	for _, flag := range []string{"encoder", "folder-labels", "thumbnails", "sync"} {
		if o.Given(flag) && !pictures {
			return exit.Usagef("--%s is about --pictures, which is missing", flag)
		}
	}
	switch {
	case o.Given("encoder") && o.Given("hash"):
		return exit.Usagef("--encoder and --hash: a collection has vectors of pictures, or codes: one of them")
	case o.Given("encoder") && !o.makes:
		return exit.Usagef("--encoder is about --init: fddhdb encoder --input file --set changes that of a collection")
	case o.Given("hash") && !hashes:
		return exit.Usagef("--hash makes the codes of --pictures or --texts, which is missing: init --hash declares a collection")
	case o.Given("text-column") && o.texts == "":
		return exit.Usagef("--text-column is about the columns of --texts, which is missing")
	case o.Given("on-duplicate") && o.items+o.texts+n.Keys == "":
		return exit.Usagef("--on-duplicate is about the keys of --items, --texts or --keys, which is missing")
	case o.Given("number-from") && hashes:
		return exit.Usagef("--number-from: the key of a picture is its path, that of a text its number or a column")
	case len(whole) > 1:
		return exit.Usagef("%s: one of them is possible in an import", strings.Join(whole, " and "))
	case o.Given("label-separator") && n.Options.Mapping.Separator == "":
		return exit.Usagef("--label-separator \"\": the text between labels is expected, such as a comma")
	case o.Given("index") && o.index == "":
		return exit.Usagef("--index \"\": all, none or the names of fields are expected")
	case o.Given("index-words") && o.words == "":
		return exit.Usagef("--index-words \"\": all, none or the names of text fields are expected")
	case (o.index != "" || o.words != "") && !o.makes:
		return exit.Usagef("--index and --index-words are about --init: fddhdb alter indexes fields of a collection that is there")
	case len(whole) > 0 && (parts || n.Keys != "" || n.LabelNames != ""):
		return exit.Usagef("%s has whole items: the other files do not go with it; --merge adds to items that are there", whole[0])
	case n.Keys != "" && o.Given("number-from"):
		return exit.Usagef("--keys and --number-from: one of them says the keys")
	case o.fromStdin() > 1:
		return exit.Usagef("- is to be read twice: standard input is one file")
	case n.Options.Merge && o.makes:
		return exit.Usagef("--merge and --init: a new collection has no items to merge with")
	case len(whole) > 0:
		return nil
	case !parts:
		return exit.Usagef("import needs a file: one of items, a folder of pictures, --vectors NAME=FILE, --codes FILE, --labels FILE, --fields FILE or --texts FILE")
	case n.LabelNames != "" && n.Labels == "":
		return exit.Usagef("--label-names names the labels of --labels, which is missing")
	case n.Options.Merge && n.Keys == "":
		return exit.Usagef("--merge needs --keys FILE, which says what items to merge with, or --items")
	case o.makes && n.Codes != "" && len(o.vectors.List) > 0:
		return exit.Usagef("--vectors and --codes: a collection either learns its codes or is given them")
	case o.makes && n.Codes == "" && len(o.vectors.List) == 0:
		return exit.Usagef("--init needs --vectors or --codes, whose shapes say what collection to create, or --items")
	}
	return nil
}

// StdinName is the name that stands for standard input.
const StdinName = "-"

// fromStdin returns how many files are standard input.
func (o *importing) fromStdin() (n int) {
	for _, v := range append(o.vectors.List, flags.Named{Value: o.items}) {
		if v.Value == StdinName {
			n++
		}
	}
	return n
}

// readStdin copies standard input, if a file is -.
func (o *importing) readStdin() (err error) {
	switch {
	case o.fromStdin() == 0:
		return nil
	case o.Session != nil:
		return exit.Usagef("-: the shell reads its lines from standard input: import from a file, or outside of the shell")
	}
	o.stdin, err = source.ReadStdin(o.Ctx, o.Verb.Stdin, o.items == "", func(bytes int64) {
		o.Progress().Bytes("reading standard input", bytes, 0)
	})
	return err
}

// input returns what a flag names: the file, or for "-" the copy of standard input.
func (o *importing) input(file string) source.Input {
	if file == StdinName && o.stdin != nil {
		return o.stdin.Input
	}
	return source.Input{Path: file, Name: file}
}

// open opens the files that the flags name.
func (o *importing) open() (err error) {
	o.names.Items, o.names.Declared = o.input(o.items), o.makes
	o.names.Texts = source.Input{Path: o.texts, Name: o.texts}
	if o.names.Pictures.Folder != "" {
		if err := o.choosePictures(); err != nil {
			return err
		}
	}
	for _, v := range o.vectors.List {
		o.names.Vectors = append(o.names.Vectors, source.VectorFile{Modality: v.Name,
			Input: o.input(v.Value)})
	}
	say := &o.names.Options.Mapping
	for _, v := range o.vectorColumns.List {
		say.Vectors = append(say.Vectors, importer.Mapped{Name: v.Name, Column: v.Value})
	}
	say.Fields = source.FieldColumns(o.fieldColumns)
	o.Files, err = source.OpenFiles(o.names)
	if err == nil {
		o.id = o.identity()
	}
	return err
}

// load imports the files into the collection of the flags.
func (o *importing) load() error {
	if err := o.open(); err != nil {
		return err
	}
	defer o.Files.Close()
	dir := o.Dir
	switch {
	case !o.makes:
		return o.Change(func() error { return o.loadInto(o.DB, o.Collection) })
	case o.dryRun: // in a database that goes afterwards
		there := false
		err := o.OpenAnd(o.Ctx, dir, &db.Options{ReadOnly: true}, func(p run.Place) error {
			_, err := p.DB.Collection(o.Ctx, o.CollectionName)
			there = err == nil && o.Made != nil
			if err == nil && !there {
				return fmt.Errorf("%w: collection %q: import into it without --init, or name another one with --collection", db.ErrExists, o.CollectionName)
			}
			return nil
		})
		switch {
		case there:
			return o.Change(func() error { return o.loadInto(o.DB, o.Collection) })
		case err != nil && !(errors.Is(err, db.ErrNotDatabase) && run.IsEmpty(dir)):
			return err
		}
		tmp, err := os.MkdirTemp("", "fddhdb-dry-run-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		dir = filepath.Join(tmp, "db")
	}
	return o.WithNew(o.Ctx, dir, o.loadNew)
}

// loadNew creates the collection for the files and loads them. If an interrupted import of the same files has
// created it already, it goes on with that one. Pictures and texts go into a collection that is there. If it
// fails and nothing is stored, there is no collection.
func (o *importing) loadNew(d api.Database) error {
	schema, err := o.Files.Schema()
	if err == nil && o.index != "" {
		schema.Fields, err = indexed(schema.Fields, "index", o.index,
			func(f *db.Field, in bool) { f.Indexed = in })
	}
	if err == nil && o.words != "" {
		schema.Fields, err = indexed(schema.Fields, "index-words", o.words,
			func(f *db.Field, in bool) { f.Words = in })
	}
	if err != nil {
		return err
	}
	c, err := d.CreateCollection(o.Ctx, o.CollectionName, schema)
	if errors.Is(err, db.ErrExists) {
		err = exit.Wrap(err, "leave out --init to import into it, or name another one with --collection")
		old, there := d.Collection(o.Ctx, o.CollectionName)
		switch {
		case there != nil:
			return err
		case o.Made != nil && o.index+o.words != "":
			return exit.Usagef("--index and --index-words are of a new collection, and %q is there: %s --index FIELD and --index-words FIELD change it",
				o.CollectionName, run.VerbLine("alter", o.Dir, o.CollectionName))
		case o.Made != nil:
			if err := o.sameEncoder(old); err != nil {
				return err
			}
			return o.loadInto(d, old)
		}
		if mark, bad := o.id.mark(o.Ctx, d, old); bad != nil || mark == nil {
			return err
		}
		o.created = &schema
		return o.loadInto(d, old)
	}
	if err != nil {
		return err
	}
	o.created = &schema
	if o.id != (importID{}) {
		// From here on the same command goes on with this collection.
		b := d.NewBatch()
		if err = o.putMark(b, c, rows.Done{}); err == nil {
			err = b.Commit(o.Ctx)
		}
		if errors.Is(err, errors.ErrUnsupported) { // nothing keeps marks there
			o.id, err = importID{}, nil
		}
	}
	if err == nil {
		err = o.loadInto(d, c)
	}
	var partly *run.PartlyError
	if err != nil && !errors.As(err, &partly) {
		err = errors.Join(err, d.DropCollection(context.WithoutCancel(o.Ctx), c.Name()))
	}
	return err
}

// indexed returns fields, with an index of those that a flag names: all, none or a list. Words are of text
// fields. set says whether a field has the index.
func indexed(fields []db.Field, flag, index string, set func(f *db.Field, in bool)) ([]db.Field, error) {
	var possible []string
	for _, f := range fields {
		if flag == "index" || f.Type == db.String {
			possible = append(possible, f.Name)
		}
	}
	list := strings.Split(index, ",")
	switch index {
	case "none":
		list = nil
	case "all":
		list = possible
	}
	out := slices.Clone(fields)
	for i := range out {
		set(&out[i], slices.Contains(list, out[i].Name))
	}
	for _, name := range list {
		if !slices.Contains(possible, name) {
			return nil, exit.Usagef("--%s: the files have no such field %q: all, none and lists of %s are possible",
				flag, name, term.OrDash(strings.Join(possible, ",")))
		}
	}
	return out, nil
}

// loadInto stores the items of all rows.
func (o *importing) loadInto(d api.Database, c api.Collection) error {
	if err := o.Check(o.Ctx, c, o.names.Options.Merge); err != nil {
		return err
	}
	pictures, slow := o.pictures()
	o.store = rows.Import{To: d, Into: c, DryRun: o.dryRun, Begin: o.registerLabels, Item: o.nameItem,
		Merge: o.names.Options.Merge || slow, // a picture keeps labels and fields of other origin
		Progress: func(stage string, row, of int) {
			o.Progress().Report(stage, int64(row), int64(of))
		}}
	if slow {
		o.store.Every = picturesTime
	}
	if o.skip {
		o.store.Skip = func(row int, bad error) error {
			o.skipped.Add(row, exit.Message(bad))
			return nil
		}
	}
	if err := o.begin(); err != nil {
		return err
	}
	if pictures != nil {
		if err := o.syncFolders(d, c, pictures); err != nil {
			return err
		}
	}
	err := o.store.Run(o.Ctx, o.Together)
	if err == nil && o.marked {
		err = o.deleteMark()
	}
	if err != nil {
		return o.failed(run.RightLine(err))
	}
	return o.deleteGone(c)
}

// registerLabels registers labels that have an order.
func (o *importing) registerLabels(b api.Batch) error {
	if o.Labels == nil || !o.Labels.Ordered {
		return nil
	}
	if err := b.RegisterLabels(o.store.Into, o.Labels.Names()); err != nil {
		return exit.Failedf("%s: %s", cmp.Or(o.names.LabelNames, o.Labels.Path()), exit.Reason(err.Error()))
	}
	return nil
}

func (o *importing) report(took float64) error {
	rate, done := 0.0, o.store.Done
	if took > 0 {
		rate = float64(done.Items-o.begun.Items) / took
	}
	var columns []importer.Column
	if o.Whole != nil {
		columns = o.Whole.Columns()
	}
	if o.JSON {
		return o.PrintJSON(struct {
			Items   int                     `json:"items"`
			Skipped int                     `json:"skipped"`
			Known   int                     `json:"unchanged,omitempty"`
			Twice   int                     `json:"duplicates,omitempty"`
			Deleted int                     `json:"deleted,omitempty"`
			Seconds float64                 `json:"seconds"`
			Rate    float64                 `json:"items_per_second"`
			DryRun  bool                    `json:"dry_run,omitempty"`
			From    int                     `json:"resumed_at,omitempty"`
			Reasons []*source.SkippedReason `json:"skipped_reasons,omitempty"`
			Columns []importer.Column       `json:"columns,omitempty"`
		}{done.Items, o.skipped.N, done.Unchanged, done.Duplicates, len(o.gone), took, rate, o.dryRun,
			o.begun.Rows, o.skipped.Groups, columns})
	}
	if o.dryRun && columns != nil {
		rows := make([][]any, len(columns))
		for i, c := range columns {
			rows[i] = []any{term.TextCell(c.Column), c.Type, term.TextCell(c.Becomes),
				term.TextCell(c.Example)}
		}
		o.PrintTable([]term.Column{term.Left("column"), term.Left("type"), term.Left("becomes"),
			term.Left("example")}, rows)
	}
	if o.created != nil && (o.Whole != nil || o.Made != nil) {
		// The user did not declare this schema: it was derived from the data.
		o.Printf("collection %s, from %s: %s\n", o.CollectionName, o.Names(),
			forms.DescribeSchema(*o.created))
	}
	more := ""
	for _, x := range []struct {
		what string
		n    int
	}{{"skipped", o.skipped.N}, {"unchanged", done.Unchanged}, {"duplicates", done.Duplicates},
		{"deleted", len(o.gone)}} {
		if x.n > 0 {
			more += fmt.Sprintf(", %s %s", x.what, term.Thousands(x.n))
		}
	}
	if o.dryRun {
		o.Printf("%s can be imported%s; nothing was stored\n", term.Plural(done.Items, "item", "items"), more)
		return nil
	}
	o.Printf("imported %s%s in %s\n", term.Plural(done.Items, "item", "items"), more, term.Seconds(took))
	return nil
}
