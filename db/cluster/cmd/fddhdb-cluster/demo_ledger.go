package main

import (
	"slices"
	"sync"
	"time"
)

// A ledger notes the durations of searches and writes, and the errors, by phase. Its methods may be called
// from any goroutine.
type ledger struct {
	mu       sync.Mutex
	phase    *phase
	second   phase // since the last line
	failures int
	errors   []string // the first few
	wrongs   int
	whys     []string // the first few
	lastRead time.Time
	lastWrit []time.Time // by shard: when the last write ended
	lastSent []time.Time // by shard: when that write began
}

// A phase has the times of the searches and writes that ended in it.
type phase struct {
	searches, writes   []time.Duration
	searchGap, writGap time.Duration // the longest time without the end of a search, or of a write to one shard
}

func newLedger() *ledger {
	return &ledger{phase: &phase{}, lastWrit: make([]time.Time, demoShards), lastSent: make([]time.Time, demoShards)}
}

func (l *ledger) begin() *phase {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.phase = &phase{}
	return l.phase
}

func (l *ledger) searched(begin, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range []*phase{l.phase, &l.second} {
		p.searches = append(p.searches, end.Sub(begin))
	}
	if !l.lastRead.IsZero() {
		l.phase.searchGap = max(l.phase.searchGap, end.Sub(l.lastRead))
	}
	l.lastRead = end
}

func (l *ledger) wrote(shard int, begin, end time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range []*phase{l.phase, &l.second} {
		p.writes = append(p.writes, end.Sub(begin))
	}
	if last := l.lastWrit[shard]; !last.IsZero() {
		l.phase.writGap = max(l.phase.writGap, end.Sub(last))
	}
	l.lastWrit[shard], l.lastSent[shard] = end, begin
}

// most bounds the errors and wrong answers that are shown.
const most = 5

func (l *ledger) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures++; l.failures <= most {
		l.errors = append(l.errors, message(err))
	}
}

// wrong counts a wrong answer; note only keeps the reason.
func (l *ledger) wrong(why string) {
	l.note(why)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongs++
}

func (l *ledger) note(why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.whys) < most {
		l.whys = append(l.whys, why)
	}
}

// flowing reports whether every shard has taken a write that was sent since a time.
func (l *ledger) flowing(since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !slices.ContainsFunc(l.lastSent, func(t time.Time) bool { return t.Before(since) })
}

// A beat sums up the time since the last one.
type beat struct {
	searches, writes int
	searchMS, writMS float64 // p99
	waiting          []int   // shards that have taken no write for half a second
}

func (l *ledger) beat() beat {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := beat{searches: len(l.second.searches), writes: len(l.second.writes), searchMS: percentile(l.second.searches, .99), writMS: percentile(l.second.writes, .99)}
	for shard, t := range l.lastWrit {
		if !t.IsZero() && time.Since(t) > 500*time.Millisecond {
			b.waiting = append(b.waiting, shard)
		}
	}
	l.second = phase{}
	return b
}

// percentile returns the duration that the given part of all does not exceed, in milliseconds.
func percentile(all []time.Duration, part float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	return ms(sorted[min(len(sorted)-1, int(part*float64(len(sorted))))])
}

// ms returns a duration in milliseconds, with three decimals.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// A phaseJSON is a phase in demo --json. Fields without write in their names are about searches.
type phaseJSON struct {
	Searches    int     `json:"searches"`
	P50MS       float64 `json:"p50_ms"`
	P99MS       float64 `json:"p99_ms"`
	LongestMS   float64 `json:"longest_gap_ms"` // without the end of a search
	Writes      int     `json:"writes"`
	WriteP50MS  float64 `json:"write_p50_ms"`
	WriteP99MS  float64 `json:"write_p99_ms"`
	WriteLongMS float64 `json:"write_longest_gap_ms"` // of one shard, without the end of a write
}

func (l *ledger) json(p *phase) phaseJSON {
	l.mu.Lock()
	defer l.mu.Unlock()
	return phaseJSON{
		len(p.searches), percentile(p.searches, .5), percentile(p.searches, .99), ms(p.searchGap),
		len(p.writes), percentile(p.writes, .5), percentile(p.writes, .99), ms(p.writGap),
	}
}
