package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
)

// An importID tells imports apart. A command that was interrupted goes on when one with the same
// command and files comes.
type importID struct {
	command string // hash of the paths of the files, and of the flags that matter
	files   string // hash of the sizes of the files, and of when they were modified
}

// harmlessFlags are flags that may differ when an import goes on. The collection is in the name of
// the mark.
var harmlessFlags = []string{"init", "json", "mode", "from-row", "on-error", "collection"}

// identity returns what identifies the import. It is zero if the import cannot go on, because a file
// is standard input or not a regular file.
func (o *importing) identity() importID {
	// The stored items say which pictures are left.
	if _, pictures := o.pictures(); pictures || o.fromStdin() > 0 {
		return importID{}
	}
	command, files := sha256.New(), sha256.New()
	o.f.Visit(func(f *pflag.Flag) {
		if slices.Contains(harmlessFlags, f.Name) {
			return
		}
		value := f.Value.String()
		if list, ok := f.Value.(*flags.NamedList); ok { // those of --vectors are files, which come below
			for _, n := range list.List {
				if value += n.Name + ","; f.Name != "vectors" {
					value += n.Value + ","
				}
			}
		}
		fmt.Fprintf(command, "%s=%s\n", f.Name, value)
	})
	var paths []string
	for _, source := range o.Together {
		paths = append(paths, source.Path())
	}
	if o.names.LabelNames != "" {
		paths = append(paths, o.names.LabelNames)
	}
	for _, path := range paths {
		info, err := os.Stat(path)
		member := ""
		if i := strings.LastIndexByte(path, ':'); err != nil && i > 0 { // FILE.npz:NAME
			path, member = path[:i], path[i+1:]
			info, err = os.Stat(path)
		}
		abs, absErr := filepath.Abs(path)
		if err != nil || absErr != nil || !info.Mode().IsRegular() {
			return importID{}
		}
		fmt.Fprintf(command, "%s:%s\n", abs, member)
		fmt.Fprintf(files, "%d %d\n", info.Size(), info.ModTime().UnixNano())
	}
	hash := func(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)[:12]) }
	return importID{hash(command), hash(files)}
}

// An importMark is the value of the mark that an import leaves with each part, as JSON. The same
// import goes on there.
type importMark struct {
	Files   string                  `json:"files"` // importID.files
	Row     int                     `json:"row"`   // the first row that is not in
	Items   int                     `json:"items"` // that are in
	Twice   int                     `json:"twice,omitempty"`
	Skipped []*source.SkippedReason `json:"skipped,omitempty"`
}

// maxReason is the largest length of a reason for skipped rows in a mark, in bytes. Longer reasons are cut,
// so that all reasons which source.SkippedRows keeps fit into one mark.
const maxReason = 256

// name returns the name of the mark of an import into a collection.
func (id importID) name(c api.Collection) string {
	return fmt.Sprintf("fddhdb import/%d/%s", c.ID(), id.command)
}

// mark returns the mark of the import, nil if there is none.
func (id importID) mark(ctx context.Context, d api.Database, c api.Collection) (*importMark, error) {
	if id == (importID{}) {
		return nil, nil
	}
	b, err := d.Mark(ctx, id.name(c))
	if errors.Is(err, db.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &importMark{}
	return m, json.Unmarshal(b, m)
}

// put adds the mark to a batch.
func (id importID) put(b api.Batch, c api.Collection, m importMark) error {
	for i, g := range m.Skipped {
		short := *g
		short.Reason = short.Reason[:min(len(short.Reason), maxReason)]
		m.Skipped[i] = &short
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Mark(id.name(c), value)
}

// parts stores the rows of an import. It commits whenever the batch is full, with a mark of how
// far it is, so that an import takes little memory and the same command goes on after an
// interruption. A dry run commits nothing.
type parts struct {
	to      api.Database
	into    api.Collection
	b       api.Batch
	from    int  // the row to begin with
	row     int  // the next row
	in      int  // the first row that is not in
	waiting int  // items in b
	stored  int  // items, or in a dry run checked
	before  int  // items that were stored when the import was interrupted
	marked  bool // the database has a mark of this import
}

// begin begins at the row of --from-row, or where the same import was interrupted, and tells of the latter.
func (o *importing) begin(d api.Database, c api.Collection) error {
	o.parts = parts{to: d, into: c, b: d.NewBatch()}
	mark, err := o.id.mark(o.ctx, d, c)
	if errors.Is(err, errors.ErrUnsupported) { // nothing keeps marks there
		o.id, err = importID{}, nil
	}
	if err != nil {
		return err
	}
	o.marked = mark != nil
	switch {
	case o.given("from-row"):
		o.from = o.fromRow
		if rows := o.Rows(); rows >= 0 && o.from > rows {
			return exit.Usagef("--from-row %d: the files have %s", o.from, term.Plural(rows, "row", "rows"))
		}
	case o.dryRun || mark == nil || mark.Row == 0:
	case mark.Files != o.id.files:
		return exit.Failedf("%s: changed since this import was interrupted, when %s: --from-row %d goes on there, --from-row 0 begins again",
			o.Names(), o.rowsIn(mark.Row), mark.Row)
	default:
		o.from, o.before, o.stored = mark.Row, mark.Items, mark.Items
		o.twice = mark.Twice
		o.skipped.GoOn(mark.Skipped)
		o.Warnf("going on at row %s, where this import was interrupted (--from-row 0 begins again)",
			o.ofRows(o.from))
	}
	o.row, o.in = o.from, o.from
	return nil
}

// ofRows returns a number of rows, and of how many where that is known.
func (o *importing) ofRows(n int) string {
	if rows := o.Rows(); rows >= 0 {
		return term.Thousands(n) + " of " + term.Thousands(rows)
	}
	return term.Thousands(n)
}

// rowsIn returns the words for so many rows being stored.
func (o *importing) rowsIn(n int) string { return o.ofRows(n) + " rows are in" }

// put adds the item of the next row. One that gives ErrInvalid is left out.
func (o *importing) put(r *source.Row) error {
	item := &r.Item
	numbered := o.given("number-from")
	switch {
	case numbered && item.Key != "":
		return &source.RowError{Err: exit.Failedf("%s: row %d has the key %q, and --number-from would give it another",
			o.Names(), o.row, item.Key)}
	case numbered:
		item.Key = strconv.Itoa(o.numberFrom + o.row)
	case item.Key == "" && (o.into.ID() == 0 || o.at != nil): // of a cluster, which has no counter
		return &source.RowError{Err: exit.Failedf("%s: row %d has no key: --keys and --key-column say where keys are, --number-from 0 numbers the rows",
			o.Names(), o.row)}
	}
	_, pictures := o.pictures()
	add := func(b api.Batch) error {
		if o.merge || pictures { // an item keeps labels and fields of other origin
			return b.Merge(o.into, item)
		}
		return b.Put(o.into, item)
	}
	if o.skip { // a batch is lost after a bad item
		if err := add(o.to.NewBatch()); err != nil {
			return err
		}
	}
	err := add(o.b)
	switch {
	case err != nil:
		return err
	case r.Again:
		o.twice++
	default:
		o.waiting++
	}
	o.row++
	return nil
}

// commit stores the batch, with a mark or without one.
func (o *importing) commit(mark bool) error {
	if mark = mark && !o.dryRun && o.id != (importID{}); mark {
		if err := o.id.put(o.b, o.into, importMark{o.id.files, o.row, o.stored + o.waiting, o.twice,
			slices.Clone(o.skipped.Groups)}); err != nil {
			return err
		}
	}
	if !o.dryRun {
		if err := o.b.Commit(o.ctx); err != nil {
			return rightLine(err)
		}
	}
	o.marked = o.marked || mark
	o.stored += o.waiting
	o.in, o.waiting, o.b = o.row, 0, o.to.NewBatch()
	return nil
}

// end stores the rest of the items, with a mark behind the last row, and then deletes the mark. If the import
// is interrupted before the mark is gone, the next run goes on behind it, and stores no item twice.
func (o *importing) end() error {
	if o.b.Len() > 0 {
		if err := o.commit(o.marked); err != nil {
			return err
		}
	}
	if o.dryRun || !o.marked {
		return nil
	}
	if err := o.b.Mark(o.id.name(o.into), nil); err != nil {
		return err
	}
	return o.b.Commit(o.ctx)
}

// failed adds to an error how many items are stored, and how to go on.
func (o *importing) failed(err error) error {
	var bad *source.RowError
	isBad := errors.As(err, &bad)
	switch {
	case isBad && o.in == 0:
		return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
	case o.in == 0:
		return err
	case isBad:
		return &partlyError{exit.Failedf("%w", err), fmt.Sprintf(
			"%s: --on-error skip leaves such rows out and goes on; with a file that you have corrected, --from-row %d goes on", o.rowsIn(o.in), o.in)}
	case o.id == (importID{}) && o.names.Pictures.Folder == "":
		return &partlyError{err, fmt.Sprintf("%s: with the same input, --from-row %d goes on",
			o.rowsIn(o.in), o.in)}
	}
	return &partlyError{err, o.rowsIn(o.in) + ": give the same command again to go on"}
}

// A partlyError is the error of an import that has stored some of its items.
type partlyError struct {
	err error
	in  string // what is stored, and how to go on
}

func (e *partlyError) Error() string { return e.err.Error() + "; " + e.in }
func (e *partlyError) Unwrap() error { return e.err }
