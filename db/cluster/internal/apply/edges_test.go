package apply_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// openState opens a replica of the only shard, with a collection of codes.
func openState(t *testing.T, fetch func(context.Context, string) ([]byte, error)) *apply.State {
	t.Helper()
	d, err := db.Open(t.TempDir(), &db.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1}, fetch)
	if err != nil {
		t.Fatal(err)
	}
	must(t, s, message(t, 1, &wire.Op{ID: wire.NewID(), Kind: wire.CreateCollection, Collection: "codes",
		Schema: &db.Schema{Bits: 16}}))
	return s
}

func message(t *testing.T, seq uint64, o *wire.Op) apply.Message {
	t.Helper()
	b, err := o.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return apply.Message{Seq: seq, Data: b}
}

func must(t *testing.T, s *apply.State, messages ...apply.Message) []apply.Applied {
	t.Helper()
	outcomes, err := s.Apply(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func put(key string, n int) wire.Change {
	return wire.Change{Collection: "codes", Kind: wire.Put,
		Item: &wire.Item{Key: key, Code: []byte{byte(n), byte(n >> 8)}, Payload: fmt.Append(nil, n)}}
}

// An operation is applied once however often it comes, as long as it is remembered; and when nobody
// remembers it any more it is refused.
func TestOnce(t *testing.T) {
	s := openState(t, nil)
	first := &wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: 1, Changes: []wire.Change{put("k", 1)}}
	must(t, s, message(t, 2, first))
	last := uint64(2)
	fill := func(to uint64) {
		t.Helper()
		for last < to {
			var some []apply.Message
			for ; last < to && len(some) < 4000; last++ {
				some = append(some, message(t, last+1, &wire.Op{ID: wire.NewID(), Kind: wire.Write,
					Base: last, Changes: []wire.Change{put("other", int(last))}}))
			}
			must(t, s, some...)
		}
	}
	next := func(o *wire.Op) apply.Applied {
		t.Helper()
		last++
		return must(t, s, message(t, last, o))[0]
	}
	next(&wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: last, Changes: []wire.Change{put("k", 2)}})
	if o := next(first); o.Fault != nil || o.Outcome.Seq != 2 || o.Seq != last {
		t.Errorf("a second time: %+v", o)
	}
	fill(60)
	second := &wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: last, Changes: []wire.Change{put("k", 2)}}
	next(second)
	fill(wire.Memory)
	for i, remembered := range []bool{true, false} { // afterwards
		if o := next(first); o.Fault != nil || o.Outcome.Seq != 2 || o.Seq != last {
			t.Errorf("near the end of what is remembered, %d: %+v", i, o)
		}
		if got := s.Outcome(first.ID) != nil; got != remembered {
			t.Errorf("after message %d it is remembered: %v", last, got)
		}
	}
	fill(wire.Memory + 40)
	if s.Outcome(first.ID) != nil {
		t.Error("it is remembered for ever")
	}
	if o := next(first); !errors.Is(o.Err(), wire.ErrExpired) {
		t.Errorf("too late: %+v", o)
	}
	c, err := s.DB.Collection("codes")
	if err != nil {
		t.Fatal(err)
	}
	if it, err := c.Get(t.Context(), "k"); err != nil || string(it.Payload) != "2" {
		t.Errorf("%+v, %v", it, err)
	}
	n := 0
	for _, err := range s.DB.Marks(t.Context(), "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	// that of the position, and one for each operation but first, which has come again
	if n > wire.Memory+1 || n < wire.Memory-1 {
		t.Errorf("%d marks, want about %d", n, wire.Memory)
	}
	again, err := apply.Open(t.Context(), s.DB, apply.Identity{Cluster: "c", Shard: 0, Shards: 1}, nil)
	if err != nil || again.Position() != s.Position() {
		t.Errorf("opened again: %+v, %v", again.Position(), err)
	}
	if o := again.Outcome(second.ID); o == nil || o.Seq != 61 {
		t.Errorf("opened again, it remembers %+v", o)
	}
}

// Trouble leaves nothing out: the same messages are applied when it is over.
func TestTrouble(t *testing.T) {
	var down error
	objects := map[string][]byte{}
	s := openState(t, func(_ context.Context, name string) ([]byte, error) { return objects[name], down })
	b, err := wire.EncodeChanges([]wire.Change{put("large", 9)})
	if err != nil {
		t.Fatal(err)
	}
	objects["o"] = b
	sum := sha256.Sum256(b)
	messages := []apply.Message{
		message(t, 2, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put("a", 1)}}),
		message(t, 3, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Object: "o", Size: int64(len(b)),
			Sum: sum[:]}),
		message(t, 4, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put("b", 2)}}),
	}
	down = fmt.Errorf("%w: an object that is not there", db.ErrNotFound) // which no operation is refused with
	if done, err := s.Apply(t.Context(), messages); err == nil || len(done) != 1 || s.Position().Seq != 2 {
		t.Fatalf("%v, %d outcomes, at %d", err, len(done), s.Position().Seq)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Wait(ended, 3); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := make(chan error)
	go func() { waited <- s.Wait(t.Context(), 4) }()
	down = nil
	for _, o := range must(t, s, messages...) {
		if o.Fault != nil {
			t.Error(o.Fault)
		}
	}
	if err := <-waited; err != nil || s.Position().Seq != 4 {
		t.Error(err, s.Position())
	}
	// Messages that are missing, and those of another version of the program, end it before they do harm.
	var gap *apply.GapError
	if _, err := s.Apply(t.Context(),
		[]apply.Message{message(t, 7, &wire.Op{ID: wire.NewID(), Kind: wire.Write})}); !errors.As(err,
		&gap) || gap.After != 4 || gap.Next != 7 {
		t.Error(err)
	}
	version := func(by int) apply.Message { // the byte behind the magic; the sum counts it
		m := message(t, 6, &wire.Op{ID: wire.NewID(), Kind: wire.Write})
		m.Data[4] += byte(by)
		sum := m.Data[5:13]
		binary.BigEndian.PutUint64(sum, binary.BigEndian.Uint64(sum)+uint64(by))
		return m
	}
	newer, older := version(1), version(-1)
	five := message(t, 5, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put("c", 3)}})
	if done, err := s.Apply(t.Context(), []apply.Message{five, newer}); !errors.Is(err, wire.ErrVersion) ||
		len(done) != 1 || s.Position().Seq != 5 {
		t.Error(err, len(done), s.Position())
	}
	if done, err := s.Apply(t.Context(), []apply.Message{older}); !errors.Is(err, wire.ErrVersion) ||
		len(done) != 0 || s.Position().Seq != 5 {
		t.Error(err, len(done), s.Position())
	}
	// Anybody may write what is no message: it is passed over, and what follows is applied.
	forged := [][]byte{nil, []byte("hello"), []byte("fddh"), make([]byte, 100), newer.Data[:20],
		append([]byte{1}, newer.Data...), []byte(strings.Repeat("fddh\x02", 20))}
	r := seed.Rand(t, 4, 4)
	for range effort.Of(10_000, 1_000) {
		b := slices.Clone(newer.Data)
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		if !bytes.Equal(b, newer.Data) {
			forged = append(forged, b[:1+r.IntN(len(b))])
		}
	}
	for i, b := range forged {
		if done, err := s.Apply(t.Context(), []apply.Message{{Seq: uint64(6 + i), Data: b}}); err != nil ||
			len(done) != 0 {
			t.Fatalf("%q: %d applied, %v", b, len(done), err)
		}
	}
	last := message(t, uint64(6+len(forged)), &wire.Op{ID: wire.NewID(), Kind: wire.Write,
		Changes: []wire.Change{put("d", 3)}})
	for _, o := range must(t, s, last) {
		if o.Fault != nil {
			t.Error(o.Fault)
		}
	}
	if s.Unread() != uint64(len(forged)) {
		t.Errorf("%d of %d were counted", s.Unread(), len(forged))
	}
}

// Half of a database is no replica of a shard that it was not one of.
func TestKeysOfOtherShards(t *testing.T) {
	d, err := db.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	of := apply.Identity{Cluster: "c", Shard: 1, Shards: 2}
	other, err := apply.Open(t.Context(), d, of, nil)
	if err != nil {
		t.Fatal(err)
	}
	must(t, other, message(t, 1, &wire.Op{ID: wire.NewID(), Kind: wire.CreateCollection, Collection: "codes",
		Schema: &db.Schema{Bits: 16}}))
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		o := must(t, other, message(t, other.Position().Seq+1,
			&wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put(key, 1)}}))[0]
		if (o.Fault == nil) != (shard.Of(key, 2) == 1) {
			t.Errorf("%q, of shard %d: %+v", key, shard.Of(key, 2), o)
		}
	}
	// Nor is it one of another shard, or of another cluster; until it begins as that.
	for _, not := range []apply.Identity{{Cluster: "c", Shard: 0, Shards: 2},
		{Cluster: "d", Shard: 1, Shards: 2}, {Cluster: "c", Shard: 1, Shards: 4}} {
		if _, err := apply.Open(t.Context(), d, not, nil); !errors.Is(err, apply.ErrOther) {
			t.Errorf("as %+v: %v", not, err)
		}
	}
	next := apply.Identity{Cluster: "d", Shard: 1, Shards: 2}
	if err := apply.Begin(t.Context(), d, next, 41); err != nil {
		t.Fatal(err)
	}
	if begun, err := apply.Open(t.Context(), d, next, nil); err != nil || begun.Position().Seq != 41 {
		t.Error(err)
	}
}
