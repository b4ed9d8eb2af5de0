//go:build unix

package cluster_test

import (
	"syscall"
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
	processor := func() time.Duration {
		var r syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	before, worked, begin := messages(), processor(), time.Now()
	time.Sleep(time.Minute)
	took := time.Since(begin).Seconds()
	perSecond := float64(messages()-before) / took
	t.Logf("%.0f messages a second, .%03.0f cores", perSecond, 1000*(processor()-worked).Seconds()/took)
	if perSecond > 50 { // sent and received
		t.Errorf("%.0f messages a second of 64 idle shards of 2", perSecond)
	}
}
