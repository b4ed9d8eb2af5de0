package ingest

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
	"github.com/fddhdb/fddhdb/cmd/fddhdb/run"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/source"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/rows"
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
	o.Flags.Visit(func(f *pflag.Flag) {
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

// putMark adds to a batch the mark of an import that is so far.
func (o *importing) putMark(b api.Batch, c api.Collection, d rows.Done) error {
	m := importMark{o.id.files, d.Rows, d.Items, d.Duplicates, slices.Clone(o.skipped.Groups)}
	for i, g := range m.Skipped {
		short := *g
		short.Reason = short.Reason[:min(len(short.Reason), maxReason)]
		m.Skipped[i] = &short
	}
	value, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return b.Mark(o.id.name(c), value)
}

// mark adds the mark of the import to a commit. The last commit needs one only if there is one: if the import
// is interrupted before deleteMark, the next run goes on behind it, and stores no item twice.
func (o *importing) mark(b api.Batch, d rows.Done, last bool) error {
	if last && !o.marked {
		return nil
	}
	o.marked = true
	return o.putMark(b, o.store.Into, d)
}

// deleteMark deletes the mark of an import that is complete.
func (o *importing) deleteMark() error {
	b := o.store.To.NewBatch()
	if err := b.Mark(o.id.name(o.store.Into), nil); err != nil {
		return err
	}
	return b.Commit(o.Ctx)
}

// begin begins at the row of --from-row, or where the same import was interrupted, and tells of the latter.
func (o *importing) begin() error {
	mark, err := o.id.mark(o.Ctx, o.store.To, o.store.Into)
	if errors.Is(err, errors.ErrUnsupported) { // nothing keeps marks there
		o.id, err = importID{}, nil
	}
	if err != nil {
		return err
	}
	if o.id != (importID{}) && !o.dryRun {
		o.store.Mark, o.marked = o.mark, mark != nil
	}
	switch {
	case o.Given("from-row"):
		o.store.Rows = o.fromRow
		if rows := o.Rows(); rows >= 0 && o.fromRow > rows {
			return exit.Usagef("--from-row %d: the files have %s", o.fromRow, term.Plural(rows, "row", "rows"))
		}
	case o.dryRun || mark == nil || mark.Row == 0:
	case mark.Files != o.id.files:
		return exit.Failedf("%s: changed since this import was interrupted, when %s: --from-row %d goes on there, --from-row 0 begins again",
			o.Names(), o.rowsIn(mark.Row), mark.Row)
	default:
		o.store.Done = rows.Done{Rows: mark.Row, Items: mark.Items, Duplicates: mark.Twice}
		o.skipped.GoOn(mark.Skipped)
		o.Warnf("going on at row %s, where this import was interrupted (--from-row 0 begins again)",
			o.ofRows(mark.Row))
	}
	o.begun = o.store.Done
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

// nameItem gives an item its key by --number-from.
func (o *importing) nameItem(row int, item *db.Item) error {
	numbered := o.Given("number-from")
	switch {
	case numbered && item.Key != "":
		return &rows.Error{Err: fmt.Errorf("%s: row %d has the key %q, and --number-from would give it another",
			o.Names(), row, item.Key)}
	case numbered:
		item.Key = strconv.Itoa(o.numberFrom + row)
	case item.Key == "" && (o.store.Into.ID() == 0 || o.At != nil): // of a cluster, which has no counter
		return &rows.Error{Err: fmt.Errorf("%s: row %d has no key: --keys and --key-column say where keys are, --number-from 0 numbers the rows",
			o.Names(), row)}
	}
	return nil
}

// failed adds to an error how many items are stored, and how to go on.
func (o *importing) failed(err error) error {
	in := o.store.Rows
	var bad *rows.Error
	isBad := errors.As(err, &bad)
	switch {
	case isBad && in == 0:
		return exit.Failedf("%w; nothing was stored (--on-error skip leaves such rows out)", err)
	case in == 0:
		return err
	case isBad:
		return &run.PartlyError{Err: exit.Failedf("%w", err), In: fmt.Sprintf(
			"%s: --on-error skip leaves such rows out and goes on; with a file that you have corrected, --from-row %d goes on", o.rowsIn(in), in)}
	case o.id == (importID{}) && o.names.Pictures.Folder == "":
		return &run.PartlyError{Err: err, In: fmt.Sprintf("%s: with the same input, --from-row %d goes on",
			o.rowsIn(in), in)}
	}
	return &run.PartlyError{Err: err, In: o.rowsIn(in) + ": give the same command again to go on"}
}
