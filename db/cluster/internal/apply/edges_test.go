package apply_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/apply"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/effort"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// openState opens a replica of the only shard, with a collection of codes.
func openState(t *testing.T) *apply.State {
	t.Helper()
	d, err := db.Open(t.TempDir(), &db.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	s, err := apply.Open(t.Context(), d, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
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
	return apply.Message{Seq: seq, Data: b, Control: o.Kind != wire.Write}
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
	s := openState(t)
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
	again, err := apply.Open(t.Context(), s.DB, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
	if err != nil || again.Position() != s.Position() {
		t.Errorf("opened again: %+v, %v", again.Position(), err)
	}
	if o := again.Outcome(second.ID); o == nil || o.Seq != 61 {
		t.Errorf("opened again, it remembers %+v", o)
	}
}

// Trouble leaves nothing out: the same messages are applied when it is over.
func TestTrouble(t *testing.T) {
	s := openState(t)
	messages := []apply.Message{
		message(t, 2, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put("a", 1)}}),
		message(t, 3, &wire.Op{ID: wire.NewID(), Kind: wire.CreateCollection, Collection: "more",
			Schema: &db.Schema{Bits: 8}}),
		message(t, 4, &wire.Op{ID: wire.NewID(), Kind: wire.Write, Changes: []wire.Change{put("b", 2)}}),
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err := s.Apply(ended, messages); !errors.Is(err, context.Canceled) || len(done) != 0 ||
		s.Position().Seq != 1 {
		t.Fatalf("%v, %d outcomes, at %d", err, len(done), s.Position().Seq)
	}
	if err := s.Wait(ended, 3); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	waited := make(chan error)
	go func() { waited <- s.Wait(t.Context(), 4) }()
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
	other, err := apply.Open(t.Context(), d, of)
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
		if _, err := apply.Open(t.Context(), d, not); !errors.Is(err, apply.ErrOther) {
			t.Errorf("as %+v: %v", not, err)
		}
	}
	next := apply.Identity{Cluster: "d", Shard: 1, Shards: 2}
	if err := apply.Begin(t.Context(), d, next, 41); err != nil {
		t.Fatal(err)
	}
	if begun, err := apply.Open(t.Context(), d, next); err != nil || begun.Position().Seq != 41 {
		t.Error(err)
	}
}

// Chunks are an operation when all of them are there, whatever comes between them, and nothing stays of them.
// Chunks that are wrong change nothing, and are refused.
func TestChunks(t *testing.T) {
	s := openState(t)
	seq := s.Position().Seq
	send := func(o wire.Op, control bool) *wire.Outcome {
		t.Helper()
		seq++
		m := message(t, seq, &o)
		m.Control = control
		all := must(t, s, m)
		if len(all) == 0 {
			return nil
		}
		return all[0].Outcome
	}
	marks := func() (n int) {
		t.Helper()
		for _, err := range s.DB.Marks(t.Context(), "cluster/chunk/") {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		return n
	}
	has := func(key string, want bool) {
		t.Helper()
		c, err := s.DB.Collection("codes")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := dbkit.Has(t.Context(), c, key); err != nil || got != want {
			t.Errorf("item %q: %t, %v", key, got, err)
		}
	}
	chunks := func(o wire.Op, n int) (all []wire.Op) {
		b, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			all = append(all, wire.Op{ID: o.ID, Kind: wire.Chunk, Base: o.Base, Chunk: i, Chunks: n,
				Data: b[i*len(b)/n : (i+1)*len(b)/n]})
		}
		return all
	}
	write := func(key string, bytes int) wire.Op {
		ch := put(key, 1)
		ch.Item.Payload = make([]byte, bytes)
		return wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: seq, Changes: []wire.Change{ch}}
	}
	// In any order, and across an opening.
	c := chunks(write("a", 3*db.MaxMarkBytes), 3)
	if send(c[2], false) != nil || send(c[0], false) != nil || send(c[0], false) != nil || marks() != 4 {
		t.Errorf("%d marks", marks())
	}
	has("a", false)
	again, err := apply.Open(t.Context(), s.DB, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	s = again
	if o := send(c[1], false); o == nil || o.Fault != nil || o.Seq != seq {
		t.Error(o)
	}
	has("a", true)
	if o := send(c[1], false); o == nil || o.Fault != nil || o.Seq != seq-1 { // once more, behind it
		t.Error(o)
	}
	if n := marks(); n != 0 {
		t.Errorf("%d marks stay", n)
	}
	// A control operation in chunks on the subject of writes, and mixed.
	create := func() wire.Op {
		return wire.Op{ID: wire.NewID(), Kind: wire.CreateCollection, Base: seq, Collection: "x",
			Schema: &db.Schema{Bits: 8}}
	}
	for _, second := range []bool{false, true} {
		c = chunks(create(), 2)
		send(c[0], false)
		if o := send(c[1], second); !second && (o == nil || !errors.Is(o.Err(), db.ErrInvalid)) ||
			second && o != nil { // it is one of another operation
			t.Error(second, o)
		}
	}
	if o := send(create(), false); o == nil || !errors.Is(o.Err(), db.ErrInvalid) {
		t.Error(o)
	}
	c = chunks(create(), 2)
	send(c[0], true)
	if o := send(c[1], true); o == nil || o.Fault != nil {
		t.Error(o)
	}
	// Others with its ID, also expired ones, are other operations, wherever they come.
	c = chunks(write("twin", 2*db.MaxMarkBytes), 2)
	strange := []wire.Op{c[0], c[1], c[0]}
	strange[0].Base += 1 << 50
	strange[1].Base--
	strange[2].Chunks, strange[2].Data = 3, []byte("strange")
	send(c[0], false)
	for _, o := range strange {
		send(o, false)
		send(c[0], false)
	}
	if o := send(c[1], false); o == nil || o.Fault != nil {
		t.Errorf("%+v", o)
	}
	has("twin", true)
	// Bytes that are no operation, or another one.
	other := write("b", 10)
	c = chunks(other, 2)
	c[1].Data = bytes.Clone(c[1].Data)
	c[1].Data[3]++
	foreign := chunks(other, 2)
	foreign[0].ID = wire.NewID()
	foreign[1].ID = foreign[0].ID
	for _, c := range [][]wire.Op{c, foreign} {
		send(c[0], false)
		if o := send(c[1], false); o == nil || !errors.Is(o.Err(), db.ErrInvalid) {
			t.Error(o)
		}
	}
	has("b", false)
	// What is never complete is forgotten with the operation's time.
	late := chunks(write("c", 2*db.MaxMarkBytes), 2)
	send(late[0], false)
	future := chunks(write("d", 10), 2)
	future[0].Base += 1 << 60 // from the future: at no time
	if o := send(future[0], false); o == nil || !errors.Is(o.Err(), wire.ErrExpired) {
		t.Error(o)
	}
	if n := marks(); n == 0 {
		t.Error("no marks")
	}
	var many []apply.Message
	for range wire.Memory {
		seq++
		many = append(many, apply.Message{Seq: seq})
	}
	must(t, s, many...)
	again, err = apply.Open(t.Context(), s.DB, apply.Identity{Cluster: "c", Shard: 0, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	s = again
	if o := send(late[1], false); o == nil || !errors.Is(o.Err(), wire.ErrExpired) {
		t.Error(o)
	}
	has("c", false)
	if n := marks(); n != 0 {
		t.Errorf("%d marks stay", n)
	}
}
