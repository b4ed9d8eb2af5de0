package search

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
)

// filterOf returns the rows that match an expression and have the modality to. Nil means all rows that have a
// code, which saves an intersection with them. The bitmap may belong to the view: do not write to it.
func filterOf(ctx context.Context, cv *state.CollectionView, r pebble.Reader, to, expr string, args []any) (*roaring.Bitmap, error) {
	var presence *roaring.Bitmap
	if to != "" {
		t, err := cv.ModalityOf(to)
		if err != nil {
			return nil, err
		}
		if cv.Presence[t].GetCardinality() < cv.Live.GetCardinality() {
			presence = cv.Presence[t]
		}
	}
	rows, err := kept(ctx, cv, r, expr, args)
	switch {
	case err != nil:
		return nil, err
	case rows == nil:
		return presence, nil
	case presence != nil:
		return roaring.And(rows, presence), nil
	}
	return rows, nil
}

// kept is Matching with a cache: it keeps the bitmap for later searches, as reading the sets of an expression
// may take longer than the search. Do not write to the bitmap.
func kept(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any) (*roaring.Bitmap, error) {
	text, short := textOf(expr, args)
	if !short {
		return Matching(ctx, cv, r, expr, args)
	}
	if rows := cv.Filters.Rows(text); rows != nil {
		return rows, nil
	}
	rows, err := Matching(ctx, cv, r, expr, args)
	if err == nil {
		cv.Filters.Keep(text, rows)
	}
	return rows, err
}

// textOf returns the key of a filter in state.Filters: the expression and its arguments. It reports false if
// the filter must not be kept: if it is empty, is longer than 1 KiB, or has a list as an argument.
func textOf(expr string, args []any) (string, bool) {
	const longest = 1 << 10 // bytes
	n := len(expr)
	for _, arg := range args {
		switch x := arg.(type) {
		case string:
			n += len(x)
		case bool, int, int64, float64, time.Time:
			n += 8
		default:
			return "", false
		}
	}
	if expr == "" || n > longest {
		return "", false
	}
	spelt, err := where.Spell(args)
	return expr + "\x00" + spelt, err == nil
}

// Matching returns the rows of live items that match an expression, in a bitmap of the caller's own; nil for
// the empty expression, which all items match. args are the values of its placeholders. A mistake in the
// expression or the arguments is a *fault.WhereError.
func Matching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any) (*roaring.Bitmap, error) {
	if expr == "" {
		return nil, NoArgs(args)
	}
	return (*Scanned)(nil).Matching(ctx, cv, r, expr, args, nil)
}

// NoArgs returns an error if there are arguments. Callers use it when the expression is empty: a user who
// gives arguments has lost the expression, and would get all items.
func NoArgs(args []any) error {
	if len(args) == 0 {
		return nil
	}
	return &fault.WhereError{Column: 1, Reason: fmt.Sprintf("there is no expression, and %d arguments are given", len(args))}
}

// EachMatching calls f with the rows of live items that match an expression, a container of 65,536 rows at a
// time, in ascending order. found has the low 16 bits of each row; it may be empty, and belongs to f.
// EachMatching stops when f returns false.
//
// Evaluating container by container has two advantages. It needs memory for only one container of each set in
// the expression, however many rows there are. And if one part of an AND leaves no row of a container, the
// other parts are not read for it. r must read the snapshot of the view of cv. Fields without an index are
// read from the items, on several goroutines.
func EachMatching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any, f func(container uint16, found *roaring.Bitmap) bool) error {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return err
	}
	return eachMatching(ctx, cv, r, filter, newFieldScan(ctx, cv, r, filter.Scans), f)
}

// eachMatching is EachMatching with a checked filter, and a scan of its fields without an index; nil if it
// has none.
func eachMatching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, filter *where.Filter, scan *fieldScan, f func(container uint16, found *roaring.Bitmap) bool) error {
	rows := &whereRows{ctx: ctx, r: r, cv: cv, slices: map[int]*sliceReader{}, scan: scan}
	err := rows.eval(filter, f)
	for _, s := range rows.slices {
		if cerr := s.it.Close(); err == nil {
			err = fault.ReadError(cerr, "rows of a field")
		}
	}
	return err
}

// checked parses an expression and checks it against a collection.
func checked(cv *state.CollectionView, expr string, args []any) (*where.Filter, error) {
	parsed, err := where.Parse(expr, args...)
	if err != nil {
		return nil, whereError(err)
	}
	filter, err := parsed.Check(columns{cv})
	return filter, whereError(err)
}

// scannedFields returns the names of the fields without an index that a filter compares, in the order of the
// collection. The filter has been evaluated before.
func scannedFields(cv *state.CollectionView, expr string, args []any) (names []string) {
	if expr == "" {
		return nil
	}
	filter, err := checked(cv, expr, args)
	if err != nil {
		return nil
	}
	for i, f := range cv.Fields {
		if slices.ContainsFunc(filter.Scans, func(s where.Scan) bool { return s.Field == i }) {
			names = append(names, f.Name)
		}
	}
	return names
}

// whereError turns a where.Error into the public fault.WhereError. Other errors stay unchanged.
func whereError(err error) error {
	var e *where.Error
	if errors.As(err, &e) {
		return &fault.WhereError{Column: e.Column, Reason: e.Reason}
	}
	return err
}

// columns is a collection as a where.Schema: it resolves the names of an expression. Its errors list the
// valid names.
type columns struct{ *state.CollectionView }

// Field implements where.Schema.
func (cv columns) Field(name string) (where.Field, error) {
	for i, f := range cv.Fields {
		if f.Name == name {
			return where.Field{ID: i, Type: whereTypes[f.Type], Indexed: f.Indexed}, nil
		}
	}
	there := fmt.Sprintf("collection %q has no fields", cv.Name)
	if len(cv.Fields) > 0 {
		there = fmt.Sprintf("the fields of collection %q are %s", cv.Name, record.Names(cv.Fields))
	}
	if strings.EqualFold(name, "labels") {
		return where.Field{}, fmt.Errorf("unknown field %q: labels are asked for one at a time, label = 'cat'; %s", name, there)
	}
	return where.Field{}, fmt.Errorf("unknown field %q: %s", record.Shortened(name), there)
}

// whereTypes maps the types of fields to types in expressions.
var whereTypes = map[record.FieldType]where.Type{record.String: where.String, record.Int: where.Int, record.Float: where.Float, record.Bool: where.Bool, record.Time: where.Time}

// Modality implements where.Schema. The error differs from the error of ModalityOf, because it gets a column
// of the expression.
func (cv columns) Modality(name string) (int, error) {
	for i, m := range cv.Modalities {
		if m.Name == name {
			return i, nil
		}
	}
	fields := "no fields"
	if len(cv.Fields) > 0 {
		fields = "the fields " + record.Names(cv.Fields)
	}
	there := fmt.Sprintf("collection %q has the modalities %s and %s", cv.Name, record.Names(cv.Modalities), fields)
	if cv.CodesOnly() {
		there = fmt.Sprintf("the items of collection %q bring codes, and it has %s", cv.Name, fields)
	}
	return 0, fmt.Errorf("unknown modality or field %q: %s", record.Shortened(name), there)
}
