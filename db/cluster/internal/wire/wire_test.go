package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

func whole() *db.Item {
	return &db.Item{
		Key: "k", Labels: []string{"a", "b"}, Payload: []byte{1, 0}, Code: []byte{7}, CodeFrom: "labels",
		Fields: map[string]any{
			"whole": int64(-5), "large": int64(math.MaxInt64), "float": 5.0, "small": 1e-300, "text": "é",
			"yes": true,
			"at":  time.Date(1969, 12, 31, 23, 59, 59, 123_000, time.UTC),
		},
		Vectors: map[string][]float32{"image": {1.5, float32(math.Inf(1)), -0}, "none": {}},
		Sparse: map[string]db.Sparse{"words": {Index: []uint32{3, math.MaxUint32}, Value: []float32{.25,
			2}}},
	}
}

var same = gocmp.Options{cmpopts.EquateNaNs(), cmpopts.EquateEmpty()}

// Whatever an item holds comes back as it was, with numbers of the same type.
func TestItemsTravel(t *testing.T) {
	op := &wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: 9, Changes: []wire.Change{
		{Collection: "main", Kind: wire.Put, Item: wire.ItemOf(whole())},
		{Collection: "main", Kind: wire.Expect, Item: &wire.Item{Key: "x"}, Old: wire.ItemOf(whole())},
		{Collection: "main", Kind: wire.Delete, Item: &wire.Item{Key: "x"}},
	}}
	b, err := op.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := wire.DecodeOp(b)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != op.ID || got.Base != 9 || len(got.Changes) != 3 || got.Changes[2].Kind != wire.Delete ||
		got.Changes[0].Old != nil {
		t.Errorf("%+v", got)
	}
	for i, it := range []*db.Item{got.Changes[0].Item.Item(), got.Changes[1].Old.Item()} {
		if diff := gocmp.Diff(whole(), it, same); diff != "" {
			t.Errorf("item %d: %s", i, diff)
		}
	}
}

func TestAnswersTravel(t *testing.T) {
	r := &db.Result{
		Hits: []db.Hit{{Key: "a", Row: 3, Distance: 4, Score: math.NaN(), Similarity: .5, Cursor: "c",
			Item: whole()}, {Key: "b", Score: -1.25, Similarity: float32(math.NaN())},
			{Row: math.MaxUint32, Distance: -1, Score: math.Copysign(0, -1)}},
		Next: "n", Total: 7, Space: 2, Revision: 5, Rerank: db.RerankProjection, Approximate: true,
		Facets: []db.Facets{{By: "year", Counts: []db.FacetCount{{Value: int64(3), Items: 2},
			{Value: "x", Items: 1}, {Value: 2.0, Items: 1}, {Value: true, Items: 1}}, Distinct: 4, Items: 5}},
	}
	b, err := (&wire.Answer{Result: wire.ResultOf(r), Applied: 12}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.DecodeAnswer(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(r, a.Result.Result(), same); diff != "" || a.Applied != 12 {
		t.Error(diff)
	}
	if !math.Signbit(a.Result.Hits[2].Score) {
		t.Error("-0 has come as 0")
	}
	for i := range b { // what is not whole is refused, or is something else; nothing panics
		_, _ = wire.DecodeAnswer(b[:i])
		damaged := bytes.Clone(b)
		damaged[i] ^= 0x41
		_, _ = wire.DecodeAnswer(damaged)
	}
}

func TestQueriesTravel(t *testing.T) {
	q := &db.Query{
		From: "image", To: "text", Vector: []float32{1, .5},
		Sparse: &db.Sparse{Index: []uint32{2}, Value: []float32{1}}, Code: []byte{1, 2},
		Where: "year IN (?) AND at < ? AND name = ? AND p > ?",
		Args:  []any{[]any{int64(1), int64(2)}, time.Date(2020, 1, 2, 3, 4, 5, 6000, time.UTC), "x", 2.0},
		Key:   "k", K: 7, Rerank: db.RerankAsymmetric, After: "c", MinSimilarity: .25, Recall: .9,
		Include: db.IncludeLabels | db.IncludeVectors, Facets: []string{"label"},
		Plan: db.PlanScan, ExcludeSelf: true, Words: "red star",
	}
	for i, v := 0, reflect.ValueOf(*q); i < v.NumField(); i++ { // what is new there has to be in both
		if v.Field(i).IsZero() {
			t.Errorf("the query has no %s", v.Type().Field(i).Name)
		}
	}
	b, err := (&wire.Request{Verb: wire.Search, Shard: 3, From: 8, Wait: 5, Collection: "main",
		Query: wire.QueryOf(*q), Args: q.Args}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	r, err := wire.DecodeRequest(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(*q, r.Query.Query(), same); diff != "" {
		t.Error(diff)
	}
}

// What a query does not have it does not get: an empty vector is one.
func TestEmptyQueriesTravel(t *testing.T) {
	for _, q := range []db.Query{{}, {Vector: []float32{}}} {
		b, err := (&wire.Request{Query: wire.QueryOf(q)}).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if r, err := wire.DecodeRequest(b); err != nil || !reflect.DeepEqual(r.Query.Query(), q) {
			t.Errorf("%+v, want %+v, %v", r.Query, q, err)
		}
	}
}

// Several requests that share a query have it once, each of them when they are there, and its own where
// they do not.
func TestSeveralTravel(t *testing.T) {
	a, b := wire.QueryOf(db.Query{Key: "shared"}), wire.QueryOf(db.Query{Key: "b"})
	for _, queries := range [][]*wire.Query{{a, a, a}, {a, b}, {nil, nil}, {nil, a}, {a, nil}} {
		var requests []*wire.Request
		for shard, q := range queries {
			requests = append(requests, &wire.Request{Verb: wire.Search, Shard: shard,
				After: fmt.Sprint(shard), Query: q})
		}
		sent, err := wire.SeveralOf(requests).Encode()
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(sent, []byte("shared")); queries[len(queries)-1] == a && queries[0] == a &&
			n != 1 {
			t.Errorf("the query is there %d times", n)
		}
		got, err := wire.DecodeRequest(sent)
		if err != nil || got.Verb != wire.Several {
			t.Fatal(err)
		}
		for i, q := range got.Each() {
			want := requests[i]
			if q.Shard != i || q.After != want.After || (q.Query == nil) != (want.Query == nil) ||
				q.Query != nil && q.Query.Key != want.Query.Key || want.Query != queries[i] {
				t.Errorf("%d of %v: %+v", i, queries, q)
			}
		}
	}
}

func TestErrorsTravel(t *testing.T) {
	for _, err := range []error{
		db.ErrNotFound, db.ErrConflict, db.ErrInvalid, db.ErrFull, db.ErrDiskFull, db.ErrCorrupt,
		db.ErrFailed, wire.ErrBehind, wire.ErrExpired,
		context.Canceled, context.DeadlineExceeded,
	} {
		sent := wire.FaultOf(fmt.Errorf("%w: that", err))
		b, eerr := (&wire.Answer{Fault: sent}).Encode()
		if eerr != nil {
			t.Fatal(eerr)
		}
		a, derr := wire.DecodeAnswer(b)
		if derr != nil || !errors.Is(a.Fault, err) || a.Fault.Error() != fmt.Sprintf("%v: that", err) {
			t.Errorf("%v: %v, %v", err, a, derr)
		}
		if again := wire.FaultOf(fmt.Errorf("node 3: %w", a.Fault)); again.Code != sent.Code {
			t.Errorf("%v, sent on: %+v", err, again)
		}
	}
	b, err := (&wire.Answer{Fault: wire.FaultOf(fmt.Errorf("there: %w", &db.WhereError{Column: 7,
		Reason: "odd"}))}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	a, err := wire.DecodeAnswer(b)
	var where *db.WhereError
	if err != nil || !errors.As(a.Fault, &where) || where.Column != 7 || where.Reason != "odd" ||
		!errors.Is(a.Fault, db.ErrInvalid) {
		t.Error(a, err)
	}
	if f := wire.FaultOf(errors.New("odd")); !errors.Is(f, wire.ErrAnswer) || wire.FaultOf(nil) != nil {
		t.Error(f)
	}
}

// What is newer, or not whole, is refused.
func TestWhatCannotBeRead(t *testing.T) {
	b, err := (&wire.Op{Kind: wire.Write}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	newer := bytes.Clone(b)
	newer[0]++
	for what, b := range map[string][]byte{"nothing": nil, "newer": newer, "cut": b[:len(b)-1],
		"more": append(bytes.Clone(b), 0)} {
		if _, err := wire.DecodeOp(b); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	for _, o := range []*wire.Op{{}, {Kind: 99}, {Kind: wire.CreateCollection},
		{Kind: wire.Write, Changes: []wire.Change{{Kind: wire.Put}}},
		{Kind: wire.Write, Changes: []wire.Change{{Item: &wire.Item{}}}},
		{Kind: wire.ImportModel, Space: 1}, {Kind: wire.ReviseSpace, File: []byte{1}},
		{Kind: wire.Chunk}, {Kind: wire.Chunk, Chunks: 2},
		{Kind: wire.Chunk, Chunks: 2, Chunk: 2, Data: []byte{1}},
		{Kind: wire.Chunk, Chunks: 1 << 40, Data: []byte{1}}} {
		b, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := wire.DecodeOp(b); err == nil {
			t.Errorf("%+v: read as %+v", o, got)
		}
	}
}

// No bytes make a decoder panic; and what it reads it writes again to the same.
func FuzzOp(f *testing.F) {
	op := &wire.Op{ID: wire.NewID(), Kind: wire.Write,
		Changes: []wire.Change{{Collection: "main", Kind: wire.Put, Item: wire.ItemOf(whole())}}}
	b, err := op.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	create, err := (&wire.Op{Kind: wire.CreateCollection, Collection: "main",
		Schema: &db.Schema{Bits: 16}}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(create)
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := wire.DecodeOp(b)
		if err != nil {
			return
		}
		again, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := wire.DecodeOp(again); err != nil {
			t.Fatal(err)
		}
	})
}

// The same of requests and answers.
func FuzzRequest(f *testing.F) {
	b, err := (&wire.Request{Verb: wire.Search,
		Query: wire.QueryOf(db.Query{Vector: []float32{1}, Args: []any{1, "x", time.Now()}})}).Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	r := &db.Result{Hits: []db.Hit{{Key: "a", Row: 3, Distance: 4, Score: 1, Similarity: .5, Cursor: "c",
		Item: whole()}, {Key: "b"}}}
	if b, err = (&wire.Answer{Result: wire.ResultOf(r)}).Encode(); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		_, _ = wire.DecodeRequest(b)
		_, _ = wire.DecodeAnswer(b)
		_, _ = wire.DecodeOutcome(b)
	})
}
