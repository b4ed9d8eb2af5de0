package route

import (
	"slices"
	"sync"
	"time"
)

// times are the durations of recent answers.
type times struct {
	mu    sync.Mutex
	last  [256]time.Duration
	n     int           // durations added so far
	after time.Duration // result of late; 0: unknown
}

const (
	leastLate = 2 * time.Millisecond   // so that a jitter does not double all requests
	firstLate = 50 * time.Millisecond  // before any measurement
	mostLate  = 300 * time.Millisecond // so that a second replica is asked in time
)

func (t *times) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last[t.n%len(t.last)] = took
	if t.n++; t.n%32 == 0 {
		some := slices.Clone(t.last[:min(t.n, len(t.last))])
		slices.Sort(some)
		t.after = min(max(some[len(some)*19/20], leastLate), mostLate)
	}
}

// late returns the duration within which nineteen of twenty answers come.
func (t *times) late() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.after == 0 {
		return firstLate
	}
	return t.after
}
