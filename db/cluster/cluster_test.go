package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// What one client writes it reads, and so does another.
func TestWritesAndReads(t *testing.T) {
	h := build(t, 3, 3, 4, 2)
	a, b := h.connect(), h.connect()
	codes := codesOf(t, a)
	if _, err := b.CreateCollection(t.Context(), "codes", db.Schema{Bits: 32}); !errors.Is(err,
		db.ErrExists) {
		t.Error(err)
	}
	item := func(key string, n int) *db.Item {
		return &db.Item{Key: key, Code: []byte{byte(n), 1}, Payload: fmt.Append(nil, n),
			Fields: map[string]any{"year": int64(n)}}
	}
	for i := range 60 {
		key := fmt.Sprint("k", i)
		if got, err := codes.Put(t.Context(), item(key, i)); err != nil || got != key {
			t.Fatal(got, err)
		}
		it, err := codes.Get(t.Context(), key)
		if err != nil || string(it.Payload) != fmt.Sprint(i) || it.Fields["year"] != int64(i) ||
			!bytes.Equal(it.Code, []byte{byte(i), 1}) {
			t.Fatalf("%s: %+v, %v", key, it, err)
		}
	}
	made, err := codes.Put(t.Context(), item("", 7))
	if err != nil || len(made) != 32 {
		t.Error(made, err)
	}
	others := b.Collection("codes")
	was, err := others.Get(t.Context(), "k3")
	if err != nil {
		t.Fatal(err)
	}
	if err := others.PutIf(t.Context(), item("k3", 300), was); err != nil {
		t.Error(err)
	}
	if err := codes.PutIf(t.Context(), item("k3", 301), was); !errors.Is(err, db.ErrConflict) {
		t.Error(err)
	}
	if err := codes.PutIf(t.Context(), item("k3", 301), nil); !errors.Is(err, db.ErrConflict) {
		t.Error(err)
	}
	if err := codes.PutIf(t.Context(), item("new", 301), nil); err != nil {
		t.Error(err)
	}
	if it, err := codes.Get(t.Context(), "k3"); err != nil || string(it.Payload) != "300" {
		t.Error(it, err)
	}
	if err := codes.Delete(t.Context(), "k4"); err != nil {
		t.Error(err)
	}
	if _, err := codes.Get(t.Context(), "k4"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if _, err := codes.Put(t.Context(), &db.Item{Key: "bad", Code: []byte{1}}); !errors.Is(err,
		db.ErrInvalid) {
		t.Error(err)
	}
	if _, err := a.Collection("nosuch").Put(t.Context(), item("x", 1)); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	// A large one goes by way of an object.
	large := item("large", 1)
	large.Payload = bytes.Repeat([]byte("0123456789"), 100_000)
	if _, err := codes.Put(t.Context(), large); err != nil {
		t.Error(err)
	}
	if it, err := codes.Get(t.Context(), "large"); err != nil || !bytes.Equal(it.Payload, large.Payload) {
		t.Error(err)
	}
	// One that comes in several parts, alone and in an answer with others.
	large.Payload = bytes.Repeat([]byte("abcdefghijklmnopqrstuvwxyz"), 200_000)
	if _, err := codes.Put(t.Context(), large); err != nil {
		t.Error(err)
	}
	if it, err := codes.Get(t.Context(), "large"); err != nil || !bytes.Equal(it.Payload, large.Payload) {
		t.Error(err)
	}
	res, err := codes.Search(t.Context(),
		cluster.Query{Query: db.Query{Code: large.Code, K: 5, Include: db.IncludePayload}})
	if err != nil || !slices.ContainsFunc(res.Hits,
		func(h db.Hit) bool { return h.Key == "large" && bytes.Equal(h.Item.Payload, large.Payload) }) {
		t.Error("a search that includes it:", err)
	}
	// Only keys of one shard are written together.
	batch := codes.NewBatch()
	for i := range 20 {
		batch.Put(item(fmt.Sprint("b", i), i))
	}
	if err := batch.Commit(t.Context()); !errors.Is(err, db.ErrInvalid) {
		t.Error(err)
	}
	if err := a.DropCollection(t.Context(), "codes"); err != nil {
		t.Error(err)
	}
	if err := b.DropCollection(t.Context(), "codes"); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
}

// What is no operation in a log stops no replica, neither while it runs nor when it opens.
func TestForeignMessagesInALog(t *testing.T) {
	h := build(t, 1, 2, 1, 2)
	codes := codesOf(t, h.connect())
	put := func(i int) {
		t.Helper()
		_, err := codes.Put(t.Context(), &db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 2}})
		if err != nil {
			t.Fatal(err)
		}
	}
	js, err := jetstream.New(h.conn("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	put(0)
	for _, b := range [][]byte{nil, []byte("hello"), []byte("fddh"), bytes.Repeat([]byte("fddh\x01"), 40),
		make([]byte, 3000), []byte("\x01\x02\x03")} {
		if _, err := js.Publish(t.Context(), "fddhdb.test.log.0", b); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	h.inStep(2, 2)
	for _, node := range []string{"n0", "n1"} {
		if n := h.nodes[node].Status().Shards[0].Unread; n != 6 {
			t.Errorf("node %s has counted %d", node, n)
		}
		h.leave(node)
		h.open(node)
	}
	put(2)
	h.inStep(2, 3)
}

// Nodes that go and come back lose nothing, and catch up.
func TestNodesGoAndComeBack(t *testing.T) {
	h := build(t, 3, 3, 4, 2)
	c := h.connect()
	codes := codesOf(t, c)
	put := func(from, to int) {
		t.Helper()
		for i := from; i < to; i++ {
			if _, err := codes.Put(t.Context(),
				&db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 2}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	get := func(n int) {
		t.Helper()
		for i := range n {
			if _, err := codes.Get(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(i, err)
			}
		}
	}
	put(0, 40)
	h.leave("n1")
	put(40, 80)
	get(80)
	h.open("n1")
	h.leave("n2")
	put(80, 120)
	get(120)
	h.open("n2")
	eventually(t, "all replicas are equal", func() bool {
		type at struct{ seq, chain uint64 }
		shards := map[int][]at{}
		for _, n := range h.nodes {
			for _, s := range n.Status().Shards {
				shards[s.Shard] = append(shards[s.Shard], at{s.Applied, s.Chain})
			}
		}
		for i := range 4 {
			if len(shards[i]) != 2 || shards[i][0] != shards[i][1] {
				return false
			}
		}
		return true
	})
	items := 0
	for _, n := range h.nodes {
		for _, s := range n.Status().Shards {
			items += s.Items
		}
	}
	if items != 2*120 {
		t.Errorf("%d items in all replicas", items)
	}
}

// A cluster, a node or an item that is not there is an error that names it.
func TestWhatIsNotThere(t *testing.T) {
	h := build(t, 1, 1, 1, 1)
	nc := h.conn("client")
	if _, err := cluster.Connect(t.Context(), nc, "other", cluster.ClientOptions{}); !errors.Is(err,
		db.ErrNotFound) {
		t.Error(err)
	}
	if err := cluster.Create(t.Context(), nc, "test", cluster.CreateOptions{Shards: 2, Servers: 1,
		Replicas: 1}); !errors.Is(err, db.ErrExists) {
		t.Error(err)
	}
	for _, o := range []cluster.CreateOptions{{Shards: 0}, {Shards: 1 << 20},
		{Shards: 1, Replicas: 3, Nodes: []string{"a"}}, {Shards: 1, Replicas: 1, Nodes: []string{"a", "a"}},
		{Shards: 1, Replicas: 1, Nodes: []string{"a b"}}} {
		if err := cluster.Create(t.Context(), nc, "new", o); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := cluster.Create(t.Context(), nc, "a.b", cluster.CreateOptions{Shards: 1}); !errors.Is(err,
		db.ErrInvalid) {
		t.Error(err)
	}
	// No node answers: the error says which shard, and which nodes have it.
	c, err := cluster.Connect(t.Context(), nc, "test",
		cluster.ClientOptions{Timeout: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	codesOf(t, h.connect()) // which has more time
	h.leave("n0")
	var missing *cluster.ShardError
	if _, err := c.Collection("codes").Get(t.Context(), "x"); !errors.As(err, &missing) ||
		missing.Shard != 0 || len(missing.Nodes) != 1 {
		t.Error(err)
	}
	// No replica runs: the log takes a write, and the client cannot tell whether it will be refused.
	var unknown *cluster.UnknownError
	_, err = c.Collection("codes").Put(t.Context(), &db.Item{Key: "x", Code: []byte{1, 2}})
	if !errors.As(err, &unknown) || !errors.Is(err, cluster.ErrUnknown) {
		t.Fatal(err)
	}
	h.open("n0")
	eventually(t, "the write has been applied", func() bool {
		applied, refused, err := c.Outcome(t.Context(), unknown)
		return err == nil && refused == nil && applied
	})
}

// A cluster whose plan is lost does not begin anew with the logs of before, even where they are as the new
// ones would be.
func TestLogsOfBefore(t *testing.T) {
	h := buildLogs(t, 1, 1, 1, 1, 64<<20)
	codesOf(t, h.connect())
	nc := h.conn("admin")
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(t.Context(), "KV_FDDHDB_test"); err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{64 << 20, 32 << 20} {
		err := cluster.Create(t.Context(), nc, "test", cluster.CreateOptions{Shards: 1, Replicas: 1,
			Nodes: []string{"a"}, Servers: 1, LogBytes: bytes})
		if !errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), "FDDHDB_test_0") {
			t.Error(err)
		}
	}
}
