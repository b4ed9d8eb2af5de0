package replica_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/journal"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
	"github.com/fddhdb/fddhdb/db/cluster/internal/replica"
	"github.com/fddhdb/fddhdb/db/cluster/internal/vault"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

// A bed is a log, and a replica that is opened and closed.
type bed struct {
	t      *testing.T
	nc     *nats.Conn
	js     jetstream.JetStream
	log    *journal.Journal
	config replica.Config
	*replica.Replica
}

func newBed(t *testing.T) *bed {
	t.Helper()
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(dir, "nats"), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	b := &bed{t: t}
	if b.nc, err = nats.Connect(servers.URL(0)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.nc.Close)
	if b.js, err = jetstream.New(b.nc); err != nil {
		t.Fatal(err)
	}
	b.log = journal.New(b.js, "test", 0)
	b.create()
	b.config = replica.Config{Cluster: "id", Shards: 1, Dir: filepath.Join(dir, "shard-0000"), Journal: b.log,
		Conn: b.nc, Vault: vault.At(filepath.Join(dir, "backups")), Log: slog.New(slog.DiscardHandler),
		Base: func() plan.Placement { return plan.Placement{} }, Turns: make(chan struct{}, 1)}
	t.Cleanup(b.close)
	b.open()
	return b
}

func (b *bed) create() {
	b.t.Helper()
	var err error
	b.eventually(func() bool { // the server may still be removing the files of the one before
		err = b.log.Create(b.t.Context(), journal.Config{Replicas: 1, MaxBytes: 16 << 20})
		return err == nil
	}, func() string { return err.Error() })
}

func (b *bed) open() { b.Replica = replica.Start(b.config) }

func (b *bed) close() {
	if b.Replica == nil {
		return
	}
	if err := b.Close(); err != nil {
		b.t.Error(err)
	}
	b.Replica = nil
}

// op appends an operation, and returns its sequence.
func (b *bed) op(op wire.Op) uint64 {
	b.t.Helper()
	op.ID = wire.NewID()
	m, err := op.Encode()
	if err != nil {
		b.t.Fatal(err)
	}
	kind := journal.Control
	if op.Kind == wire.Write {
		kind = journal.Writes
	}
	seq, _, err := b.log.Append(b.t.Context(), op.ID.String(), kind, m, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return seq
}

// put appends items, the first of a log with their collection, and returns the last sequence.
func (b *bed) put(from, to int) (seq uint64) {
	b.t.Helper()
	if from == 0 {
		b.op(wire.Op{Kind: wire.CreateCollection, Collection: "c", Schema: &db.Schema{Bits: 8}})
	}
	for i := from; i < to; i++ {
		seq = b.op(wire.Op{Kind: wire.Write, Changes: []wire.Change{{Collection: "c", Kind: wire.Put,
			Item: &wire.Item{Key: fmt.Sprint(i), Code: []byte{byte(i)}}}}})
	}
	return seq
}

// count asks how many items the replica has at a sequence or later.
func (b *bed) count(from uint64, wait int) (int, error) {
	a := b.Answer(b.t.Context(), &wire.Request{Verb: wire.Count, Collection: "c", From: from, Wait: wait})
	if a.Fault != nil {
		return 0, a.Fault
	}
	return a.N, nil
}

func (b *bed) has(want int, from uint64) {
	b.t.Helper()
	var n int
	var err error
	b.eventually(func() bool { n, err = b.count(from, 1000); return err == nil },
		func() string { return fmt.Sprint(n, err) })
	if n != want {
		b.t.Errorf("%d items, not %d", n, want)
	}
}

func (b *bed) eventually(is func() bool, what func() string) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatal("in a minute not: " + what())
		}
	}
}

// troubled waits until the status has a problem.
func (b *bed) troubled(want string) {
	b.t.Helper()
	b.eventually(func() bool { return strings.Contains(b.Status().Problem, want) },
		func() string { return fmt.Sprintf("%q in %q", want, b.Status().Problem) })
	if _, err := b.count(0, 0); !errors.Is(err, wire.ErrBehind) && !errors.Is(err, wire.ErrNotHere) {
		b.t.Error("it answers:", err)
	}
}

// lefts returns how many databases have been moved aside.
func (b *bed) lefts() int {
	b.t.Helper()
	all, err := filepath.Glob(b.config.Dir + ".left-*")
	if err != nil {
		b.t.Fatal(err)
	}
	return len(all)
}

// A replica answers when it has applied the message that the request names, or says that it is behind.
func TestAnswersWait(t *testing.T) {
	b := newBed(t)
	last := b.put(0, 5)
	b.has(5, last)
	if _, err := b.count(last+1, 50); !errors.Is(err, wire.ErrBehind) {
		t.Error(err)
	}
	done := make(chan error, 1)
	go func() {
		n, err := b.count(last+3, 10_000)
		if err == nil && n != 8 {
			err = fmt.Errorf("%d items", n)
		}
		done <- err
	}()
	b.put(5, 8)
	if err := <-done; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if a := b.Answer(ctx, &wire.Request{Verb: wire.Count, Collection: "c", From: last + 100,
		Wait: 10_000}); !errors.Is(a.Fault, wire.ErrBehind) {
		t.Error(a.Fault)
	}
	if a := b.Answer(t.Context(), &wire.Request{Verb: wire.Search, Collection: "c"}); !errors.Is(a.Fault,
		db.ErrInvalid) {
		t.Error(a.Fault)
	}
	b.close()
	b.put(8, 10)
	b.open()
	b.has(10, 0) // not before it has what the log had when it was opened
	if s := b.Status(); s.Applied != last+5 || s.Items != 10 || s.Problem != "" || s.Behind != 0 {
		t.Errorf("%+v", s)
	}
}

// A replica does not go on with a log that is not the one it has applied, and keeps its database.
func TestAnotherLog(t *testing.T) {
	b := newBed(t)
	b.has(5, b.put(0, 5))
	for _, n := range []int{3, 5, 9} { // shorter, as long, longer
		b.close()
		if err := b.js.DeleteStream(t.Context(), "FDDHDB_test_0"); err != nil {
			t.Fatal(err)
		}
		b.create()
		b.put(0, n)
		b.open()
		b.troubled("does not have message 6 as this replica has applied it")
		if b.lefts() > 0 {
			t.Error("the database is gone")
		}
	}
	b.close()
	b.config.Cluster = "other" // a database of another cluster makes room
	b.open()
	b.has(9, 10)
	if b.lefts() != 1 {
		t.Errorf("%d databases aside", b.lefts())
	}
}

// The log has been trimmed, and the replica lacks the removed messages. It keeps its database until there is
// a backup that has them, and restores that.
func TestTrimmedTooFar(t *testing.T) {
	b := newBed(t)
	b.has(5, b.put(0, 5))
	b.close()
	last := b.put(5, 20)
	other := b.config
	other.Dir += "-of-another-node"
	second := replica.Start(other)
	defer func() {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}()
	b.eventually(func() bool { return second.Status().Applied == last },
		func() string { return "the second" })
	if err := b.log.Trim(t.Context(), last-2); err != nil {
		t.Fatal(err)
	}
	b.open()
	b.troubled("no backup at")
	if b.lefts() > 0 {
		t.Error("the database is gone")
	}
	e, err := second.Backup(t.Context())
	if err != nil || e.Position != last || e.Items != 20 {
		t.Fatalf("%+v, %v", e, err)
	}
	b.has(20, last)
	if _, err := os.Stat(b.config.Dir + ".outdated"); !errors.Is(err, os.ErrNotExist) || b.lefts() > 0 {
		t.Errorf("%d databases aside, %v", b.lefts(), err) // the backup has all of it
	}
	// Made again: of the backup, and of what came after it.
	last = b.put(20, 25)
	b.Rebuild()
	b.eventually(func() bool { return b.lefts() == 1 && b.Status().Problem == "" },
		func() string { return b.Status().Problem })
	b.has(25, last)
	// A place that another cluster has backups in is refused.
	b.close()
	b.config.Cluster, b.config.Dir = "third", b.config.Dir+"-third"
	b.config.Journal = journal.New(b.js, "third", 0)
	err = b.config.Journal.Create(t.Context(), journal.Config{Replicas: 1, MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	b.open()
	b.eventually(func() bool { _, err = b.Backup(t.Context()); return !errors.Is(err, wire.ErrNotHere) },
		func() string { return err.Error() })
	if !errors.Is(err, db.ErrExists) || !strings.Contains(err.Error(), "another cluster") {
		t.Error(err)
	}
}

// A training reads one state of the replica until it ends, and one that has ended is known no more.
func TestSession(t *testing.T) {
	b := newBed(t)
	last := b.put(0, 5)
	b.has(5, last)
	id := wire.NewID()
	survey, err := b.Survey(t.Context(), id, "c", last)
	if err != nil || survey.Items != 5 {
		t.Fatalf("%+v, %v", survey, err)
	}
	b.has(9, b.put(5, 9))
	b.EndSession(id)
	b.EndSession(id)
	if _, err := b.Sum(t.Context(), id, nil, nil, wire.Stretch{}); err == nil ||
		!strings.Contains(err.Error(), "is not known here") {
		t.Error(err)
	}
	if _, err := b.Survey(t.Context(), id, "nosuch", 0); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
}

// A replica goes on to index vectors while a message stops it.
func TestIndexWhileStopped(t *testing.T) {
	b := newBed(t)
	b.op(wire.Op{Kind: wire.CreateCollection, Collection: "c",
		Schema: &db.Schema{Modalities: []db.Modality{{Name: "image", Dim: 4}}}})
	op := wire.Op{Kind: wire.Write}
	for i := range 300 {
		op.Changes = append(op.Changes, wire.Change{Collection: "c", Kind: wire.Put,
			Item: wire.ItemOf(&db.Item{Key: fmt.Sprint(i),
				Vectors: map[string][]float32{"image": {float32(i), 1, float32(i % 7), 2}}})})
	}
	b.has(300, b.op(op))
	b.config.Turns <- struct{}{} // another replica of the node is at it
	seq := b.op(wire.Op{Kind: wire.IndexVectors, Collection: "c", Modality: "image", Recall: .9})
	m, err := (&wire.Op{ID: wire.NewID(), Kind: wire.DropCollection, Collection: "x"}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	m[4]++ // the version, behind a right checksum
	binary.BigEndian.PutUint64(m[5:], xxhash.Sum64(m[13:])+uint64(m[4]))
	if _, _, err := b.log.Append(t.Context(), "newer", journal.Control, m, ""); err != nil {
		t.Fatal(err)
	}
	b.eventually(func() bool { return b.Status().Stopped == seq+1 },
		func() string { return b.Status().Problem })
	<-b.config.Turns
	b.eventually(func() bool {
		a := b.Answer(t.Context(), &wire.Request{Verb: wire.Describe, Collection: "c", From: seq, Wait: 1000})
		return a.Fault == nil && len(a.About.Indexes) == 1 && a.About.Indexes[0].Complete
	}, func() string { return b.Status().Problem })
}
