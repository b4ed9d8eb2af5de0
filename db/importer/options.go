package importer

import (
	"cmp"

	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// Options say how a file is read and how its items are stored. The zero value takes columns by their names
// and contents, and ends at the first bad row.
type Options struct {
	// Mapping says what columns become. Columns that it does not name are guessed by their kind.
	Mapping Mapping

	// IgnoreUnknown leaves aside what the file has and the collection has not. Without it that is an error.
	IgnoreUnknown bool

	// OnDuplicate says what rows with the same key do. Without it a key that comes twice is a bad row.
	OnDuplicate Duplicates

	// Merge sets only what the rows have: a stored item keeps the rest. The file needs keys then.
	Merge bool

	// OnError, if not nil, is called with each bad row, counted from 0: one that cannot be read, or that
	// the collection cannot store. If it returns nil the row is left out, else its error ends the import.
	// Without it the first bad row ends the import. With it each item is checked a second time.
	OnError func(row int, bad error) error

	// From is the first row to store. Result.Rows says where an import that has failed goes on.
	From int

	// Mark, if not nil, is called before each commit, after which the first rows of the file are stored.
	// It may add a db.Batch.Mark to the commit, by which a program finds From after a crash.
	Mark func(b api.Batch, rows int) error

	// Progress, if not nil, is called every 1,000 rows with the number of rows that are done, and of all
	// rows that there are to do; 0 if that is not known.
	Progress func(done, of int)

	// Words, if not nil, is how errors and notes name these options.
	Words *Words
}

// A Mapping says what columns of a file become. What it says of a kind, as of vectors, takes the place of the
// guesses about that kind. A name that no column has is a db.ErrInvalid, and so is a column that cannot
// become what the Mapping says.
type Mapping struct {
	Key string // the column of keys

	// Labels are the columns of labels; * stands for any text. A column of bools, or of 0 and 1, is the label
	// that it is named for.
	Labels []string

	// Separator is the text between several labels in a string. Without it a string is one label.
	Separator string

	// Vectors are modalities and their columns. A column d* is all columns d0, d1, ..., one for each number.
	Vectors []Mapped

	Fields []Mapped // fields and their columns
}

// A Mapped is the name of a modality or field, and its column. Without a name it is FieldName of the column.
type Mapped struct{ Name, Column string }

func (m *Mapping) empty() bool {
	return m.Key == "" && m.Separator == "" && len(m.Labels)+len(m.Vectors)+len(m.Fields) == 0
}

// Duplicates says what rows with the same key do.
type Duplicates = rows.Duplicates

// What rows with the same key do.
const (
	RefuseDuplicates = rows.RefuseDuplicates // any but the first is a bad row
	FirstDuplicate   = rows.FirstDuplicate   // the first is stored
	LastDuplicate    = rows.LastDuplicate    // the last is stored
)

// Words name options in errors and notes. A program with flags or fields of its own gives their names here,
// and has to give all of them.
type Words struct {
	File string // comes before the name of a file that is not read

	Key, Labels, Separator, Vectors, Fields string // of a Mapping
	Merge, OnDuplicate, IgnoreUnknown       string

	NameVector, NameField string // how one column becomes a vector or a field
}

var goWords = Words{
	Key: "Mapping.Key", Labels: "Mapping.Labels", Separator: "Mapping.Separator", Vectors: "Mapping.Vectors",
	Fields: "Mapping.Fields", Merge: "Merge", OnDuplicate: "OnDuplicate FirstDuplicate or LastDuplicate",
	IgnoreUnknown: "IgnoreUnknown", NameVector: "Mapping.Vectors", NameField: "Mapping.Fields",
}

func (o *Options) words() *Words { return cmp.Or(o.Words, &goWords) }
