package apply_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
)

// partIdentity is that of a part of the only shard: the second of two.
var partIdentity = apply.Identity{Cluster: "c", Shard: 2, Index: 1, Shards: 2, Split: "backup"}

// key returns the n-th key of an index of two.
func key(index, n int) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("k", i); shard.Of(key, 2) == index {
			if n--; n < 0 {
				return key
			}
		}
	}
}

// write is a write of the shard.
func write(changes ...wire.Change) *wire.Op {
	return &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: changes}
}

// forward is an operation in the log of a part; with decided the shard has told what it came to.
func forward(o *wire.Op, seq uint64, decided bool, fault error) *wire.Op {
	f := *o
	f.Forward = &wire.Forward{Seq: seq, Decided: decided, Fault: wire.FaultOf(fault)}
	return &f
}

// split makes the database of the state one of the part.
func split(t *testing.T, s *apply.State, fetch func(context.Context, string) ([]byte, error)) *apply.State {
	t.Helper()
	if err := apply.Continue(t.Context(), s.DB, partIdentity, s.Position().Seq); err != nil {
		t.Fatal(err)
	}
	part, err := apply.Open(t.Context(), s.DB, partIdentity, fetch)
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// interrupted is a context that ends when it has been looked at so often.
type interrupted struct {
	context.Context
	left atomic.Int64
}

func (i *interrupted) Err() error {
	if i.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func (i *interrupted) Deadline() (time.Time, bool) { return time.Time{}, false }

// A part has the items of its keys and no others, wherever the purge is interrupted, and answers as a
// database that never had any others.
func TestPurge(t *testing.T) {
	const items = 9000
	fill := func(s *apply.State, has func(key string) bool) {
		must(t, s, message(t, 2, &wire.Op{ID: wire.NewID(), Kind: wire.CreateCollection, Collection: "more",
			Schema: &db.Schema{Bits: 16}}))
		for i := 0; i < items; i += 500 {
			o := write()
			for k := i; k < i+500; k++ {
				ch := put(fmt.Sprint("k", k), k*7)
				ch.Item.Labels = []string{fmt.Sprint("l", k%5)}
				if k%9 == 0 {
					ch.Collection = "more"
				}
				if has(ch.Item.Key) {
					o.Changes = append(o.Changes, ch)
				}
			}
			must(t, s, message(t, s.Position().Seq+1, o))
		}
	}
	own := func(key string) bool { return shard.Of(key, 2) == 1 }
	only := openState(t, nil)
	fill(only, own)
	var digest []byte
	for _, after := range []int64{-1, 3000, 5000, 6000, 9000} { // -1: it is not interrupted
		s := openState(t, nil)
		fill(s, func(string) bool { return true })
		part := split(t, s, nil)
		at := part.Position().Seq
		purge := message(t, at+1, &wire.Op{ID: wire.ID{1}, Kind: wire.Purge})
		if after > 0 {
			ctx := &interrupted{Context: t.Context()}
			ctx.left.Store(after)
			if _, err := part.Apply(ctx, []apply.Message{purge}); err == nil {
				t.Errorf("%d: it was not interrupted", after)
			}
			was, err := part.DB.Collection("codes")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := part.Between(t.Context()); !errors.Is(err, db.ErrBusy) {
				t.Errorf("%d: what is there in part is held: %v", after, err)
			}
			n, _ := was.Count(t.Context(), "")
			t.Logf("%d: interrupted with %d items", after, n)
			if part, err = apply.Open(t.Context(), s.DB, partIdentity, nil); err != nil ||
				part.Position().Seq != at {
				t.Fatal(part.Position(), err)
			}
			if _, err := part.Between(t.Context()); !errors.Is(err, db.ErrBusy) {
				t.Errorf("%d: opened again, it is held: %v", after, err)
			}
		}
		must(t, part, purge, purge)
		got, _, err := part.Digest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if digest == nil {
			digest = got
		}
		if !bytes.Equal(got, digest) {
			t.Errorf("%d: interrupted it leaves something else", after)
		}
		for _, name := range []string{"codes", "more"} {
			a, _ := part.DB.Collection(name)
			b, _ := only.DB.Collection(name)
			for _, q := range []db.Query{{Code: []byte{1, 2}, K: items},
				{Code: []byte{100, 7}, K: 50, Where: "label = 'l3'"}} {
				got, err := a.Search(t.Context(), q)
				want, werr := b.Search(t.Context(), q)
				if err != nil || werr != nil || len(got.Hits) != len(want.Hits) || len(got.Hits) == 0 {
					t.Fatal(len(got.Hits), len(want.Hits), err, werr)
				}
				for i, h := range got.Hits {
					if w := want.Hits[i]; h.Key != w.Key || h.Distance != w.Distance {
						t.Fatalf("%s: hit %d is %+v, want %+v", name, i, h, w)
					}
				}
			}
		}
	}
}

// What the shard has applied its part applies, as far as it is of its keys, and nothing twice.
func TestForward(t *testing.T) {
	objects := map[string][]byte{}
	s := openState(t, nil)
	here, there := key(1, 0), key(0, 0)
	before := write(put(here, 1))
	refused := write(wire.Change{Collection: "codes", Kind: wire.Expect, Item: &wire.Item{Key: there},
		Old: &wire.Item{Key: there, Code: []byte{1, 1}}}, put(here, 2))
	must(t, s, message(t, 2, before), message(t, 3, refused))
	part := split(t, s, func(_ context.Context, name string) ([]byte, error) { return objects[name], nil })
	next := func(o *wire.Op) *wire.Outcome {
		t.Helper()
		done := must(t, part, message(t, part.Position().Seq+1, o))
		if len(done) == 0 {
			return nil
		}
		return done[0].Outcome
	}
	has := func(key string, want int) {
		t.Helper()
		c, err := part.DB.Collection("codes")
		if err != nil {
			t.Fatal(err)
		}
		it, err := c.Get(t.Context(), key)
		switch {
		case want < 0 && errors.Is(err, db.ErrNotFound):
		case err != nil || string(it.Payload) != fmt.Sprint(want):
			t.Errorf("%s is %+v, %v, want %d", key, it, err, want)
		}
	}
	if o := next(&wire.Op{ID: wire.NewID(), Kind: wire.Purge}); o != nil {
		t.Error(o)
	}
	// The memory of the shard is that of its part.
	if o := next(forward(before, 4, false, nil)); o.Seq != 2 || o.Fault != nil {
		t.Error(o)
	}
	if o := next(before); o.Seq != 2 || o.Fault != nil { // of a client
		t.Error(o)
	}
	if o := part.Outcome(refused.ID); o == nil || !errors.Is(o.Err(), db.ErrConflict) {
		t.Error(o)
	}
	has(here, 1)
	// A part of an operation, whose condition the shard has decided.
	both := write(wire.Change{Collection: "codes", Kind: wire.Expect, Item: &wire.Item{Key: here}},
		put(there, 3), put(here, 3))
	if o := next(forward(both, 5, true, nil)); o.Fault != nil {
		t.Error(o)
	}
	has(here, 3)
	has(there, -1)
	// One that the shard has refused is refused, and remembered.
	no := write(put(here, 4))
	if o := next(forward(no, 6, true, fmt.Errorf("%w: of a key that is elsewhere",
		db.ErrConflict))); !errors.Is(o.Err(), db.ErrConflict) {
		t.Error(o)
	}
	if o := part.Outcome(no.ID); o == nil || !errors.Is(o.Err(), db.ErrConflict) {
		t.Error(o)
	}
	// One whose keys are all of the part it decides by itself.
	if o := next(forward(write(wire.Change{Collection: "codes", Kind: wire.Expect,
		Item: &wire.Item{Key: here}}, put(here, 5)), 7, false, nil)); !errors.Is(o.Err(), db.ErrConflict) {
		t.Error(o)
	}
	if o := next(forward(write(wire.Change{Collection: "codes", Kind: wire.Put, Item: &wire.Item{Key: here,
		Code: []byte{1}}}), 8, false, nil)); !errors.Is(o.Err(), db.ErrInvalid) {
		t.Error(o)
	}
	// Whether it came too late the shard says.
	late := write(put(here, 6))
	if o := next(forward(late, wire.Memory, false, nil)); !errors.Is(o.Err(), wire.ErrExpired) {
		t.Error(o)
	}
	if o := next(forward(late, wire.Memory-1, false, nil)); o.Fault != nil {
		t.Error(o)
	}
	has(here, 6)
	// An object has the changes of both parts.
	large, err := wire.EncodeChanges([]wire.Change{put(there, 7), put(here, 7)})
	if err != nil {
		t.Fatal(err)
	}
	objects["large"] = large
	sum := sha256.Sum256(large)
	if o := next(forward(&wire.Op{ID: wire.NewID(), Kind: wire.Write, Object: "large",
		Size: int64(len(large)), Sum: sum[:]}, 9, true, nil)); o.Fault != nil {
		t.Error(o)
	}
	has(here, 7)
	has(there, -1)
	skip := &wire.Op{ID: wire.NewID(), Kind: wire.Skip}
	if o := next(skip); o != nil || part.Outcome(skip.ID) != nil {
		t.Error(o)
	}
	// Many in one commit come to the same.
	var some []apply.Message
	for i := range 20 {
		some = append(some, message(t, part.Position().Seq+1+uint64(i),
			forward(write(put(there, i), put(key(1, i), 100+i)), 20+uint64(i), true, nil)))
	}
	must(t, part, some...)
	has(key(1, 19), 119)
	has(there, -1)
	// What was acknowledged, and cannot be applied, stops the part.
	at := part.Position().Seq
	lost := wire.Change{Collection: "nosuch", Kind: wire.Put, Item: &wire.Item{Key: here, Code: []byte{1, 2}}}
	if _, err := part.Apply(t.Context(),
		[]apply.Message{message(t, at+1, forward(write(lost), 50, true, nil))}); err == nil ||
		wire.Decided(err) {
		t.Error(err)
	}
	if part.Position().Seq != at {
		t.Error(part.Position())
	}
}

// Behind the message that closes a log everything is refused, and what came before is known.
func TestClose(t *testing.T) {
	s := openState(t, nil)
	before, after := write(put("a", 1)), write(put("a", 2))
	must(t, s, message(t, 2, before), message(t, 3, &wire.Op{ID: wire.NewID(), Kind: wire.Close}))
	for range 2 { // as opened again
		if s.Closed() != 3 {
			t.Error(s.Closed())
		}
		at := s.Position().Seq
		done := must(t, s, message(t, at+1, after), message(t, at+2, before),
			message(t, at+3, &wire.Op{ID: wire.NewID(), Kind: wire.DropCollection, Collection: "codes"}),
			message(t, at+4, &wire.Op{ID: wire.NewID(), Kind: wire.Close}),
			message(t, at+5, write(wire.Change{Collection: "codes", Kind: wire.Expect,
				Item: &wire.Item{Key: "b"}}, put("b", 1))))
		if len(done) != 4 || !errors.Is(done[0].Err(), wire.ErrSplit) || done[1].Err() != nil ||
			!errors.Is(done[2].Err(), wire.ErrSplit) || !errors.Is(done[3].Err(), wire.ErrSplit) {
			t.Errorf("%+v", done)
		}
		var err error
		if s, err = apply.Open(t.Context(), s.DB, apply.Identity{Cluster: "c", Shard: 0, Shards: 1},
			nil); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.DB.Collection("codes")
	if err != nil {
		t.Fatal(err)
	}
	if it, err := c.Get(t.Context(), "a"); err != nil || string(it.Payload) != "1" {
		t.Error(it, err)
	}
	// A part begins open, and only with a backup that goes where its log begins.
	if err := apply.Continue(t.Context(), s.DB, partIdentity, s.Position().Seq+1); !errors.Is(err,
		db.ErrInvalid) {
		t.Error(err)
	}
	if part := split(t, s, nil); part.Closed() != 0 {
		t.Error(part.Closed())
	}
	other := partIdentity
	other.Split = "another backup"
	if _, err := apply.Open(t.Context(), s.DB, other, nil); !errors.Is(err, apply.ErrOther) {
		t.Error(err)
	}
}

// Nothing is applied while somebody holds it.
func TestHold(t *testing.T) {
	s := openState(t, nil)
	free, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := s.Apply(short, []apply.Message{message(t, 2, write(put("a", 1)))}); !errors.Is(err,
		context.DeadlineExceeded) || s.Position().Seq != 1 {
		t.Error(s.Position(), err)
	}
	free()
	free()
	must(t, s, message(t, 2, write(put("a", 1))))
}
