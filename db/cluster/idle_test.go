package cluster_test

import (
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// Idle replicas say and ask little: what a cluster costs is what is done with it.
func TestIdleReplicasAreQuiet(t *testing.T) {
	effort.Slow(t)
	h := buildLogs(t, 1, 2, 64, 2, 1<<20)
	c := h.connect()
	codesOf(t, c)
	time.Sleep(40 * time.Second) // a replica that has nothing to do asks ever less
	messages := func() (n uint64) {
		for node := range h.nodes {
			s := h.conns[node].Stats()
			n += s.InMsgs + s.OutMsgs
		}
		return n
	}
	before, begin := messages(), time.Now()
	time.Sleep(20 * time.Second)
	perSecond := float64(messages()-before) / time.Since(begin).Seconds()
	t.Logf("%.0f messages a second", perSecond)
	if perSecond > 100 { // sent and received
		t.Errorf("%.0f messages a second of 64 idle shards of 2", perSecond)
	}
}
