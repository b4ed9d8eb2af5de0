package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/db"
)

// importOptions are the flags of import.
type importOptions struct {
	common
	vectors                          namedList
	codes, labels, names, ids, field string
	merge, skip, dryRun, init        bool
}

func importCommand(e *env) *cobra.Command {
	o := importOptions{vectors: namedList{kind: "NAME=FILE"}}
	onError := onErrorFlag{&o.skip}
	cmd := &cobra.Command{
		Use:     "import DIR --vectors NAME=FILE...",
		Short:   "Bring items in from files",
		GroupID: groupItems,
		Long: prose(`
			Import stores items from files. Row i of every file belongs to item i, so all
			files have as many rows.

			  --vectors NAME=FILE  vectors of a modality: .npy, .npz (FILE.npz:NAME is a
			                       member) or .csv; a .npz of scipy.sparse.save_npz, in
			                       csr form, holds sparse ones. Either goes where the
			                       modality is of the other form
			  --codes FILE         packed codes, for a collection that is given its codes:
			                       .npy of uint8, bits/8 columns
			  --labels FILE        labels: .npy, a 0/1 matrix or a vector of class numbers;
			                       or text, a line an item, separated by commas
			  --label-names FILE   names of those columns or classes, one a line
			  --ids FILE           keys, one a line; without it items are numbered
			  --fields FILE        .csv with a header NAME:TYPE,..., an empty cell leaving
			                       the field unset; or .jsonl, an object a line

			An item whose key is there already is replaced; with --merge only what the
			files have is set, and an empty set of labels leaves the labels as they are.

			Everything is checked first and stored in one commit, so that an import is
			done whole or not at all. With --on-error skip bad rows are left out, the
			reasons go to stderr, and the good ones are stored in several commits; a file
			whose rows differ in length is refused all the same. That is
			also the way for what is too large for one commit: 4 GiB where all items
			are new, else 1 GiB. --dry-run checks and stores nothing.

			With --init the database and the collection are created first, modalities,
			code length and fields being those of the files. A sparse file makes a sparse
			modality.`),
		Example: example(`
			fddhdb import wiki.db --init --vectors image=train_image.npy \
			    --vectors text=train_text.npy --labels train_labels.npy
			fddhdb import news.db --init --vectors text=tfidf.npz --labels topics.txt
			fddhdb import wiki.db --vectors image=new_image.npy --ids new_keys.txt \
			    --on-error skip
			fddhdb import wiki.db --ids keys.txt --labels better_labels.txt --merge`),
		Args: dirArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.runImport(cmd, &o, args[0])
		},
	}
	o.register(cmd)
	f := cmd.Flags()
	f.Var(&o.vectors, "vectors", "vectors of a modality; repeat it for each")
	f.StringVar(&o.codes, "codes", "", "packed codes, a `FILE`.npy")
	f.StringVar(&o.labels, "labels", "", "labels, a `FILE`.npy or text")
	f.StringVar(&o.names, "label-names", "", "names of the labels, a text `FILE`")
	f.StringVar(&o.ids, "ids", "", "keys of the items, a text `FILE`")
	f.StringVar(&o.field, "fields", "", "fields, a `FILE`.csv or .jsonl")
	f.BoolVar(&o.merge, "merge", false, "set only what the files have, of items that are there")
	f.Var(onError, "on-error", "what a bad row does: stop, and nothing is stored, or skip")
	f.BoolVar(&o.dryRun, "dry-run", false, "check everything, store nothing")
	f.BoolVar(&o.init, "init", false, "create the database or the collection first")
	return cmd
}

// onErrorFlag is the value of --on-error.
type onErrorFlag struct{ skip *bool }

func (f onErrorFlag) Type() string { return "stop|skip" }

func (f onErrorFlag) String() string {
	if f.skip != nil && *f.skip {
		return "skip"
	}
	return "stop"
}

func (f onErrorFlag) Set(s string) error {
	if s != "stop" && s != "skip" {
		return errors.New("stop and skip are possible")
	}
	*f.skip = s == "skip"
	return nil
}

func (e *env) runImport(cmd *cobra.Command, o *importOptions, dir string) error {
	if err := o.check(); err != nil {
		return err
	}
	start := time.Now()
	bar := e.newProgress()
	defer bar.end()
	l, err := e.load(cmd, o, dir, bar)
	bar.end()
	if l != nil {
		l.warn(e)
	}
	if err != nil {
		return err
	}
	return e.reportImport(l, time.Since(start).Seconds())
}

// load imports the files into the collection that the flags name. The loader may
// be there with an error too, to say what was skipped.
func (e *env) load(cmd *cobra.Command, o *importOptions, dir string, bar *progress) (*loader, error) {
	switch {
	case o.init && o.dryRun:
		return e.rehearse(cmd, o, dir, bar)
	case o.init && e.withDB(dir, func(*db.DB) error { return nil }) == nil:
		// A collection cannot be taken back, so that what fails has to do so
		// before it is created.
		if _, err := e.rehearse(cmd, o, dir, bar); err != nil {
			return nil, err
		}
	}
	in, err := openImport(o)
	if err != nil {
		return nil, err
	}
	defer in.close()
	l := &loader{importFiles: in, o: o, bar: bar}
	if o.init {
		return l, e.withNew(dir, func(d *db.DB) error { return l.loadNew(cmd, d) })
	}
	return l, e.withCollection(dir, &o.common, func(d *db.DB, c *db.Collection) error {
		return l.load(cmd.Context(), d, c)
	})
}

// rehearse is a dry run with --init: the collection is created elsewhere.
func (e *env) rehearse(cmd *cobra.Command, o *importOptions, dir string, bar *progress) (*loader, error) {
	dry := *o
	dry.dryRun = true
	in, err := openImport(&dry)
	if err != nil {
		return nil, err
	}
	defer in.close()
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
	l := &loader{importFiles: in, o: &dry, bar: bar}
	err = e.withNew(filepath.Join(tmp, "db"), func(d *db.DB) error { return l.loadNew(cmd, d) })
	return l, errors.Join(err, os.RemoveAll(tmp))
}

// check finds flags that do not go together.
func (o *importOptions) check() error {
	switch {
	case len(o.vectors.list) == 0 && o.codes == "" && o.labels == "" && o.field == "":
		return usageErrorf("import needs a file: --vectors NAME=FILE, --codes FILE, --labels FILE or --fields FILE")
	case o.names != "" && o.labels == "":
		return usageErrorf("--label-names names the labels of --labels, which is missing")
	case o.merge && o.ids == "":
		return usageErrorf("--merge needs --ids FILE, which says what items to merge with")
	case o.merge && o.init:
		return usageErrorf("--merge and --init: a new collection has no items to merge with")
	case o.init && o.codes != "" && len(o.vectors.list) > 0:
		return usageErrorf("--vectors and --codes: a collection either learns its codes or is given them")
	case o.init && o.codes == "" && len(o.vectors.list) == 0:
		return usageErrorf("--init needs --vectors or --codes, whose shapes say what collection to create")
	}
	return nil
}

// importFiles are the files of an import.
type importFiles struct {
	sources []source
	vectors []*vectorSource
	codes   *codeSource
	labels  *labelSource
	fields  *fieldSource

	leastRow int64 // bytes that the vectors of a row take, known by check
}

func openImport(o *importOptions) (*importFiles, error) {
	in := &importFiles{}
	if err := in.open(o); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *importFiles) open(o *importOptions) (err error) {
	for _, v := range o.vectors.list {
		s, err := openVectors(v.name, v.value)
		if err != nil {
			return err
		}
		in.vectors, in.sources = append(in.vectors, s), append(in.sources, s)
	}
	if o.codes != "" {
		if in.codes, err = openCodes(o.codes); err != nil {
			return err
		}
		in.sources = append(in.sources, in.codes)
	}
	if o.labels != "" {
		if in.labels, err = openLabels(o.labels, o.names); err != nil {
			return err
		}
		in.sources = append(in.sources, in.labels)
	}
	if o.field != "" {
		if in.fields, err = openFields(o.field); err != nil {
			return err
		}
		in.sources = append(in.sources, in.fields)
	}
	if o.ids != "" {
		keys, err := openKeys(o.ids)
		if err != nil {
			return err
		}
		in.sources = append(in.sources, keys)
	}
	if o.init && in.fields != nil && in.fields.declared == nil {
		return usageErrorf("--init with --fields %s: only the header of a .csv says the types of the fields; use one, or init first", o.field)
	}
	return sameRows(in.sources)
}

func (in *importFiles) close() {
	for _, s := range in.sources {
		_ = s.close() // they have only been read
	}
}

func (in *importFiles) rows() int { return in.sources[0].rows() }

// schema returns that of a collection for the files.
func (in *importFiles) schema() db.Schema {
	var s db.Schema
	for _, v := range in.vectors {
		s.Modalities = append(s.Modalities, db.Modality{Name: v.modality, Dim: v.r.Cols(), Sparse: v.sparse != nil})
	}
	if in.codes != nil {
		s.Bits = in.codes.codes.Bits()
	}
	if in.fields != nil {
		s.Fields = in.fields.declared
	}
	return s
}

// check holds the shapes of the files against the collection.
func (in *importFiles) check(c *db.Collection, o *importOptions) error {
	s, err := c.Schema()
	if err != nil {
		return err
	}
	for _, v := range in.vectors {
		m, err := modality(c, s, "--vectors", v.modality)
		if err == nil {
			err = v.checkDim(m)
		}
		if err != nil {
			return err
		}
		if !m.Sparse { // else a vector may have no numbers
			in.leastRow += 4 * int64(m.Dim)
		}
	}
	switch {
	case in.codes == nil && s.Bits > 0 && !o.merge:
		return usageErrorf("--codes FILE is missing: the items of collection %q bring their codes", c.Name())
	case in.codes != nil && s.Bits == 0:
		return usageErrorf("--codes: collection %q learns its codes from vectors", c.Name())
	case in.codes != nil:
		if err := in.codes.checkBits(c, s.Bits); err != nil {
			return err
		}
	}
	if in.fields != nil {
		return in.fields.check(c, s)
	}
	return nil
}

// skipCommitBytes is about how much --on-error skip stores in one commit.
const skipCommitBytes = 64 << 20

// A loader stores the items of files.
type loader struct {
	*importFiles
	o       *importOptions
	bar     *progress
	items   int // stored, or found good
	skipped int
	reasons []error // the first few
}

// shownReasons is how many skipped rows are explained.
const shownReasons = 5

// loadNew creates the collection for the files and loads them.
func (l *loader) loadNew(cmd *cobra.Command, d *db.DB) error {
	c, err := createCollection(cmd, d, l.o.collection, l.schema())
	if err != nil {
		return err
	}
	return l.load(cmd.Context(), d, c)
}

// load stores the items of all rows.
func (l *loader) load(ctx context.Context, d *db.DB, c *db.Collection) error {
	if err := l.check(c, l.o); err != nil {
		return err
	}
	if !l.o.skip {
		if err := l.checkSize(l.leastBytes(), 0); err != nil {
			return err
		}
	}
	batch := d.NewBatch()
	if l.labels != nil && l.labels.ordered {
		if err := batch.RegisterLabels(c, l.labels.labels.Names); err != nil {
			return failuref("%s: %s", cmp.Or(l.o.names, l.labels.file), reason(err.Error()))
		}
	}
	add := (*db.Batch).Put
	if l.o.merge {
		add = (*db.Batch).Merge
	}
	pending := 0
	item := newRow()
	for row := range l.rows() {
		if row%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			l.bar.report("reading", row, l.rows())
		}
		err := l.read(&item)
		if err == nil {
			err = l.try(d, c, &item, row, add)
		}
		var bad *rowError
		if errors.As(err, &bad) && l.o.skip {
			if l.skipped++; len(l.reasons) < shownReasons {
				l.reasons = append(l.reasons, err)
			}
			continue
		}
		if bad != nil {
			return failuref("%w; nothing was stored (--on-error skip leaves such rows out)", err)
		}
		if err == nil {
			err = add(batch, c, &item)
		}
		if err != nil {
			return l.rowFailure(row, err)
		}
		pending++
		switch {
		case batch.Bytes() <= skipCommitBytes:
		case l.o.skip:
			if err := l.commit(ctx, batch, pending); err != nil {
				return err
			}
			batch, pending = d.NewBatch(), 0
		default:
			if err := l.checkSize(int64(batch.Bytes()), row+1); err != nil {
				return err
			}
		}
	}
	l.bar.report("storing", 0, 0)
	return l.commit(ctx, batch, pending)
}

// read reads the next row of all files. All are read even if one is bad, so that
// they stay side by side.
func (l *loader) read(item *db.Item) error {
	clear(item.Vectors)
	clear(item.Sparse)
	item.Key = ""
	var bad error
	for _, s := range l.sources {
		err := s.next(item)
		var row *rowError
		if err != nil && !errors.As(err, &row) {
			return fmt.Errorf("%w; nothing of it was stored", err)
		}
		if bad == nil {
			bad = err
		}
	}
	return bad
}

// try finds out whether an item can be stored, where bad ones are to be skipped:
// a batch does not forgive one.
func (l *loader) try(d *db.DB, c *db.Collection, item *db.Item, row int, add func(*db.Batch, *db.Collection, *db.Item) error) error {
	if !l.o.skip {
		return nil
	}
	err := add(d.NewBatch(), c, item)
	if errors.Is(err, db.ErrInvalid) {
		return &rowError{l.rowFailure(row, err)}
	}
	return err
}

// rowFailure says in which row an item is that db refuses.
func (l *loader) rowFailure(row int, err error) error {
	if !errors.Is(err, db.ErrInvalid) {
		return err
	}
	return failuref("row %d: %s", row, reason(err.Error()))
}

func (l *loader) commit(ctx context.Context, b *db.Batch, n int) error {
	if !l.o.dryRun {
		if err := b.Commit(ctx); err != nil {
			if errors.Is(err, db.ErrInvalid) {
				err = &failure{err}
			}
			if l.items > 0 && !l.o.init { // which takes back what it has created
				err = wrap(err, "%s are stored already", plural(l.items, "item", "items"))
			}
			return err
		}
	}
	l.items += n
	return nil
}

// leastBytes is what the dense vectors and codes alone take in a batch.
func (l *loader) leastBytes() int64 {
	a := l.leastRow
	if l.codes != nil {
		a += int64(l.codes.codes.Bits() / 8)
	}
	return a * int64(l.rows())
}

// checkSize refuses what is too large for one commit.
func (l *loader) checkSize(bytes int64, rows int) error {
	limit := int64(db.MaxBulkBytes)
	if l.o.merge {
		limit = db.MaxBatchBytes
	}
	if bytes <= limit {
		return nil
	}
	at := plural(l.rows(), "row", "rows")
	if rows > 0 {
		at = fmt.Sprintf("%s rows of %s", thousands(rows), thousands(l.rows()))
	}
	return failuref("%s take %s, more than one commit can hold (%s), and an import is one commit: use --on-error skip, which commits in parts, or split the files",
		at, size(bytes), size(limit))
}

// warn says why rows were skipped.
func (l *loader) warn(e *env) {
	for _, err := range l.reasons {
		e.warnf("skipped: %s", message(err))
	}
	if more := l.skipped - len(l.reasons); more > 0 {
		e.warnf("skipped: %s more", thousands(more))
	}
}

func (e *env) reportImport(l *loader, took float64) error {
	rate := 0.0
	if took > 0 {
		rate = float64(l.items) / took
	}
	if l.o.json {
		return e.printJSON(struct {
			Items   int     `json:"items"`
			Skipped int     `json:"skipped"`
			Seconds float64 `json:"seconds"`
			Rate    float64 `json:"items_per_second"`
			DryRun  bool    `json:"dry_run,omitempty"`
		}{l.items, l.skipped, took, rate, l.o.dryRun})
	}
	skipped := ""
	if l.skipped > 0 {
		skipped = fmt.Sprintf(", skipped %s", thousands(l.skipped))
	}
	if l.o.dryRun {
		e.printf("%s can be imported%s; nothing was stored\n", plural(l.items, "item", "items"), skipped)
		return nil
	}
	e.printf("imported %s%s in %s\n", plural(l.items, "item", "items"), skipped, seconds(took))
	return nil
}
