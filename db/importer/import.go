package importer

import (
	"context"
	"fmt"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// Schema returns the schema of a collection for the items of a file. Its fields have no index. If the items
// have neither vectors nor codes it returns the fields, and a *NoVectorsError: a program that makes the
// vectors itself adds their modality. Cost: a .jsonl and a .csv are read as a whole, other files in part.
func Schema(path string, o Options) (db.Schema, error) {
	f, err := Open(path, path, o)
	if err != nil {
		return db.Schema{}, err
	}
	defer f.Close()
	return f.Schema()
}

// A Result says what an import has done.
type Result struct {
	Items      int // stored
	Skipped    int // bad rows that Options.OnError has left out
	Duplicates int // rows that are not stored, as another row with their key is
	Rows       int // the first rows of the file that are done with: where to go on after an error

	Columns []Column // what the columns became; nil for items that fddhdb has exported
	Note    string   // in one line, what has been guessed about the columns and could be wrong; "" if nothing
}

// Import stores the items of a file in a collection of d, in commits of 16 to 64 MiB; an item replaces the
// stored item with its key. A smaller file is one commit, so a bad row leaves nothing of it behind. Memory: a
// batch and some rows, see files.Open. The result is not nil if the columns suit the collection; beside an
// error it counts the rows that are stored.
//
// Errors: db.ErrInvalid for options that do not suit the file; *RowError for a bad row; *files.Error for a
// file that cannot be read or does not suit the collection; and the errors of db.Batch.Commit.
func Import(ctx context.Context, d api.Database, c api.Collection, path string, o Options) (*Result, error) {
	if o.From < 0 {
		return nil, fault.Invalid("From row %d: rows are counted from 0", o.From)
	}
	f, err := Open(path, path, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	schema, err := c.Schema(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.Check(c.Name(), schema); err != nil {
		return nil, err
	}
	if n := f.Rows(); n >= 0 && o.From > n {
		return nil, fault.Invalid("From row %d: %s has %s", o.From, path, count(n, "row"))
	}
	m := rows.Import{To: d, Into: c, Done: rows.Done{Rows: o.From}, Merge: o.Merge, Skip: o.OnError}
	if o.Mark != nil {
		m.Mark = func(b api.Batch, done rows.Done, _ bool) error { return o.Mark(b, done.Rows) }
	}
	if o.Progress != nil {
		m.Progress = func(stage string, done, of int) {
			if stage == rows.Reading {
				o.Progress(done, of)
			}
		}
	}
	err = m.Run(ctx, rows.Together{f})
	if err != nil && m.Rows > o.From {
		err = fmt.Errorf("%w; %d rows are in, and From %[2]d goes on there", err, m.Rows)
	}
	return &Result{Items: m.Items, Skipped: m.Skipped, Duplicates: m.Duplicates, Rows: m.Rows,
		Columns: f.Columns(), Note: f.Note()}, err
}
