package cluster_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// objectsOf are the objects that the store has, by what their names begin with.
func (h *house) objectsOf() map[string]int {
	h.t.Helper()
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		h.t.Fatal(err)
	}
	store, err := js.ObjectStore(h.t.Context(), "FDDHDB_test")
	if err != nil {
		h.t.Fatal(err)
	}
	all, err := store.List(h.t.Context())
	if err != nil && err != jetstream.ErrNoObjectsFound {
		h.t.Fatal(err)
	}
	n := map[string]int{}
	for _, o := range all {
		kind, _, _ := strings.Cut(o.Name, "-")
		n[kind]++
	}
	return n
}

// store stores an object.
func (h *house) store(name string) {
	h.t.Helper()
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		h.t.Fatal(err)
	}
	store, err := js.ObjectStore(h.t.Context(), "FDDHDB_test")
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := store.PutBytes(h.t.Context(), name, []byte("x")); err != nil {
		h.t.Fatal(err)
	}
}

// stored is how many messages and bytes the store of objects takes.
func (h *house) stored() (messages, bytes uint64) {
	h.t.Helper()
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		h.t.Fatal(err)
	}
	s, err := js.Stream(h.t.Context(), "OBJ_FDDHDB_test")
	if err != nil {
		h.t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs, s.CachedInfo().State.Bytes
}

// Objects go when no log names them any more, and not before. What they held stays, and replicas that begin
// with the backup have it. There is one server: of several, one that is asked may not have trimmed yet, and
// what it still names stays until the next backup.
func TestObjectsGo(t *testing.T) {
	h := build(t, 1, 1, 2, 1)
	c := h.connect()
	codes := codesOf(t, c)
	putSome(t, c, 0, 100)
	items := 100
	large := func(key string) *db.Item {
		items++
		return &db.Item{Key: key, Code: []byte{1, 2}, Payload: bytes.Repeat([]byte(key), 1_000_000/len(key))}
	}
	put := func(it *db.Item) {
		t.Helper()
		if _, err := codes.Put(t.Context(), it); err != nil {
			t.Fatal(err)
		}
	}
	backup := func() {
		t.Helper()
		if all, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil ||
			len(all) != 2 {
			t.Fatal(all, err)
		}
	}
	is := func(when string, want string) {
		t.Helper()
		if got := fmt.Sprint(h.objectsOf()); got != want {
			t.Errorf("%s: %s and not %s", when, got, want)
		}
	}
	var gone []*db.Item
	for i := range 5 {
		gone = append(gone, large(fmt.Sprint("gone", i)))
		put(gone[i])
	}
	putSome(t, c, 100, 200) // the logs go on behind them
	items += 100
	backup()
	h.store("train-x") // as one leaves that was killed
	is("objects are young", "map[op:5 train:1]")

	cluster.SettleAtOnce(t)
	stays := large("stays")
	put(stays) // it is the last message of its log, which a trim leaves
	backup()
	is("nobody has found them before", "map[op:6 train:1]")
	backup()
	is("a message is in a log", "map[op:1]")
	if n, size := h.stored(); n > 5 || size > 1_200_000 {
		t.Errorf("the store has %d messages, of %d bytes", n, size)
	}
	backup()
	is("once more", "map[op:1]")

	// What was in them is there, on a node that begins with the backups.
	h.inStep(1, items)
	h.open("n1")
	eventually(t, "n1 is heard of", func() bool {
		all, err := c.Nodes(t.Context())
		return err == nil && len(all) == 2
	})
	if err := c.Drain(t.Context(), "n0"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "n0 has nothing any more", func() bool { return len(h.nodes["n0"].Status().Shards) == 0 })
	h.inStep(1, items)
	for _, it := range append(gone, stays) {
		if got, err := codes.Get(t.Context(), it.Key); err != nil || !bytes.Equal(got.Payload, it.Payload) {
			t.Errorf("%s: %v", it.Key, err)
		}
	}
}

// An object that two logs name stays until neither does, and as long as something in a log cannot be read.
func TestObjectsOfTwoLogs(t *testing.T) {
	cluster.SettleAtOnce(t)
	h := build(t, 1, 1, 2, 1)
	c := h.connect()
	codes := codesOf(t, c)
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := codes.Put(t.Context(), &db.Item{Key: "large", Code: []byte{1, 2},
		Payload: make([]byte, 1<<20)}); err != nil {
		t.Fatal(err)
	}
	of := shard.Of("large", 2)
	log, err := js.Stream(t.Context(), fmt.Sprint("FDDHDB_test_", of))
	if err != nil {
		t.Fatal(err)
	}
	m, err := log.GetMsg(t.Context(), log.CachedInfo().State.LastSeq)
	if err != nil {
		t.Fatal(err)
	}
	putSome(t, c, 0, 50)
	is := func(when string, last []byte, want int) {
		t.Helper()
		if _, err := js.Publish(t.Context(), fmt.Sprint("fddhdb.test.log.", 1-of), last); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the first finds them, and the second removes them
			if _, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.objectsOf()["op"]; n != want {
			t.Errorf("%s: %d objects", when, n)
		}
	}
	skip, err := (&wire.Op{ID: wire.NewID(), Kind: wire.DropSpace}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	is("another log names it", m.Data, 1)
	is("a message cannot be read", append(skip[:1:1], 0xff), 1)
	is("no log names it", skip, 0)
}

// A message that would come too late to name an object is not appended.
func TestTooLateForAnObject(t *testing.T) {
	h := build(t, 1, 1, 1, 1)
	js, err := jetstream.New(h.conn("client"))
	if err != nil {
		t.Fatal(err)
	}
	log := journal.New(js, "test", 0)
	if _, tries, err := log.Append(t.Context(), "late", []byte("x"), "",
		time.Now().Add(-time.Second)); !errors.Is(err, journal.ErrLate) || tries != 0 {
		t.Error(tries, err)
	}
	if info, err := log.Info(t.Context()); err != nil || info.Last != 0 {
		t.Error(info, err)
	}
}

// The file of a model goes when all logs have been trimmed behind it. Its codes stay, and so does what a
// later training stores.
func TestModelsGo(t *testing.T) {
	cluster.SettleAtOnce(t)
	h := build(t, 1, 2, 2, 2)
	c := h.connect()
	pairs, err := c.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err != nil {
		t.Fatal(err)
	}
	items := dbkit.Pairs(300, synth.Config{Seed: 5})
	importAll(t, pairs, items)
	train := func(want int) {
		t.Helper()
		opt := db.TrainOptions{Options: fit.Options{Bits: 16, Anchors: 10}, Activate: true}
		if _, err := pairs.Train(t.Context(), opt); err != nil {
			t.Fatal(err)
		}
		if n := h.objectsOf()["model"]; n != want {
			t.Errorf("%d models and not %d", n, want)
		}
	}
	backup := func(want int) {
		t.Helper()
		for range 2 {
			if _, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.objectsOf()["model"]; n != want {
			t.Errorf("behind a backup %d models and not %d", n, want)
		}
	}
	train(1)
	backup(1)
	importAll(t, pairs, items[:100])
	importAll(t, pairs, items[100:200])
	backup(0)
	train(1) // the same file as before
	h.inStep(2, 300)
	it, err := pairs.Get(t.Context(), items[7].Key)
	if err != nil || len(it.Code) != 2 || slices.Equal(it.Code, make([]byte, 2)) {
		t.Errorf("%+v, %v", it, err)
	}
}
