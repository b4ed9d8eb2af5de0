package source

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/importer"
	"github.com/fddhdb/fddhdb/files"
	"github.com/fddhdb/fddhdb/internal/rows"
)

// FileNames name the files of an import: either one source of whole items, which is Items, Pictures or Texts,
// or a file for each part of the items. A file that the import lacks is "".
type FileNames struct {
	Vectors                                 []VectorFile
	Codes, Labels, LabelNames, Fields, Keys string
	Items                                   Input
	Pictures                                PictureOptions
	Texts                                   Input
	TextColumn                              string // of Texts, if they are a table
	Hash                                    string // of Texts; "": the hash of the collection
	Declared                                bool   // Fields have to say their types

	// Options say how Items and Texts are read; OnDuplicate is about Keys, too.
	Options importer.Options
}

// A VectorFile is a file of vectors of a modality.
type VectorFile struct {
	Modality string
	Input
}

// FieldColumns returns what COLUMN and FIELD=COLUMN say.
func FieldColumns(list []string) (fields []importer.Mapped) {
	for _, s := range list {
		field, column, named := strings.Cut(s, "=")
		if !named {
			field, column = "", s
		}
		fields = append(fields, importer.Mapped{Name: field, Column: column})
	}
	return fields
}

// Files are the open files of an import: row i of each is about item i. The caller closes them.
type Files struct {
	rows.Together
	Vectors []*Vectors
	Codes   *Codes
	Labels  *Labels
	Fields  *Fields
	Whole   *importer.File
	Made    Made // nil: none

	LeastRow int64 // bytes of the vectors of a row; set by Check
}

// OpenFiles opens the files of an import.
func OpenFiles(n FileNames) (*Files, error) {
	in := &Files{}
	if err := in.open(n); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

func (in *Files) open(n FileNames) (err error) {
	n.Options.Words = &words
	if files.Extension(n.Items.Path) == ".mat" {
		return exit.Usagef("--items %s: a .mat has no items, but matrices: --vectors NAME=%[1]s:VARIABLE for each modality, and --labels %[1]s:VARIABLE", n.Items.Name)
	}
	for _, v := range n.Vectors {
		s, err := OpenVectorsOf(v.Modality, v.Input)
		if err != nil {
			return err
		}
		in.Vectors, in.Together = append(in.Vectors, s), append(in.Together, s)
	}
	for _, f := range []struct {
		name string
		open func() (rows.Source, error)
	}{
		{n.Codes, func() (rows.Source, error) { in.Codes, err = OpenCodes(n.Codes); return in.Codes, err }},
		{n.Labels, func() (rows.Source, error) {
			in.Labels, err = OpenLabels(n.Labels, n.LabelNames)
			return in.Labels, err
		}},
		{n.Fields, func() (rows.Source, error) {
			in.Fields, err = OpenFields(n.Fields)
			return in.Fields, err
		}},
		{n.Keys, func() (rows.Source, error) { return OpenKeys(n.Keys, n.Options.OnDuplicate) }},
		{n.Pictures.Folder, func() (rows.Source, error) {
			in.Made, err = OpenPictures(n.Pictures)
			return in.Made, err
		}},
		{n.Texts.Path, func() (rows.Source, error) {
			in.Made, err = OpenTexts(n.Texts, n.Hash, n.TextColumn, n.Options)
			return in.Made, err
		}},
		{n.Items.Path, func() (rows.Source, error) {
			in.Whole, err = importer.Open(n.Items.Path, n.Items.Name, n.Options)
			return in.Whole, err
		}},
	} {
		if f.name == "" {
			continue
		}
		s, err := f.open()
		if err != nil {
			return err
		}
		in.Together = append(in.Together, s)
	}
	if n.Declared && in.Fields != nil && in.Fields.Declared == nil {
		return exit.Usagef("--init with --fields %s: only the header of a .csv says the types of the fields; use one, or init first", n.Fields)
	}
	return SameRows(in.Together)
}

// SameRows checks that all files have the same number of rows.
func SameRows(in rows.Together) error {
	for _, s := range in[1:] {
		if first := in[0]; s.Rows() != first.Rows() {
			return exit.Failedf("%s has %s, %s has %s: row i of every file belongs to item i",
				first.Path(), term.Plural(first.Rows(), "row", "rows"), s.Path(),
				term.Plural(s.Rows(), "row", "rows"))
		}
	}
	return nil
}

// words are the flags of the options of an import.
var words = importer.Words{
	File: "--items ", Key: "--key-column", Labels: "--label-column", Separator: "--label-separator",
	Vectors: "--vector-column", Fields: "--field-column", Merge: "--merge",
	OnDuplicate: "--on-duplicate first or last", IgnoreUnknown: "--ignore-unknown",
	NameVector: "--vector-column NAME=COLUMN", NameField: "--field-column FIELD=COLUMN",
}

// Schema returns the schema of a collection for the files.
func (in *Files) Schema() (db.Schema, error) {
	if in.Whole != nil {
		return in.Whole.Schema()
	}
	if in.Made != nil {
		return in.Made.Schema()
	}
	var s db.Schema
	for _, v := range in.Vectors {
		s.Modalities = append(s.Modalities, db.Modality{Name: v.Modality, Dim: v.Cols(),
			Sparse: v.IsSparse()})
	}
	if in.Codes != nil {
		s.Bits = in.Codes.Bits()
	}
	if in.Fields != nil {
		s.Fields = in.Fields.Declared
	}
	return s, nil
}

// Check checks the shapes of the files against the collection. merge says that they are to be merged with its
// items.
func (in *Files) Check(ctx context.Context, c api.Collection, merge bool) error {
	s, err := c.Schema(ctx)
	if err != nil {
		return err
	}
	if in.Whole != nil {
		return in.Whole.Check(c.Name(), s)
	}
	if in.Made != nil {
		return in.Made.Check(ctx, c, s)
	}
	for _, v := range in.Vectors {
		m, err := FindModality(c.Name(), s, "--vectors", v.Modality)
		if err == nil {
			err = v.CheckDim(m)
		}
		if err != nil {
			return err
		}
		if !m.Sparse { // a sparse vector may have no numbers
			in.LeastRow += 4 * int64(m.Dim)
		}
	}
	switch {
	case in.Codes == nil && s.Bits > 0 && !merge:
		return exit.Usagef("--codes FILE is missing: the items of collection %q bring their codes", c.Name())
	case in.Codes != nil && s.Bits == 0:
		return exit.Usagef("--codes: collection %q learns its codes from vectors", c.Name())
	case in.Codes != nil:
		if err := in.Codes.CheckBits(c, s.Bits); err != nil {
			return err
		}
	}
	if in.Fields != nil {
		return in.Fields.Check(c, s)
	}
	return nil
}

// FindModality returns the modality with a name, which a flag gives, of a collection and its schema.
func FindModality(collection string, s db.Schema, flag, name string) (db.Modality, error) {
	var names []string
	for _, m := range s.Modalities {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if s.Bits > 0 {
		return db.Modality{}, exit.Usagef(
			"%s: there is no modality %q: the items of collection %q bring their codes and have none", flag,
			name, collection)
	}
	return db.Modality{}, exit.Usagef("%s: there is no modality %q: collection %q has %s", flag, name,
		collection, strings.Join(names, ", "))
}

// IsOfInput reports whether an error of this package is about what the files hold, or how they are named, so
// that to read them again would give it again.
func IsOfInput(err error) bool {
	var failure *exit.Failure
	var file *files.Error
	return errors.As(err, &failure) || errors.As(err, &file) || exit.Code(err) == exit.Usage
}

// SkippedRows are the rows that were left out, grouped by reason. Reasons that differ only in numbers and
// quoted text are one.
type SkippedRows struct {
	N      int
	Groups []*SkippedReason          // in order of first appearance
	byKind map[string]*SkippedReason // by reasonKind
}

// A SkippedReason is a reason for which rows were left out.
type SkippedReason struct {
	Reason string   `json:"reason"` // of the first row
	Count  int      `json:"count"`
	Rows   []int    `json:"rows"`            // the first few rows
	Files  []string `json:"files,omitempty"` // of pictures: those of Rows
}

const (
	shownReasons = 20 // largest number of reasons; the rest counts as one
	shownRows    = 5  // of each reason
)

// Add adds a row. A negative one has no number: it counts alone.
func (s *SkippedRows) Add(row int, why string) {
	s.N++
	kind := reasonKind(why)
	g := s.byKind[kind]
	if g == nil && len(s.Groups) >= shownReasons {
		kind, why = "", "other reasons"
		g = s.byKind[kind]
	}
	if g == nil {
		if s.byKind == nil {
			s.byKind = map[string]*SkippedReason{}
		}
		g = &SkippedReason{Reason: why, Rows: []int{}}
		s.byKind[kind] = g
		s.Groups = append(s.Groups, g)
	}
	if g.Count++; row >= 0 && len(g.Rows) < shownRows {
		g.Rows = append(g.Rows, row)
	}
}

// GoOn begins with the groups that an earlier SkippedRows had.
func (s *SkippedRows) GoOn(groups []*SkippedReason) {
	s.byKind = map[string]*SkippedReason{}
	for i, g := range groups {
		kind := reasonKind(g.Reason)
		if i >= shownReasons {
			kind = "" // other reasons
		}
		s.N += g.Count
		s.byKind[kind] = g
	}
	s.Groups = groups
}

// reasonKind returns a reason without the parts that differ between rows.
func reasonKind(why string) string {
	return digits.ReplaceAllString(quotedText.ReplaceAllString(why, `""`), "0")
}

var (
	quotedText = regexp.MustCompile(`"[^"]*(?:"|$)`)
	digits     = regexp.MustCompile(`\p{Nd}+`)
)
