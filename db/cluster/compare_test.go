package cluster_test

import (
	"context"
	"encoding/binary"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// Replicas are compared beside writes. One that differs is named, and made again of another one.
func TestCompareAndRebuild(t *testing.T) {
	h := build(t, 1, 3, 2, 3)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 400)
	compare := func() *cluster.Comparison {
		t.Helper()
		found, err := c.Compare(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	var next atomic.Int64
	beside(t, func(context.Context) error {
		n := 400 + int(next.Add(1))
		putSome(t, c, n, n+1)
		return nil
	}, func() {
		for range 10 {
			if found := compare(); len(found.Differences) > 0 || len(found.Nodes) != 3 ||
				len(found.Left) > 0 {
				t.Fatalf("%+v", found)
			}
		}
	})
	h.leave("n1")
	d, err := db.Open(filepath.Join(h.dir, "n1", "shard-0001"), &db.Options{NoResume: true})
	if err != nil {
		t.Fatal(err)
	}
	codes, err := d.Collection("codes")
	if err != nil {
		t.Fatal(err)
	}
	for it, err := range codes.Items(t.Context(), "") {
		if err == nil {
			it.Labels = []string{"forged"}
			_, err = codes.Put(t.Context(), it)
		}
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	hasty, err := cluster.Connect(t.Context(), h.conn("client"), "test",
		cluster.ClientOptions{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer hasty.Close()
	away, err := hasty.Compare(t.Context(), 1)
	if err != nil || len(away.Nodes) != 2 || away.Left["n1"] == "" {
		t.Errorf("n1 is away: %+v, %v", away, err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	h.open("n1")
	h.inStep(3, count(t, c))
	found := compare()
	var parts []string
	for _, d := range found.Differences {
		if parts = append(parts, d.Part); len(d.Nodes) != 2 || len(d.Nodes[0]) != 2 ||
			!slices.Equal(d.Nodes[1], []string{"n1"}) {
			t.Errorf("%+v", d)
		}
	}
	if !slices.Equal(parts, []string{`items of "codes"`, `labels of "codes"`}) {
		t.Errorf("%q", parts)
	}
	if err := c.Rebuild(t.Context(), 1, "n7", nil); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	beside(t, func(context.Context) error {
		n := 400 + int(next.Add(1))
		putSome(t, c, n, n+100)
		return nil
	}, func() {
		for i := range 3 {
			if err := c.Rebuild(t.Context(), 1, "n1", nil); err != nil {
				t.Fatal(err)
			}
			left, err := filepath.Glob(filepath.Join(h.dir, "n1", "shard-0001.left-*"))
			if err != nil || len(left) != i+1 {
				t.Fatalf("rebuilt %d times, moved aside %q, %v", i+1, left, err)
			}
		}
	})
	if found := compare(); len(found.Differences) > 0 || len(found.Nodes) != 3 {
		t.Errorf("%+v", found)
	}
	h.inStep(3, count(t, c))
}

// A message that no replica can apply stops its shard, until an operator skips it: on replicas that run, and
// on those that begin later.
func TestSkip(t *testing.T) {
	h := build(t, 1, 2, 1, 2)
	c := h.connect()
	codes := codesOf(t, c)
	putSome(t, c, 0, 10)
	if _, err := c.Stopped(t.Context(), 0); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	b, err := (&wire.Op{ID: wire.NewID(), Kind: wire.Write}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b[4]++ // the version, which the checksum behind it counts
	binary.BigEndian.PutUint64(b[5:], binary.BigEndian.Uint64(b[5:])+1)
	js, err := jetstream.New(h.conn("somebody"))
	if err != nil {
		t.Fatal(err)
	}
	ack, err := js.Publish(t.Context(), "fddhdb.test.log.0", b)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := codes.Put(ctx, &db.Item{Key: "x", Code: []byte{1, 2}}); !errors.Is(err, cluster.ErrUnknown) {
		t.Error(err)
	}
	var stop *cluster.Stop
	eventually(t, "all replicas stand still", func() bool {
		stop, err = c.Stopped(t.Context(), 0)
		return err == nil
	})
	if stop.Seq != ack.Sequence || !strings.Contains(stop.Problem, "another version") ||
		!strings.Contains(stop.Message, "cannot read") {
		t.Errorf("%+v", stop)
	}
	if err := c.Skip(t.Context(), stop); err != nil {
		t.Fatal(err)
	}
	putSome(t, c, 20, 30)
	h.inStep(2, 21) // with x, which came behind it
	h.leave("n0")
	h.open("n0")
	h.open("n2")
	if err := c.Move(t.Context(), 0, "n1", "n2", nil); err != nil { // begins with the first message
		t.Fatal(err)
	}
	h.leave("n1")
	putSome(t, c, 30, 40)
	h.inStep(2, 31)
	found, err := c.Compare(t.Context(), 0)
	if err != nil || len(found.Differences) > 0 || len(found.Nodes) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}
