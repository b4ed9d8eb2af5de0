package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// Collection is a collection of a server.
type Collection struct {
	d    *Database
	name string
	id   uint32
	path string // behind the database, escaped
	view string // parameters of a space and a revision: "" or "?..."

	schema db.Schema // as it was when the handle was made, to check items by
}

var _ api.Collection = (*Collection)(nil)

// Name implements api.Collection, as do the methods below.
func (c *Collection) Name() string { return c.name }

func (c *Collection) ID() uint32 { return c.id }

func (c *Collection) InSpace(ctx context.Context, space db.Space, revision uint32) (api.Collection, error) {
	v := url.Values{"space": {strconv.FormatUint(uint64(space), 10)},
		"revision": {strconv.FormatUint(uint64(revision), 10)}}
	return c.d.collection(ctx, c.name, "?"+v.Encode())
}

// parameters returns the parameters of the view and others.
func (c *Collection) parameters(v url.Values) string {
	switch p := v.Encode(); {
	case p == "":
		return c.view
	case c.view == "":
		return "?" + p
	default:
		return c.view + "&" + p
	}
}

// write sends a change that may be made twice, or may not.
func (c *Collection) write(ctx context.Context, method, path string, twice bool, in, out any) error {
	return c.d.do(ctx, call{method: method, path: c.path + path, twice: twice}, in, out)
}

func (c *Collection) Schema(ctx context.Context) (db.Schema, error) {
	out, err := ask[rest.Collection](ctx, c.d, c.path+c.view, nil)
	if err != nil {
		return db.Schema{}, err
	}
	return out.Schema, nil
}

func (c *Collection) Alter(ctx context.Context, a db.Alteration) error {
	return c.write(ctx, http.MethodPatch, "", false, a, nil)
}

func (c *Collection) RenameLabel(ctx context.Context, old, name string) error {
	return c.write(ctx, http.MethodPost, ":rename-label", false, rest.Renaming{Old: old, New: name}, nil)
}

// commit makes a batch with one change.
func (c *Collection) commit(ctx context.Context, change func(b *Batch) error) (key string, err error) {
	b := &Batch{d: c.d}
	if err := change(b); err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", err
	}
	if len(b.keys) > 0 {
		key = b.keys[0]
	}
	return key, nil
}

func (c *Collection) Put(ctx context.Context, item *db.Item) (key string, err error) {
	return c.commit(ctx, func(b *Batch) error { return b.Put(c, item) })
}

func (c *Collection) PutIf(ctx context.Context, item, old *db.Item) error {
	if item == nil {
		return fault.Invalid("no item")
	}
	_, err := c.commit(ctx, func(b *Batch) error {
		return errors.Join(b.Expect(c, item.Key, old), b.Put(c, item))
	})
	return err
}

func (c *Collection) Merge(ctx context.Context, item *db.Item) (key string, err error) {
	return c.commit(ctx, func(b *Batch) error { return b.Merge(c, item) })
}

func (c *Collection) Delete(ctx context.Context, keys ...string) (int, error) {
	if len(keys) == 0 {
		return 0, nil
	}
	var out rest.Deleted
	err := c.write(ctx, http.MethodPost, ":delete", true, rest.Deletion{Keys: keys}, &out)
	return out.Deleted, err
}

func (c *Collection) DeleteWhere(ctx context.Context, where string, args ...any) (int, error) {
	var out rest.Deleted
	err := c.write(ctx, http.MethodPost, ":delete", true, rest.Deletion{Where: &where, Args: args}, &out)
	return out.Deleted, err
}

func (c *Collection) Get(ctx context.Context, key string) (*db.Item, error) {
	if key == "" {
		return nil, fault.NotFound("item %q", key)
	}
	it, err := ask[db.Item](ctx, c.d, c.path+"/items/"+escape(key)+c.view, nil)
	return c.typed(it), err
}

// typed gives the fields of an item their types: in JSON times are text, and floats may look like integers.
// A field that has come since the handle was made keeps what JSON says.
func (c *Collection) typed(it *db.Item) *db.Item {
	if it == nil || len(it.Fields) == 0 {
		return it
	}
	for _, f := range c.schema.Fields {
		switch v := it.Fields[f.Name].(type) {
		case string:
			if t, err := time.Parse(time.RFC3339Nano, v); f.Type == db.Time && err == nil {
				it.Fields[f.Name] = t
			}
		case int64:
			if f.Type == db.Float {
				it.Fields[f.Name] = float64(v)
			}
		}
	}
	return it
}

// answer asks for hits.
func (c *Collection) answer(ctx context.Context, verb string, q *rest.Query) (*db.Result, error) {
	r, err := ask[db.Result](ctx, c.d, c.path+verb+c.view, q)
	if err != nil {
		return nil, err
	}
	for _, h := range r.Hits {
		c.typed(h.Item)
	}
	return r, nil
}

func (c *Collection) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	v := url.Values{}
	if prefix != "" {
		v.Set("prefix", prefix)
	}
	return lines(ctx, c, "/keys", v, func(line []byte) (key string, err error) {
		err = json.Unmarshal(line, &key)
		return key, err
	})
}

func (c *Collection) Items(ctx context.Context, where string, args ...any) iter.Seq2[*db.Item, error] {
	return c.items(ctx, url.Values{}, where, args)
}

func (c *Collection) Sample(ctx context.Context, n int, seed uint64, where string,
	args ...any) iter.Seq2[*db.Item, error] {
	if n < 1 {
		return func(yield func(*db.Item, error) bool) {
			yield(nil, fault.Invalid("a sample of %d items: 1 or more are possible", n))
		}
	}
	return c.items(ctx, url.Values{"sample": {strconv.Itoa(n)}, "seed": {strconv.FormatUint(seed, 10)}},
		where, args)
}

func (c *Collection) items(ctx context.Context, v url.Values, where string, args []any) iter.Seq2[*db.Item,
	error] {
	if where != "" {
		v.Set("where", where)
	}
	if len(args) > 0 {
		b, err := json.Marshal(args)
		if err != nil {
			return func(yield func(*db.Item, error) bool) { yield(nil, fault.Invalid("%w", err)) }
		}
		v.Set("args", string(b))
	}
	return lines(ctx, c, ":export", v, func(line []byte) (*db.Item, error) {
		it := new(db.Item)
		err := json.Unmarshal(line, it)
		return c.typed(it), err
	})
}

// maxLine bounds a line of a stream, in bytes.
const maxLine = 256 << 20

// lines yields the lines of an answer to a GET.
func lines[T any](ctx context.Context, c *Collection, path string, v url.Values,
	decode func(line []byte) (T, error)) iter.Seq2[T, error] {
	return stream(ctx, c, call{method: http.MethodGet, path: c.path + path + c.parameters(v)}, decode)
}

// found yields the lines of the answer to what a form asks for.
func found[T any](ctx context.Context, c *Collection, verb string, in any) iter.Seq2[T, error] {
	b, err := json.Marshal(in)
	if err != nil {
		return func(yield func(T, error) bool) {
			var zero T
			yield(zero, fault.Invalid("%w", err))
		}
	}
	return stream(ctx, c, call{method: http.MethodPost, path: c.path + verb + c.view, body: b},
		func(line []byte) (x T, err error) {
			err = json.Unmarshal(line, &x)
			return x, err
		})
}

// stream yields the lines of an answer. A line {"error": ...} is the error that has ended it.
func stream[T any](ctx context.Context, c *Collection, of call,
	decode func(line []byte) (T, error)) iter.Seq2[T, error] {
	of.twice, of.stream = true, true
	return func(yield func(T, error) bool) {
		var zero T
		r, err := c.d.send(ctx, of)
		if err != nil {
			yield(zero, err)
			return
		}
		defer r.Body.Close()
		scan := bufio.NewScanner(r.Body)
		scan.Buffer(make([]byte, 64<<10), maxLine)
		for scan.Scan() {
			line := scan.Bytes()
			var failed rest.StreamError
			if bytes.HasPrefix(line, []byte(`{"error":`)) && json.Unmarshal(line, &failed) == nil {
				yield(zero, failed.Error.Err())
				return
			}
			x, err := decode(line)
			if err != nil && !scan.Scan() && scan.Err() != nil {
				break // it is half a line
			}
			if !yield(x, err) || err != nil {
				return
			}
		}
		switch err := scan.Err(); {
		case err == nil:
		case ctx.Err() != nil:
			yield(zero, ctx.Err())
		default:
			yield(zero, fmt.Errorf("fddhdb: %s has ended before all was read: do it again: %w",
				cmp.Or(c.d.place, "the server"), err))
		}
	}
}

func (c *Collection) Count(ctx context.Context, where string, args ...any) (int, error) {
	out, err := ask[rest.Count](ctx, c.d, c.path+":count"+c.view, rest.Filter{Where: where, Args: args})
	if err != nil {
		return 0, err
	}
	return out.Count, nil
}

func (c *Collection) Labels(ctx context.Context) ([]string, error) {
	out, err := ask[rest.Labels](ctx, c.d, c.path+"/labels", nil)
	if err != nil {
		return nil, err
	}
	return out.Labels, nil
}

func (c *Collection) Facets(ctx context.Context, q db.FacetQuery) (*db.Facets, error) {
	return ask[db.Facets](ctx, c.d, c.path+":facets"+c.view,
		rest.Facets{By: q.By, Where: q.Where, Args: q.Args, Limit: q.Limit})
}

func (c *Collection) Search(ctx context.Context, q db.Query) (*db.Result, error) {
	return c.answer(ctx, ":search", rest.NewQuery(&q))
}

func (c *Collection) SearchRadius(ctx context.Context, q db.Query, radius int) (*db.Result, error) {
	f := rest.NewQuery(&q)
	f.Radius = &radius
	return c.answer(ctx, ":radius", f)
}

func (c *Collection) Pairs(ctx context.Context, q db.PairQuery) iter.Seq2[db.Pair, error] {
	return found[db.Pair](ctx, c, ":pairs", rest.Pairs{Likeness: rest.NewLikeness(q.Likeness, q.After),
		Against: q.Against})
}

func (c *Collection) Groups(ctx context.Context, q db.GroupQuery) iter.Seq2[db.Group, error] {
	return found[db.Group](ctx, c, ":groups", rest.Groups{Likeness: rest.NewLikeness(q.Likeness, q.After),
		Keep: q.Keep, Connected: q.Connected})
}

func (c *Collection) Evaluate(ctx context.Context, e db.Evaluation) ([]report.Retrieval, error) {
	out, err := work[rest.Retrievals](ctx, c.d, call{path: c.path + ":evaluate" + c.view, twice: true},
		rest.NewEvaluation(&e), nil, nil)
	if err != nil {
		return nil, err
	}
	return out.Retrievals, nil
}

func (c *Collection) Encode(ctx context.Context, item *db.Item) ([]byte, error) {
	if item == nil {
		return nil, fault.Invalid("no item")
	}
	return c.encode(ctx, rest.Encoding{Item: rest.NewItem(item)})
}

func (c *Collection) EncodeQuery(ctx context.Context, q db.Query) ([]byte, error) {
	return c.encode(ctx, rest.Encoding{From: q.From, Key: q.Key, Code: q.Code,
		Vector: rest.Vector{Dense: q.Vector, Sparse: q.Sparse}})
}

// Embed returns the vector that the server makes of a text, by the encoder that a collection has for a
// modality.
func (d *Database) Embed(ctx context.Context, collection, from, text string) ([]float32, *db.Sparse, error) {
	out, err := ask[rest.Embedded](ctx, d, "/collections/"+escape(collection)+":embed",
		rest.Embedding{From: from, Text: text})
	if err != nil {
		return nil, nil, err
	}
	return out.Vector.Dense, out.Vector.Sparse, nil
}

func (c *Collection) encode(ctx context.Context, in rest.Encoding) ([]byte, error) {
	out, err := ask[rest.Code](ctx, c.d, c.path+":encode"+c.view, in)
	if err != nil {
		return nil, err
	}
	return out.Code, nil
}

func (c *Collection) Stats(ctx context.Context, also ...db.Figure) (*db.CollectionStats, error) {
	v := url.Values{}
	for figure, name := range map[db.Figure]string{db.DiskSize: "disk", db.MeasuredDrift: "drift"} {
		if slices.Contains(also, figure) {
			v.Set(name, "true")
		}
	}
	return ask[db.CollectionStats](ctx, c.d, c.path+"/stats"+c.parameters(v), nil)
}

func (c *Collection) Train(ctx context.Context, opt db.TrainOptions) (*report.Training, error) {
	return work[report.Training](ctx, c.d, call{path: c.path + ":train"}, opt, opt.Progress, nil)
}

func (c *Collection) Update(ctx context.Context, opt db.UpdateOptions) (*report.Update, error) {
	return work[report.Update](ctx, c.d, call{path: c.path + ":update"}, opt, opt.Progress, nil)
}

func (c *Collection) Reindex(ctx context.Context, opt db.ReindexOptions) (*report.Reindexing, error) {
	return work[report.Reindexing](ctx, c.d, call{path: c.path + ":reindex"}, opt, opt.Progress, nil)
}

func (c *Collection) IndexVectors(ctx context.Context, opt db.IndexOptions) (*report.VectorIndex, error) {
	return work[report.VectorIndex](ctx, c.d, call{path: c.path + ":index", twice: true}, opt, opt.Progress,
		nil)
}

func (c *Collection) DropVectorIndex(ctx context.Context, modality string) error {
	return c.write(ctx, http.MethodDelete, "/indexes/"+escape(modality), false, nil, nil)
}

func (c *Collection) Spaces(ctx context.Context) ([]report.SpaceInfo, error) {
	out, err := ask[rest.Spaces](ctx, c.d, c.path+"/spaces", nil)
	if err != nil {
		return nil, err
	}
	return out.Spaces, nil
}

func (c *Collection) Activate(ctx context.Context, space db.Space) error {
	return c.write(ctx, http.MethodPost, ":activate", true, rest.Space{Space: space}, nil)
}

func (c *Collection) Rollback(ctx context.Context) (db.Space, error) {
	var out rest.Space
	err := c.write(ctx, http.MethodPost, ":rollback", false, nil, &out)
	return out.Space, err
}

func (c *Collection) RestoreRevision(ctx context.Context, space db.Space, revision uint32) (*report.Update,
	error) {
	out := new(report.Update)
	err := c.write(ctx, http.MethodPost, ":restore-revision", false, rest.Revision{Space: space,
		Revision: revision}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (c *Collection) DropSpace(ctx context.Context, space db.Space) error {
	return c.write(ctx, http.MethodDelete, "/spaces/"+strconv.FormatUint(uint64(space), 10), false, nil, nil)
}

func (c *Collection) ExportModel(ctx context.Context, w io.Writer) error {
	r, err := c.d.send(ctx, call{method: http.MethodGet, path: c.path + "/model" + c.view, twice: true})
	if err != nil {
		return err
	}
	defer r.Body.Close()
	_, err = io.Copy(w, r.Body)
	return err
}

func (c *Collection) ImportModel(ctx context.Context, r io.Reader,
	opt db.ImportModelOptions) (*report.Training, error) {
	if opt.Space != 0 || opt.Unbuilt {
		return nil, fmt.Errorf("fddhdb: import a model as a space of a given number: %w",
			errors.ErrUnsupported)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	v := url.Values{}
	if opt.Activate {
		v.Set("activate", "true")
	}
	return work[report.Training](ctx, c.d, call{path: c.path + ":import-model" + c.parameters(v), body: b,
		kind: "application/octet-stream"}, nil, opt.Progress, nil)
}
