package serve

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strings"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/api"
	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/rest"
)

// registerItems adds the routes about single items, and those that write.
func registerItems(t *router) {
	const ofItem = ofCollection + "/items/{key}"
	on(t, "GET", ofItem, Read, "Read an item; its ETag is for If-Match",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*db.Item, error) {
			it, err := c.Get(ctx, r.PathValue("key"))
			if err == nil {
				r.w.Header().Set("ETag", etag(it))
			}
			return it, err
		}, inSpace...)
	on(t, "PUT", ofItem, Write,
		"Store an item: If-None-Match: * only if it is new, If-Match: ETAG only if it is unchanged",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Item) (*rest.Written, error) {
			return r.store(ctx, c, in, func(item *db.Item) error {
				_, err := c.Put(ctx, item)
				return err
			})
		}).headers = []parameter{{"If-Match", "the ETag that the item must have; *: any", "string", 0},
		{"If-None-Match", "*: the item must be new", "string", 0}}
	on(t, "PATCH", ofItem, Write, "Set the parts of an item that the body has",
		func(ctx context.Context, c api.Collection, r *request, in *rest.Item) (*rest.Written, error) {
			return r.store(ctx, c, in, func(item *db.Item) error {
				_, err := c.Merge(ctx, item)
				return err
			})
		})
	on(t, "DELETE", ofItem, Write, "Delete an item",
		func(ctx context.Context, c api.Collection, r *request, _ *none) (*rest.Deleted, error) {
			n, err := c.Delete(ctx, r.PathValue("key"))
			if err == nil && n == 0 {
				err = fault.NotFound("item %q", r.PathValue("key"))
			}
			return &rest.Deleted{Deleted: n}, err
		})
	on(t, "POST", ofCollection+"/items", Write, "Store an item; one without a key gets a number",
		func(ctx context.Context, c api.Collection, _ *request, in *rest.Item) (*rest.Written, error) {
			key, err := c.Put(ctx, in.Item())
			return &rest.Written{Keys: []string{key}}, err
		})
	on(t, "POST", ofCollection+":delete", Write, "Delete items by their keys, or all that match",
		func(ctx context.Context, c api.Collection, _ *request, in *rest.Deletion) (*rest.Deleted, error) {
			var n int
			var err error
			switch {
			case (in.Where == nil) == (in.Keys == nil):
				return nil, fault.Invalid("keys or where: one of them says what to delete")
			case in.Where != nil:
				n, err = c.DeleteWhere(ctx, *in.Where, in.Args...)
			default:
				n, err = c.Delete(ctx, in.Keys...)
			}
			return &rest.Deleted{Deleted: n}, err
		})
	write := handle(t, "POST", ofDatabase+":write", Write,
		"Make changes together, all or none: a change a line",
		func(context.Context, *request, *none) (*rest.Written, error) { return nil, nil })
	write.accepts, write.run = []string{ndjson}, writeBatch
	write.forEach = true // of the collections of the changes
	write.line = reflect.TypeFor[rest.Change]()
}

// etag returns a name of the contents of an item.
func etag(it *db.Item) string {
	contents := *it
	if contents.CodeFrom != "given" { // it changes as the collection learns
		contents.Code, contents.CodeFrom = nil, ""
	}
	b, err := contents.MarshalJSON()
	if err != nil {
		return `""`
	}
	sum := sha256.Sum256(b)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
}

// store stores the item of a path, under the conditions of the request.
func (r *request) store(ctx context.Context, c api.Collection, in *rest.Item,
	put func(*db.Item) error) (*rest.Written, error) {
	key := r.PathValue("key")
	if in.Key != "" && in.Key != key {
		return nil, fault.Invalid("the item has the key %q, and the path %q", in.Key, key)
	}
	item := in.Item()
	item.Key = key
	match, none := r.Header.Get("If-Match"), r.Header.Get("If-None-Match")
	written := &rest.Written{Keys: []string{key}}
	switch {
	case match == "" && none == "":
		return written, put(item)
	case match != "" && none != "", none != "" && none != "*":
		return nil, fault.Invalid("one of If-Match: ETAG and If-None-Match: * is expected")
	case none == "*":
		err := c.PutIf(ctx, item, nil)
		return written, asPrecondition(err)
	}
	old, err := c.Get(ctx, key)
	if err != nil {
		return nil, asPrecondition(err)
	}
	if match != "*" && !slices.Contains(strings.FieldsFunc(match, func(c rune) bool {
		return c == ',' ||
			c == ' '
	}), etag(old)) {
		return nil, fmt.Errorf("%w: item %q has the ETag %s now", rest.ErrPrecondition, key, etag(old))
	}
	return written, asPrecondition(c.PutIf(ctx, item, old))
}

// asPrecondition returns the error of a condition of HTTP: the item is not as it should be.
func asPrecondition(err error) error {
	if errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) {
		return fmt.Errorf("%w: %w", rest.ErrPrecondition, err)
	}
	return err
}

// ndjson is the type of bodies and answers of many values.
const ndjson = "application/x-ndjson"

// writeBatch makes the changes of a body.
func writeBatch(ctx context.Context, r *request) error {
	d, err := r.database()
	if err != nil {
		return err
	}
	b := d.NewBatch()
	collections := map[string]api.Collection{}
	dec := json.NewDecoder(bytes.NewReader(r.raw))
	dec.DisallowUnknownFields()
	for line := 1; ; line++ {
		var x rest.Change
		if err := dec.Decode(&x); err == io.EOF {
			break
		} else if err != nil {
			return fault.Invalid("change %d: %s", line, strings.TrimPrefix(err.Error(), "json: "))
		}
		about := x.Collection
		if x.Mark != nil {
			about = "" // the database
		}
		c := collections[about]
		switch {
		case c != nil:
		case !r.access.sees(about):
			return fmt.Errorf("%w: the token is for other collections", rest.ErrForbidden)
		case x.Mark == nil:
			if c, err = d.Collection(ctx, about); err != nil {
				return err
			}
			collections[about] = c
		}
		if err := change(b, c, &x); err != nil {
			return fmt.Errorf("%w (change %d)", err, line)
		}
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	r.leave()
	return r.w.json(http.StatusOK, rest.Written{Keys: append([]string{}, b.Keys()...)})
}

// change adds a change to a batch.
func change(b api.Batch, c api.Collection, x *rest.Change) error {
	n := 0
	for _, has := range []bool{x.Put != nil, x.Merge != nil, x.Delete != nil, x.Expect != nil,
		x.Labels != nil,
		x.Mark != nil} {
		if has {
			n++
		}
	}
	switch {
	case n != 1:
		return fault.Invalid("a change has one of put, merge, delete, expect, labels and mark, not %d", n)
	case x.Put != nil:
		return b.Put(c, x.Put.Item())
	case x.Merge != nil:
		return b.Merge(c, x.Merge.Item())
	case x.Delete != nil:
		return b.Delete(c, *x.Delete)
	case x.Expect != nil:
		return b.Expect(c, x.Expect.Key, x.Expect.Item.Item())
	case x.Labels != nil:
		return b.RegisterLabels(c, x.Labels)
	}
	return b.Mark(x.Mark.Name, x.Mark.Value)
}

// lines writes the values of a sequence, one a line. What fails after the first line ends the stream with a
// line {"error": ...}.
func lines[T any](ctx context.Context, w *answer, all iter.Seq2[T, error]) error {
	out := bufio.NewWriterSize(w, 64<<10)
	w.Header().Set("Content-Type", ndjson)
	for x, err := range all {
		if err == nil {
			var b []byte
			if b, err = marshal(x); err == nil {
				if _, err := out.Write(b); err != nil {
					return nil // the client has gone
				}
				continue
			}
		}
		if errors.Is(context.Cause(ctx), rest.ErrClosing) {
			err = rest.ErrClosing
		}
		if w.status == 0 && out.Buffered() == 0 {
			return err
		}
		b, _ := marshal(rest.StreamError{Error: w.s.problem(err)})
		_, _ = out.Write(b)
		break
	}
	_ = out.Flush()
	w.WriteHeader(http.StatusOK)
	return nil
}
