package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/internal/effort"
)

// Large writes wait for elections, as small ones do: what is acknowledged is there, whole, and no replica
// stands still. Elections come while chunks are on their way.
func TestLargeWritesOutlastElections(t *testing.T) {
	h := build(t, 3, 2, 2, 2)
	codes := codesOf(t, h.connect())
	var all sync.WaitGroup
	stop := make(chan struct{})
	all.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(300 * time.Millisecond):
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				_, _ = h.conns["admin"].RequestWithContext(ctx,
					fmt.Sprint("$JS.API.STREAM.LEADER.STEPDOWN.FDDHDB_test_", n%2), nil)
				cancel()
			}
		}
	})
	payload := func(i int) []byte { // three chunks
		return bytes.Repeat(fmt.Append(nil, "payload ", i, " "), 120_000)
	}
	n := effort.Of(200, 40)
	for i := range n {
		_, err := codes.Put(t.Context(),
			&db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 1}, Payload: payload(i)})
		if err != nil {
			t.Fatalf("item %d: %v", i, err)
		}
	}
	close(stop)
	all.Wait()
	for i := range n {
		it, err := codes.Get(t.Context(), fmt.Sprint(i))
		if err != nil || !bytes.Equal(it.Payload, payload(i)) {
			t.Fatalf("item %d: %v", i, err)
		}
	}
	h.inStep(2, n)
}
