package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// Large writes wait for elections, as small ones do: what is acknowledged is there, whole, and no replica
// stands still. Elections come while chunks are on their way, of leaders that step down and of servers that
// are restarted one after the other, as for an upgrade.
func TestLargeWritesOutlastElections(t *testing.T) {
	for name, one := range map[string]struct {
		times int
		elect func(ctx context.Context, h *house, n int) error
	}{
		"step-downs": {effort.Of(200, 12), func(ctx context.Context, h *house, n int) error {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(300 * time.Millisecond):
			}
			ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_, _ = h.conns["admin"].RequestWithContext(ctx, // it may have no leader now
				fmt.Sprint("$JS.API.STREAM.LEADER.STEPDOWN.FDDHDB_test_", n%2), nil)
			return nil
		}},
		"restarts": {effort.Of(100, 3), func(ctx context.Context, h *house, n int) error {
			if err := h.servers.End(n % 3); err != nil {
				return err
			}
			if err := h.servers.Restart(n % 3); err != nil {
				return err
			}
			return h.servers.WaitReady(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := buildLogs(t, 3, 2, 2, 2, 1<<30)
			c := h.connect()
			codes := codesOf(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			var ended atomic.Bool
			done := make(chan error, 1)
			go func() {
				defer ended.Store(true)
				for n := range one.times {
					if err := one.elect(ctx, h, n); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
			payload := func(i int) []byte { // three chunks
				return bytes.Repeat(fmt.Append(nil, "payload ", i, " "), 120_000)
			}
			const keys = 100
			n := 0
			for ; !ended.Load(); n++ {
				if n%200 == 199 { // the logs have no room for all
					_, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 30})
					if err != nil {
						t.Errorf("a backup at write %d: %v", n, err)
						break
					}
				}
				_, err := codes.Put(t.Context(),
					&db.Item{Key: fmt.Sprint(n % keys), Code: []byte{byte(n), 1}, Payload: payload(n)})
				if err != nil {
					t.Errorf("write %d: %v", n, err)
					break
				}
			}
			cancel()
			if err := <-done; err != nil && !t.Failed() {
				t.Error(err)
			}
			for i := max(0, n-keys); i < n; i++ {
				it, err := codes.Get(t.Context(), fmt.Sprint(i%keys))
				if err != nil || !bytes.Equal(it.Payload, payload(i)) {
					t.Fatalf("write %d: %v", i, err)
				}
			}
			h.inStep(2, min(n, keys))
			t.Logf("%d writes during %d %s", n, one.times, name)
		})
	}
}

// Create waits for elections, too: servers that have just started hold them, and busy ones hold more.
func TestCreateOutlastsElections(t *testing.T) {
	h := build(t, 3, 2, 1, 2)
	restarted := make(chan error, 1)
	go func() {
		restarted <- func() error {
			for i := range effort.Of(12, 2) {
				if err := h.servers.End(i % 3); err != nil {
					return err
				}
				if err := h.servers.Restart(i % 3); err != nil {
					return err
				}
				if err := h.servers.WaitReady(t.Context()); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	for i := 0; ; i++ {
		err := cluster.Create(t.Context(), h.conn("admin"), fmt.Sprint("more", i), cluster.CreateOptions{
			Shards: 4, Replicas: 2, Nodes: []string{"n0", "n1"}, LogBytes: 1 << 20})
		if err != nil {
			t.Errorf("cluster %d: %v", i, err)
		}
		select {
		case err := <-restarted:
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d clusters", i+1)
			return
		default:
		}
	}
}
