//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/cluster/internal/netproxy"
	"github.com/fddhdb/fddhdb/db/cluster/internal/wire"
)

// A client is cut off when its write is in the log, and comes back when so much has been written that nobody
// remembers the write. It is not written again, over what others have written since: the client is told that
// nobody knows.
func TestForgotten(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 65,536 messages")
	}
	s := newSite(t)
	h := checker.NewHistory()
	late := &atomic.Int64{}
	one := &session{t: t, number: 0, client: s.connect("c0"), history: h, late: late,
		held: map[string]*db.Item{}}
	one.codes = faultCodes(t, one.client)
	two := &session{t: t, number: 1, client: s.connect("c1"), history: h, late: late,
		held: map[string]*db.Item{}}
	two.codes = faultCodes(t, two.client)
	key := keyOf("k0", 0)
	log, _ := s.journal(0)
	before, _ := log.Info(t.Context())
	for _, n := range s.nodes {
		n.pause()
	}
	done := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Second)
		defer cancel()
		_, err := one.codes.Put(ctx, faultItem(key, "s0-1"))
		done <- err
	}()
	for {
		now, _ := log.Info(t.Context())
		if now.Last > before.Last {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(300 * time.Millisecond)
	s.through("c0", -1, (*netproxy.Proxy).Reset)
	for _, n := range s.nodes {
		n.resume()
	}
	// somebody else writes the same key
	if _, err := two.codes.Put(t.Context(), faultItem(key, "s1-1")); err != nil {
		t.Fatal(err)
	}
	js, err := jetstream.New(s.admin, jetstream.WithPublishAsyncMaxPending(512))
	if err != nil {
		t.Fatal(err)
	}
	for i := range wire.Memory {
		op := wire.Op{ID: wire.NewID(), Kind: wire.Write, Base: before.Last + uint64(i),
			Changes: []wire.Change{{Collection: "codes", Kind: wire.Put,
				Item: wire.ItemOf(faultItem(keyOf("fill", 0), fmt.Sprint("f", i)))}}}
		b, _ := op.Encode()
		if _, err := js.PublishAsync("fddhdb.test.log.0", b,
			jetstream.WithStallWait(30*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	<-js.PublishAsyncComplete()
	s.settle(t.Context())
	s.through("c0", -1, (*netproxy.Proxy).Heal)
	if err := <-done; !errors.Is(err, cluster.ErrUnknown) {
		t.Error("the write that nobody remembers:", err)
	}
	s.settle(t.Context())
	if it, err := two.codes.Get(t.Context(), key); err != nil || valueOf(it) != "s1-1" {
		t.Errorf("what was written since is %+v, %v", it, err)
	}
}
