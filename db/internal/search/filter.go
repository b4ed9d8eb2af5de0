package search

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/state"
	"github.com/fddhdb/fddhdb/db/internal/where"
	"github.com/fddhdb/fddhdb/db/internal/words"
	"github.com/fddhdb/fddhdb/db/internal/work"
)

// filterOf returns the rows that match an expression and have the modality to. Nil means all rows that have a
// code, which saves an intersection with them. The bitmap may belong to the view: do not write to it.
func filterOf(ctx context.Context, cv *state.CollectionView, r pebble.Reader, to, expr string,
	args []any) (*roaring.Bitmap, error) {
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
func kept(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string,
	args []any) (*roaring.Bitmap, error) {
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
func Matching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string,
	args []any) (*roaring.Bitmap, error) {
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
	return &fault.WhereError{Column: 1,
		Reason: fmt.Sprintf("there is no expression, and %d arguments are given", len(args))}
}

// EachMatching calls f with the rows of live items that match an expression, a container of 65,536 rows at a
// time, in ascending order. found has the low 16 bits of each row; it may be empty, and belongs to f.
// EachMatching stops when f returns false.
//
// Evaluating container by container has two advantages. It needs memory for only one container of each set in
// the expression, however many rows there are. And if one part of an AND leaves no row of a container, the
// other parts are not read for it. r must read the snapshot of the view of cv. Fields without an index are
// read from the items, on several goroutines.
func EachMatching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string, args []any,
	f func(container uint16, found *roaring.Bitmap) bool) error {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return err
	}
	return eachMatching(ctx, cv, r, filter, newFieldScan(ctx, cv, r, filter.Scans), f)
}

// eachMatching is EachMatching with a checked filter, and a scan of its fields without an index; nil if it
// has none.
func eachMatching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, filter *where.Filter,
	scan *fieldScan, f func(container uint16, found *roaring.Bitmap) bool) error {
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
		if slices.ContainsFunc(filter.Scans,
			func(s where.Scan) bool { return s.Field == i && !s.Few }) {
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
			return where.Field{ID: i, Type: whereTypes[f.Type], Indexed: f.Indexed,
				Words: f.Words}, nil
		}
	}
	there := fmt.Sprintf("collection %q has no fields", cv.Name)
	if len(cv.Fields) > 0 {
		there = fmt.Sprintf("the fields of collection %q are %s", cv.Name, record.Names(cv.Fields))
	}
	switch strings.ToLower(name) {
	case "labels", "tags", "tag", "class", "category": // columns of such names become labels
		return where.Field{}, fmt.Errorf(
			"unknown field %q: labels are asked for one at a time, label = 'cat'; %s", name, there)
	}
	return where.Field{}, fmt.Errorf("unknown field %q: %s", record.Shortened(name), there)
}

// whereTypes maps the types of fields to types in expressions.
var whereTypes = map[record.FieldType]where.Type{record.String: where.String, record.Int: where.Int,
	record.Float: where.Float, record.Bool: where.Bool, record.Time: where.Time}

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
	there := fmt.Sprintf("collection %q has the modalities %s and %s", cv.Name, record.Names(cv.Modalities),
		fields)
	if cv.CodesOnly() {
		there = fmt.Sprintf("the items of collection %q bring codes, and it has %s", cv.Name, fields)
	}
	return 0, fmt.Errorf("unknown modality or field %q: %s", record.Shortened(name), there)
}

// whereRows implements where.Rows for one container of a collection after the other. Its bitmaps have the low
// 16 bits of rows. Its methods, except Live, check ctx.
type whereRows struct {
	ctx context.Context
	r   pebble.Reader // the snapshot of the view
	cv  *state.CollectionView

	container uint16               // container being evaluated: row >> 16
	live      *roaring.Bitmap      // its rows that have an item
	labelled  *roaring.Bitmap      // labelled rows of all containers; nil: not read yet
	slices    map[int]*sliceReader // by field, made on first use; EachMatching closes them
	scan      *fieldScan           // of fields without an index; nil if the filter names none
}

// eval evaluates the filter for each container that has live rows, in ascending order, until f returns false.
// It leaves the slice readers open.
func (w *whereRows) eval(filter *where.Filter, f func(container uint16, found *roaring.Bitmap) bool) error {
	for it := w.cv.Live.Iterator(); it.HasNext(); {
		w.container = uint16(it.PeekNext() >> 16)
		w.live = w.part(w.cv.Live)
		if w.scan != nil {
			w.scan.begin(w.container)
		}
		found, err := filter.Eval(w)
		if err != nil || !f(w.container, found) || w.container == math.MaxUint16 {
			return err
		}
		it.AdvanceIfNeeded((uint32(w.container) + 1) << 16)
	}
	return nil
}

// part returns the rows of a set in the container, as low 16 bits in a new bitmap. The cost depends on the
// container, not on the set.
func (w *whereRows) part(rows *roaring.Bitmap) *roaring.Bitmap {
	from := uint64(w.container) << 16
	all := roaring.New()
	all.AddRange(from, from+1<<16)
	all.And(rows)
	return roaring.AddOffset64(all, -int64(from))
}

// Live implements where.Rows.
func (w *whereRows) Live() *roaring.Bitmap { return w.live }

// Modality implements where.Rows. Presence is in memory.
func (w *whereRows) Modality(id int) (*roaring.Bitmap, error) {
	return w.part(w.cv.Presence[id]), w.ctx.Err()
}

// Label implements where.Rows. It reads one layer of the store. A label that no item ever had has no rows.
func (w *whereRows) Label(name string) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	ids := w.cv.Labels.Lookup([]string{name})
	if len(ids) == 0 {
		return roaring.New(), nil
	}
	return record.ReadRows(w.r, codec.RowsKey(w.cv.ID, codec.SetLabel, ids[0], w.container))
}

// Labelled implements where.Rows. The first call reads all layers of labels, in one pass over the store.
// Reading them for each container would take many times as long.
func (w *whereRows) Labelled() (*roaring.Bitmap, error) {
	if w.labelled == nil {
		all := roaring.New()
		prefix := codec.SetPrefix(w.cv.ID, codec.SetLabel)
		n := 0
		err := record.ForEach(w.r, prefix, func(key, value []byte) error {
			if n++; n%1024 == 0 {
				if err := w.ctx.Err(); err != nil {
					return err
				}
			}
			_, _, container := codec.RowsKeyParts(key)
			return record.AddRows(all, key, value, container)
		})
		if err != nil {
			return nil, err
		}
		w.labelled = all
	}
	return w.part(w.labelled), w.ctx.Err()
}

// Valued implements where.Rows.
func (w *whereRows) Valued(field int) (*roaring.Bitmap, error) {
	if w.cv.Fields[field].Type == record.String {
		return w.Strings(field, where.Range{Open: true})
	}
	return w.between(field, 0, math.MaxUint64)
}

// Scan implements where.Rows.
func (w *whereRows) Scan(i int, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	return w.scan.rows(w.container, i, among)
}

// Strings implements where.Rows. Each value of a string field has a layer of rows, and the keys of one
// container are in byte order of the values. So a range of values is a range of keys; Strings reads them all.
func (w *whereRows) Strings(field int, r where.Range) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	lo := codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, r.Lo)
	if r.Single() {
		return record.ReadRows(w.r, lo)
	}
	hi := codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, r.Hi)
	if r.Open {
		hi = codec.PrefixEnd(codec.FieldRowsKey(w.cv.ID, uint16(field), w.container, ""))
	}
	out := roaring.New()
	n := 0
	err := record.ForEachIn(w.r, lo, hi, func(key, value []byte) error {
		if n++; n%1024 == 0 {
			if err := w.ctx.Err(); err != nil {
				return err
			}
		}
		if _, _, text := codec.FieldRowsKeyParts(key); !r.Has(text) {
			return nil
		}
		l, err := codec.DecodeLayer(value)
		if err != nil {
			return fault.Corrupt(err, "rows %x", key)
		}
		out.Or(l.Added)
		return nil
	})
	return out, err
}

// Grams implements where.Rows. Each term has a layer of rows. Rows of long texts are always among the answer.
func (w *whereRows) Grams(field int, grams []string) (*roaring.Bitmap, error) {
	const few = 32 // rows that are looked at sooner than another set is read
	read := func(term string) (*roaring.Bitmap, error) {
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		return record.ReadRows(w.r, codec.FieldWordsKey(w.cv.ID, uint16(field), w.container, term))
	}
	out, err := read(string([]byte{words.Gram}) + grams[0])
	for _, g := range grams[1:] {
		if err != nil || out.GetCardinality() <= few {
			break
		}
		var rows *roaring.Bitmap
		if rows, err = read(string([]byte{words.Gram}) + g); err == nil {
			out.And(rows)
		}
	}
	if err != nil {
		return nil, err
	}
	long, err := read(string([]byte{words.Long}))
	if err != nil {
		return nil, err
	}
	return roaring.Or(out, long), nil
}

// Ints implements where.Rows.
func (w *whereRows) Ints(field int, lo, hi int64) (*roaring.Bitmap, error) {
	return w.between(field, codec.IntImage(lo), codec.IntImage(hi))
}

// Floats implements where.Rows.
func (w *whereRows) Floats(field int, lo, hi float64) (*roaring.Bitmap, error) {
	return w.between(field, codec.FloatImage(lo), codec.FloatImage(hi))
}

// Bools implements where.Rows.
func (w *whereRows) Bools(field int, value bool) (*roaring.Bitmap, error) {
	x := codec.BoolImage(value)
	return w.between(field, x, x)
}

// between returns the rows of the container whose value in a bit-sliced field has an image from lo to hi,
// both included. It reads at most 65 slices, see codec.Between.
func (w *whereRows) between(field int, lo, hi uint64) (*roaring.Bitmap, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	s := w.slices[field]
	if s == nil {
		var err error
		if s, err = newSliceReader(w.r, w.cv.ID, field); err != nil {
			return nil, err
		}
		w.slices[field] = s
	}
	s.seek(w.container)
	exists, err := s.slice(codec.SliceExists)
	if err != nil || exists == nil {
		return roaring.New(), err
	}
	return codec.Between(exists, func(bit int) (*codec.Container, error) {
		return s.slice(codec.SliceOf(bit))
	}, lo, hi)
}

// A sliceReader reads the slices of a bit-sliced field, container by container. The slices of a container
// follow each other in the store, from the highest bit down; a comparison reads them in this order and often
// stops early. So the reader moves one iterator forward, and keeps the slices for the next comparison with
// the field in the same container. It holds up to 65 containers of 8 KiB.
type sliceReader struct {
	it         *pebble.Iterator // over the slices of the field in all containers; EachMatching closes it
	collection uint32
	field      uint16

	container uint16 // current container; set if begun
	begun     bool   // seek has been called
	valid     bool   // the iterator is at a slice that is not in slices, see slice
	read      int    // slices with a smaller number are in slices, or do not exist

	slices [codec.SliceCount]*codec.Container // of the container; nil: not read, or absent
	free   []*codec.Container                 // memory of earlier containers, for reuse
}

// newSliceReader returns a reader without a position.
func newSliceReader(r pebble.Reader, collection uint32, field int) (*sliceReader, error) {
	prefix := codec.FieldPrefix(collection, uint16(field))
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: codec.PrefixEnd(prefix)})
	if err != nil {
		return nil, fault.ReadError(err, "rows of field %d", field)
	}
	return &sliceReader{it: it, collection: collection, field: uint16(field)}, nil
}

// seek goes to a container and makes slices of the container before invalid. If the reader is there already,
// it keeps its slices.
func (s *sliceReader) seek(container uint16) {
	if s.begun && s.container == container {
		return
	}
	s.begun, s.container, s.read = true, container, 0
	for i, c := range s.slices {
		if c != nil {
			s.slices[i], s.free = nil, append(s.free, c)
		}
	}
	s.valid = s.it.SeekGE(codec.FieldRowsKey(s.collection, s.field, container, ""))
}

// slice returns slice number n of the container; nil if it does not exist, so no row has the bit. It reads
// until it has seen a slice with the number n or a greater one. The slice is valid until seek goes to another
// container; do not write to it.
func (s *sliceReader) slice(n byte) (*codec.Container, error) {
	for s.read <= int(n) {
		if !s.valid {
			// The container, or the field, has ended: no slices follow.
			if err := s.it.Error(); err != nil {
				return nil, fault.ReadError(err, "rows of field %d", s.field)
			}
			s.read = codec.SliceCount
			break
		}
		key := s.it.Key()
		if err := codec.CheckKey(key); err != nil {
			return nil, fault.Corrupt(err, "key")
		}
		_, container, value := codec.FieldRowsKeyParts(key)
		if container != s.container {
			s.valid = false
			continue
		}
		if len(value) != 1 || value[0] >= codec.SliceCount {
			return nil, fault.Corrupt(fmt.Errorf("slice %x", value), "rows %x", key)
		}
		if value[0] > n {
			s.read = int(n) + 1
			break
		}
		b, err := s.it.ValueAndErr()
		if err != nil {
			return nil, fault.ReadError(err, "rows %x", key)
		}
		l, err := codec.DecodeLayer(b)
		if err != nil {
			return nil, fault.Corrupt(err, "rows %x", key)
		}
		c := new(codec.Container)
		if n := len(s.free); n > 0 {
			c, s.free = s.free[n-1], s.free[:n-1]
		}
		c.Set(l.Added)
		s.slices[value[0]], s.read = c, int(value[0])+1
		s.valid = s.it.Next()
	}
	return s.slices[n], nil
}

// A Scanned holds the results of tests on fields without an index, for the items of a view. The committer
// evaluates the filter again in a later view, and reads only the items that have changed. A Scanned takes
// memory for two sets of rows, and one more for each test.
type Scanned struct {
	schema *record.Descriptor // schema of the checked filter: under another one the tests may differ
	read   *roaring.Bitmap    // rows read
	found  []*roaring.Bitmap  // by test: rows read that pass it
}

// Scans reports whether a filter compares a field without an index, so that it has to read items.
func Scans(cv *state.CollectionView, expr string, args []any) (bool, error) {
	filter, err := checked(cv, expr, args)
	return err == nil && len(filter.Scans) > 0, err
}

// Scan evaluates a filter and returns the results of its tests. The arguments are as for EachMatching.
func Scan(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string,
	args []any) (*Scanned, error) {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return nil, err
	}
	out := &Scanned{schema: cv.Descriptor, read: roaring.New(),
		found: make([]*roaring.Bitmap, len(filter.Scans))}
	for i := range out.found {
		out.found[i] = roaring.New()
	}
	scan := newFieldScan(ctx, cv, r, filter.Scans)
	err = eachMatching(ctx, cv, r, filter, scan, func(container uint16, _ *roaring.Bitmap) bool {
		if scan != nil {
			addContainer(out.read, container, scan.read)
			for i, rows := range scan.found {
				addContainer(out.found[i], container, rows)
			}
		}
		return true
	})
	return out, err
}

// Matching is the function Matching, but reads only the items of changed and the items that s has not read;
// all items if s is nil. changed are the rows whose items were replaced since the view of s.
func (s *Scanned) Matching(ctx context.Context, cv *state.CollectionView, r pebble.Reader, expr string,
	args []any, changed *roaring.Bitmap) (*roaring.Bitmap, error) {
	filter, err := checked(cv, expr, args)
	if err != nil {
		return nil, err
	}
	scan := newFieldScan(ctx, cv, r, filter.Scans)
	if scan != nil && s != nil && s.schema == cv.Descriptor {
		s.read.AndNot(changed)
		scan.known = s
	}
	out := roaring.New()
	err = eachMatching(ctx, cv, r, filter, scan, func(container uint16, found *roaring.Bitmap) bool {
		addContainer(out, container, found)
		return true
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// into gives a fieldScan the known results of a container.
func (s *Scanned) into(container uint16, scan *fieldScan) {
	w := whereRows{container: container}
	scan.read = w.part(s.read)
	for i, rows := range s.found {
		scan.found[i] = w.part(rows)
		scan.found[i].And(scan.read)
	}
}

// addContainer adds the rows of a container, given as low 16 bits.
func addContainer(to *roaring.Bitmap, container uint16, rows *roaring.Bitmap) {
	to.Or(roaring.AddOffset64(rows, int64(container)<<16))
}

// A fieldScan evaluates the tests of a filter on fields without an index. It reads the item records of one
// container after the other. It reads each record at most once for all tests, and only up to the last tested
// field.
type fieldScan struct {
	ctx    context.Context
	r      pebble.Reader // the snapshot of the view
	cv     *state.CollectionView
	scans  []where.Scan
	fields []scannedField // ascending by id
	known  *Scanned       // results from an earlier view; nil: none

	read  *roaring.Bitmap   // rows of the container that were read, as low 16 bits
	found []*roaring.Bitmap // by scan: rows read that pass it
}

// A scannedField is a field to read, with its tests.
type scannedField struct {
	id    uint32
	scans []int // positions in fieldScan.scans
}

// newFieldScan returns a fieldScan without a container; nil if there are no tests.
func newFieldScan(ctx context.Context, cv *state.CollectionView, r pebble.Reader,
	scans []where.Scan) *fieldScan {
	if len(scans) == 0 {
		return nil
	}
	s := &fieldScan{ctx: ctx, r: r, cv: cv, scans: scans}
	for i := range scans {
		id := uint32(scans[i].Field)
		at, there := slices.BinarySearchFunc(s.fields, id,
			func(f scannedField, id uint32) int { return int(f.id) - int(id) })
		if !there {
			s.fields = slices.Insert(s.fields, at, scannedField{id: id})
		}
		s.fields[at].scans = append(s.fields[at].scans, i)
	}
	return s
}

// begin starts another container.
func (s *fieldScan) begin(container uint16) {
	s.read, s.found = roaring.New(), make([]*roaring.Bitmap, len(s.scans))
	for i := range s.found {
		s.found[i] = roaring.New()
	}
	if s.known != nil {
		s.known.into(container, s)
	}
}

// rows returns the rows of the container that pass a test, among the rows read. These include the rows of
// among, which are live.
func (s *fieldScan) rows(container uint16, scan int, among *roaring.Bitmap) (*roaring.Bitmap, error) {
	if missing := roaring.AndNot(among, s.read); !missing.IsEmpty() {
		if err := s.readRows(container, missing.ToArray()); err != nil {
			return nil, err
		}
		s.read.Or(missing)
	}
	return s.found[scan], nil
}

// readRows reads rows, given as low 16 bits. It uses several goroutines for many rows.
func (s *fieldScan) readRows(container uint16, rows []uint32) error {
	const part = 8192 // fewest rows for a goroutine
	n := max(1, min(work.All(), len(rows)/part))
	found := make([][][]uint32, n) // by part and by scan
	err := work.Parallel(s.ctx, n, func(i int) error {
		found[i] = make([][]uint32, len(s.scans))
		return s.readPart(container, rows[len(rows)*i/n:len(rows)*(i+1)/n], found[i])
	})
	if err != nil {
		return err
	}
	for i := range found {
		for scan, rows := range found[i] {
			s.found[scan].AddMany(rows)
		}
	}
	return nil
}

// readPart reads rows and appends to found, by scan, the rows that pass it.
func (s *fieldScan) readPart(container uint16, rows []uint32, found [][]uint32) (err error) {
	row := func(low uint32) uint32 { return uint32(container)<<16 | low }
	first, last := row(rows[0]), row(rows[len(rows)-1])
	it, err := s.r.NewIter(&pebble.IterOptions{
		LowerBound: codec.NumberKey(codec.KindItem, s.cv.ID, first),
		UpperBound: append(codec.NumberKey(codec.KindItem, s.cv.ID, last), 0),
	})
	if err != nil {
		return fault.ReadError(err, "items in rows from %d on", first)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = fault.ReadError(cerr, "items in rows from %d on", first)
		}
	}()
	it.First()
	for n, low := range rows {
		if n%1024 == 0 {
			if err := s.ctx.Err(); err != nil {
				return err
			}
		}
		if err := seekItem(it, s.cv.ID, row(low)); err != nil {
			return err
		}
		value, err := it.ValueAndErr()
		if err != nil {
			return fault.ReadError(err, "item in row %d", row(low))
		}
		if err := s.test(value, low, found); err != nil {
			return fault.Corrupt(err, "item in row %d", row(low))
		}
	}
	return nil
}

// itemKeyBytes is the length of the key of an item record, which ends with the row.
var itemKeyBytes = len(codec.NumberKey(codec.KindItem, 0, 0))

// seekItem moves an iterator over item records forward to a row, which must exist.
func seekItem(it *pebble.Iterator, collection, row uint32) error {
	const near = 16 // this many steps cost no more than a seek
	for steps := 0; it.Valid(); steps++ {
		key := it.Key()
		if len(key) != itemKeyBytes { // CheckKey would double the cost
			return fault.Corrupt(codec.CheckKey(key), "key")
		}
		switch at := binary.BigEndian.Uint32(key[len(key)-4:]); {
		case at == row:
			return nil
		case at > row:
			return fault.Corrupt(errors.New("missing"), "item in row %d", row)
		case steps < near:
			it.Next()
		default:
			it.SeekGE(codec.NumberKey(codec.KindItem, collection, row))
		}
	}
	if err := it.Error(); err != nil {
		return fault.ReadError(err, "item in row %d", row)
	}
	return fault.Corrupt(errors.New("missing"), "item in row %d", row)
}

// test evaluates the tests of a row on its record. It stops behind the last tested field.
func (s *fieldScan) test(value []byte, low uint32, found [][]uint32) error {
	fields := codec.FieldsOf(value)
	more := fields.Next()
	for i := range s.fields {
		f := &s.fields[i]
		for more && fields.ID < f.id {
			more = fields.Next()
		}
		if !more {
			return fields.Err()
		}
		if fields.ID > f.id {
			continue
		}
		if want := &s.cv.Fields[f.id]; record.StoredType(fields.Type) != want.Type {
			return fmt.Errorf("field %q is of type %s, its value of type %s", want.Name, want.Type,
				record.StoredType(fields.Type))
		}
		for _, scan := range f.scans {
			if matches(&s.scans[scan], &fields.StoredField) {
				found[scan] = append(found[scan], low)
			}
		}
	}
	return nil
}

// matches reports whether a stored value passes a test of its type.
func matches(s *where.Scan, f *codec.StoredField) bool {
	switch s.Type {
	case where.String:
		return s.String(f.Text)
	case where.Int, where.Time:
		return s.Int(int64(f.Bits))
	case where.Float:
		return s.Float(math.Float64frombits(f.Bits))
	}
	return s.Bool(f.Bits == 1)
}
