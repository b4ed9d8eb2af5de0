package cluster_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// forge returns a message that no client writes: an operation with fields at random, with bytes changed
// behind a right checksum, or bytes that are no operation.
func forge(r *rand.Rand, control bool) []byte {
	some := func(all ...string) string { return all[r.IntN(len(all))] }
	number := func() uint64 { return r.Uint64() >> r.IntN(64) }
	random := func(n int) []byte {
		b := make([]byte, r.IntN(n))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	if r.IntN(8) == 0 {
		return random(2000)
	}
	names := []string{"codes", "victim", "", "nosuch", "a\x1b[31mb", "\u202e"}
	op := &wire.Op{ID: wire.NewID(), Kind: wire.Kind(r.IntN(18)), Base: number(), Collection: some(names...),
		Space: db.Space(number()), Revision: uint32(number()), Rows: number(), Fence: number(),
		File: random(300), Chunk: r.IntN(5), Chunks: r.IntN(5), Data: random(300),
		Modality: some("image", "", "x"), Recall: []float64{0, .5, 1, math.NaN(), math.Inf(1), -1}[r.IntN(6)]}
	if op.Kind == wire.DropCollection {
		op.Collection = "victim"
	}
	if r.IntN(3) == 0 {
		op.Base = 0
	}
	if r.IntN(2) == 0 {
		op.Schema = &db.Schema{Bits: []int{0, 8, 16, -8, 7, 1 << 40}[r.IntN(6)]}
		if r.IntN(2) == 0 {
			op.Schema.Modalities = []db.Modality{{Name: some("image", ""), Dim: int(int32(number()))}}
		}
	}
	for range r.IntN(3) {
		item := &wire.Item{Key: some("1", "2", "", "k"), Code: random(4), Payload: random(50),
			Labels: []string{some("l", "", "\x00")}}
		op.Changes = append(op.Changes, wire.Change{Collection: some(names...),
			Kind: wire.ChangeKind(r.IntN(8)), Item: item, Old: item})
	}
	b, err := op.Encode()
	if err != nil {
		return random(200)
	}
	const head = 4 + 1 + 8 // magic, version, checksum
	if r.IntN(2) == 0 && len(b) > head {
		for range 1 + r.IntN(3) {
			b[head+r.IntN(len(b)-head)] = byte(r.Uint32())
		}
		binary.BigEndian.PutUint64(b[5:], xxhash.Sum64(b[head:])+uint64(b[4]))
	}
	if decoded, err := wire.DecodeOp(b); control && err == nil &&
		(decoded.Kind == wire.DropCollection && decoded.Collection == "codes" || decoded.Kind == wire.Skip) {
		return nil // an operator may do that
	}
	return b
}

// A forged message stops no replica, on any subject of the log: neither one that runs, nor one that opens,
// nor one that begins with the log. All replicas decide the same about it.
func TestForgedMessages(t *testing.T) {
	h := build(t, 1, 3, 1, 3)
	c := h.connect()
	codes := codesOf(t, c)
	put := func(key string) {
		t.Helper()
		if _, err := codes.Put(t.Context(), &db.Item{Key: key, Code: []byte{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(h.conn("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(8, 8))
	equal := func() {
		t.Helper()
		items := 0
		names, err := c.Collections(t.Context())
		for _, name := range names {
			n, cerr := c.Collection(name).Count(t.Context(), "")
			items, err = items+n, errors.Join(err, cerr)
		}
		if err != nil {
			t.Fatal(err)
		}
		h.inStep(3, items)
		found, err := c.Compare(t.Context(), 0)
		if err != nil || len(found.Nodes) != 3 || len(found.Differences) > 0 {
			t.Fatalf("%+v, %v", found, err)
		}
	}
	for i := range effort.Of(10_000, 2000) {
		subject := []string{"log", "control", "skip"}[r.IntN(3)]
		_, err := js.PublishMsgAsync(&nats.Msg{Subject: "fddhdb.test." + subject + ".0",
			Data: forge(r, subject != "log")})
		if err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 {
			<-js.PublishAsyncComplete()
			put(fmt.Sprint("real", i))
		}
		if i%2000 == 999 {
			h.leave("n1")
			h.open("n1")
		}
	}
	<-js.PublishAsyncComplete()
	put("end")
	equal()
	h.leave("n2")
	if err := os.RemoveAll(filepath.Join(h.dir, "n2")); err != nil {
		t.Fatal(err)
	}
	h.open("n2")
	put("later")
	equal()
}
