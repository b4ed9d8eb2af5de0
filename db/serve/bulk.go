package serve

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"mime"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/files/npy"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// maxLine bounds an item of an import, in bytes of JSON.
const maxLine = 64 << 20

// maxWindow bounds the memory of a decoder of zstd, as RFC 9659 does.
const maxWindow = 8 << 20

// npyType is the type of arrays of numpy, octets that of models.
const (
	npyType = "application/x-npy"
	octets  = "application/octet-stream"
)

// registerBulk adds the routes that bring many items in and out.
func registerBulk(t *router) {
	in := handle(t, "POST", ofCollection+":import", Write, "Store many items: an item a line",
		func(context.Context, *request, *none) (*rest.Imported, error) { return nil, nil },
		parameter{"merge", "set only the parts that the items have", "boolean", 0},
		parameter{"on_error", "stop (default) or skip: what an item that cannot be stored does", "string", 0},
		parameter{"vectors", "of a body that is a .npy: the modality of its rows", "string", 0},
		parameter{"codes", "of a body that is a .npy: its rows are codes", "boolean", 0},
		parameter{"number_from",
			"of a body that is a .npy: the key of row i is this number plus i; default: the next free numbers", "integer", math.MaxInt64})
	in.accepts, in.untimed, in.inParts = []string{ndjson, npyType}, true, true
	in.line, in.run = reflect.TypeFor[rest.Item](), importItems
	out := handle(t, "GET", ofCollection+":export", Read,
		"Read many items, in database order: an item a line",
		func(context.Context, *request, *none) (*none, error) { return nil, nil },
		append([]parameter{
			{"sample", "only so many items, at random", "integer", math.MaxInt32},
			{"seed", "of the random choice", "integer", math.MaxUint64},
			{"vectors", "a .npy of the vectors of this dense modality, in place of the items", "string", 0},
			{"codes", "a .npy of the codes, in place of the items", "boolean", 0},
		}, append(filtered, inSpace...)...)...)
	out.produces, out.untimed, out.status = []string{ndjson, npyType}, true, http.StatusOK
	out.line, out.run = reflect.TypeFor[db.Item](), exportItems
	keys := on(t, "GET", ofCollection+"/keys", Read,
		"List the keys with a prefix, in order: a JSON string a line",
		func(context.Context, api.Collection, *request, *none) (*none, error) { return nil, nil },
		parameter{"prefix", "of the keys", "string", 0},
		parameter{"limit", "number of keys; 0: all", "integer", math.MaxInt32})
	keys.produces, keys.untimed, keys.status = []string{ndjson}, true, http.StatusOK
	keys.line = reflect.TypeFor[string]()
	keys.run = func(ctx context.Context, r *request) error {
		prefix, limit := r.text("prefix"), r.number("limit")
		c, err := r.collection(ctx)
		if err != nil {
			return err
		}
		return lines(ctx, r.w, first(c.Keys(ctx, prefix), int(limit)))
	}
	model := handle(t, "GET", ofCollection+"/model", Read, "Read the model of a space",
		func(context.Context, *request, *none) (*none, error) { return nil, nil }, inSpace...)
	model.produces, model.status, model.untimed = []string{octets}, http.StatusOK, true
	model.run = func(ctx context.Context, r *request) error {
		c, err := r.collection(ctx)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := c.ExportModel(ctx, &b); err != nil {
			return err
		}
		r.w.Header().Set("Content-Type", octets)
		_, _ = r.w.Write(b.Bytes())
		return nil
	}
	put := handleJob(t, "POST", ofCollection+":import-model", Write,
		"Make a space with a model that was exported",
		func(ctx context.Context, r *request, _ *none) (func(context.Context, telling) (*report.Training,
			error), error) {
			activate := r.flag("activate")
			c, err := r.collection(ctx)
			if err != nil {
				return nil, err
			}
			b := r.raw
			return func(ctx context.Context, t telling) (*report.Training, error) {
				return c.ImportModel(ctx, bytes.NewReader(b),
					db.ImportModelOptions{Activate: activate, Progress: t.progress})
			}, err
		}, parameter{"activate", "make the new space the active one", "boolean", 0})
	put.accepts = []string{octets}
}

// first yields the first n values of a sequence; 0 is all.
func first[T any](all iter.Seq2[T, error], n int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		i := 0
		for x, err := range all {
			if i++; !yield(x, err) || i == n {
				return
			}
		}
	}
}

// decompressed returns the body of a request without its encoding.
func decompressed(r *http.Request) (io.ReadCloser, error) {
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return r.Body, nil
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return nil, fault.Invalid("body: it is not gzip: %s", err)
		}
		return z, nil
	case "zstd":
		z, err := zstd.NewReader(r.Body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	default:
		return nil, &statusError{http.StatusUnsupportedMediaType, "unsupported_media_type",
			fmt.Sprintf("Content-Encoding %.40q: gzip and zstd are possible", encoding)}
	}
}

// importItems stores the items of a body in parts, so that it takes little memory. The parts before an error
// stay stored; the error says how many items they have.
func importItems(ctx context.Context, r *request) error {
	imp := &importing{merge: r.flag("merge")}
	switch onError := r.text("on_error"); onError {
	case "skip":
		imp.skip = true
	case "", "stop":
	default:
		return fault.Invalid("on_error=%.40q: stop or skip is expected", onError)
	}
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	if imp.d, err = r.database(); err != nil {
		return err
	}
	imp.s, imp.c, imp.b = r.s, c, imp.d.NewBatch()
	in, err := decompressed(r.Request)
	if err != nil {
		return err
	}
	defer in.Close()
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch {
	case kind == npyType:
		err = imp.array(ctx, r, in)
	case r.values.Has("vectors") || r.values.Has("codes") || r.values.Has("number_from"):
		err = fault.Invalid("vectors, codes and number_from are for a body of the Content-Type %s", npyType)
	default:
		err = imp.lines(ctx, in)
	}
	if err == nil {
		err = imp.commit(ctx)
	}
	if err != nil {
		if imp.out.Items > 0 {
			// "closing" would say that nothing was changed.
			if errors.Is(err, rest.ErrClosing) || errors.Is(err, db.ErrClosed) {
				err = &statusError{http.StatusServiceUnavailable, "interrupted", "the server is closing"}
			}
			err = &rest.PartlyError{Stored: imp.out.Items, Err: err}
		}
		return err
	}
	return r.w.json(http.StatusOK, imp.out)
}

// An importing is an import under way.
type importing struct {
	s           *Server
	d           api.Database
	c           api.Collection
	b           api.Batch
	merge, skip bool
	row         int
	out         rest.Imported
}

// add adds the item of the next row. An item that cannot be stored is left out if the request says so.
func (imp *importing) add(ctx context.Context, it *db.Item, bad error) error {
	put := func(b api.Batch) error {
		if imp.merge {
			return b.Merge(imp.c, it)
		}
		return b.Put(imp.c, it)
	}
	if bad == nil && imp.skip { // a batch is lost after a bad item
		bad = put(imp.d.NewBatch())
	}
	if bad == nil {
		bad = put(imp.b)
	}
	row := imp.row
	imp.row++
	switch {
	case bad == nil:
	case imp.skip && errors.Is(bad, db.ErrInvalid):
		imp.out.Skipped++
		if len(imp.out.Reasons) < 100 {
			imp.out.Reasons = append(imp.out.Reasons, rest.Skipped{Row: row, Reason: bad.Error()})
		}
		return nil
	default:
		return fmt.Errorf("%w (row %d)", bad, row)
	}
	if imp.b.Full() {
		return imp.commit(ctx)
	}
	return nil
}

// commit stores the items of the batch.
func (imp *importing) commit(ctx context.Context) error {
	n := imp.b.Len()
	if n == 0 {
		return nil
	}
	if err := imp.s.wait(ctx); err != nil {
		return err
	}
	defer imp.s.leave()
	if err := imp.b.Commit(ctx); err != nil {
		return err
	}
	imp.out.Items += n
	imp.b = imp.d.NewBatch()
	return nil
}

// lines imports items of JSON, one a line.
func (imp *importing) lines(ctx context.Context, in io.Reader) error {
	body := &ending{Reader: in}
	scan := bufio.NewScanner(body)
	scan.Buffer(make([]byte, 64<<10), maxLine)
	scan.Split(func(data []byte, atEnd bool) (int, []byte, error) {
		if atEnd && body.err != io.EOF && bytes.IndexByte(data, '\n') < 0 {
			return len(data), nil, nil // half a line: the body was cut
		}
		return bufio.ScanLines(data, atEnd)
	})
	for scan.Scan() {
		line := bytes.TrimSpace(scan.Bytes())
		if len(line) == 0 {
			continue
		}
		if imp.row == 0 && bytes.HasPrefix(line, []byte("\x93NUMPY")) {
			return fault.Invalid("body: it is a .npy: send it with Content-Type: %s", npyType)
		}
		var item rest.Item
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		err := d.Decode(&item)
		if err != nil {
			err = fault.Invalid("%s", strings.TrimPrefix(err.Error(), "json: "))
		}
		if err := imp.add(ctx, item.Item(), err); err != nil {
			return err
		}
	}
	if errors.Is(scan.Err(), bufio.ErrTooLong) {
		return fmt.Errorf("%w: row %d has more than %d bytes", rest.ErrTooLarge, imp.row, maxLine)
	}
	if scan.Err() != nil {
		return unread(scan.Err())
	}
	return nil
}

// An ending is a reader that keeps the error with which it ended.
type ending struct {
	io.Reader
	err error
}

func (e *ending) Read(b []byte) (n int, err error) {
	n, e.err = e.Reader.Read(b)
	return n, e.err
}

// array imports the rows of a .npy as vectors of a modality, or as codes.
func (imp *importing) array(ctx context.Context, r *request, in io.Reader) error {
	modality, codes := r.text("vectors"), r.flag("codes")
	numbered := r.values.Has("number_from")
	number := r.number("number_from")
	switch {
	case (modality == "") != codes:
		return fault.Invalid("vectors=MODALITY or codes=true: one of them says what the rows of a .npy are")
	}
	if r.ContentLength < 0 || r.Header.Get("Content-Encoding") != "" {
		return &statusError{http.StatusLengthRequired, "length_required",
			"a .npy needs a Content-Length, and no Content-Encoding"}
	}
	rows, err := npy.Read(in, "body", r.ContentLength)
	if err != nil {
		return badArray(err)
	}
	x, code := make([]float32, rows.Cols), make([]byte, rows.Cols)
	for {
		if err := rows.Next(x); err == io.EOF {
			return nil
		} else if err != nil {
			return badArray(err)
		}
		it := &db.Item{}
		if numbered {
			it.Key = strconv.FormatUint(number+uint64(imp.row), 10)
		}
		if codes {
			for i, v := range x {
				if !(v >= 0 && v <= 255) || v != float32(byte(v)) {
					return fault.Invalid("body: row %d, column %d: %v is no byte of a code, which is a uint8",
						imp.row, i, v)
				}
				code[i] = byte(v)
			}
			it.Code = code
		} else {
			it.Vectors = map[string][]float32{modality: x}
		}
		if err := imp.add(ctx, it, nil); err != nil {
			return err
		}
	}
}

// badArray returns the error of a .npy, whose name is body.
func badArray(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return unread(err)
	}
	return fault.Invalid("%w", err)
}

// exportItems writes the items that match, or an array of a part of them.
func exportItems(ctx context.Context, r *request) error {
	where, args, err := r.filter()
	if err != nil {
		return err
	}
	sample, seed := r.number("sample"), r.number("seed")
	modality, codes := r.text("vectors"), r.flag("codes")
	c, err := r.collection(ctx)
	if err != nil {
		return err
	}
	all := c.Items(ctx, where, args...)
	if sample > 0 {
		all = c.Sample(ctx, int(sample), seed, where, args...)
	}
	if modality == "" && !codes {
		return lines(ctx, r.w, all)
	}
	n, err := c.Count(ctx, where, args...)
	if err != nil {
		return err
	}
	if sample > 0 {
		n = min(n, int(sample))
	}
	r.w.Header().Set("Content-Type", npyType)
	if codes {
		stats, err := c.Stats(ctx)
		if err == nil && stats.Bits == 0 {
			err = fmt.Errorf("%w: there are no codes", db.ErrNoModel)
		}
		if err != nil {
			return err
		}
		return array(r.w, n, stats.Bits/8, all, func(it *db.Item) []byte { return it.Code })
	}
	schema, err := c.Schema(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(schema.Modalities, func(m db.Modality) bool {
		return m.Name == modality &&
			!m.Sparse
	})
	if i < 0 {
		return fault.NotFound("dense modality %q", modality)
	}
	return array(r.w, n, schema.Modalities[i].Dim, all,
		func(it *db.Item) []float32 { return it.Vectors[modality] })
}

// array writes an array with a row for each of n items. An item without a row is an error.
func array[T float32 | uint8](w *answer, n, cols int, all iter.Seq2[*db.Item, error],
	row func(*db.Item) []T) error {
	out := bufio.NewWriterSize(w, 64<<10)
	a, err := npy.NewWriter[T](out, n, cols)
	for it, itemErr := range all {
		if err = errors.Join(err, itemErr); err != nil {
			break
		}
		x := row(it)
		if len(x) != cols {
			return fault.Invalid("item %q has no such row: export whole items, or filter by has(...)", it.Key)
		}
		err = a.Write(x)
	}
	if err == nil {
		err = a.Close()
	}
	if err == nil {
		err = out.Flush()
	}
	return err
}
