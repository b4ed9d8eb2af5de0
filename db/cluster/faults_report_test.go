//go:build unix

package cluster_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
)

// report logs what a run has measured. Nothing of it fails a test.
func (s *site) report(ops []checker.Op, faults []checker.Fault, sessions []*session) {
	results, kinds := map[string]int{}, map[string]int{}
	shown := 0
	for i := range ops {
		o := &ops[i]
		results[fmt.Sprintf("%v %v", o.Kind, o.Result)]++
		if o.Result == checker.Failed || o.Result == checker.Unknown {
			hurry := ""
			if !o.Patient {
				hurry = " (impatient)"
			}
			if o.Patient && shown < 10 {
				shown++
				s.t.Logf("  unanswered: %v", o)
			}
			kinds[o.Kind.String()+" "+o.Result.String()+": "+o.Cause+hurry]++
		}
	}
	s.t.Logf("%d operations in %d faults", len(ops), len(faults))
	for _, what := range slices.Sorted(maps.Keys(results)) {
		s.t.Logf("  %-18s %6d", what, results[what])
	}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		s.t.Logf("  %6d  %s", kinds[what], what)
	}
	begin := time.Duration(1 << 62)
	if len(faults) > 0 {
		begin = faults[0].Begin
	}
	isWrite := func(o *checker.Op) bool { return o.Kind.Writes() }
	isGet := func(o *checker.Op) bool { return o.Kind == checker.Get }
	isSearch := func(o *checker.Op) bool { return o.Kind == checker.Search }
	for _, m := range []struct {
		what string
		is   func(*checker.Op) bool
	}{{"writes", isWrite}, {"gets", isGet}, {"searches", isSearch}} {
		s.t.Logf("  %-9s before faults %s, during %s", m.what, times(ops, m.is, 0, begin),
			times(ops, m.is, begin, 1<<62))
	}
	for _, f := range faults {
		if strings.HasSuffix(f.What, measured) {
			s.t.Logf("  %s: %v without a search, %v without a write to a shard", f.What,
				gap(ops, f, searches), gap(ops, f, writesByShard))
		}
	}
	for _, most := range []struct {
		what  string
		track func(*checker.Op) int
	}{{"a search", searches}, {"a write to a shard", writesByShard}} {
		var longest time.Duration
		var at checker.Fault
		for _, f := range faults {
			if g := gap(ops, f, most.track); g > longest {
				longest, at = g, f
			}
		}
		var with []string
		for _, f := range faults {
			if f.Begin < at.End && at.Begin < f.End {
				with = append(with, f.What)
			}
		}
		s.t.Logf("  without %s: at most %v, at: %s", most.what, longest, strings.Join(with, "; "))
	}
	for _, n := range s.nodes {
		s.t.Logf("  node %s warns: %v", n.config.Node, warnings(n.log))
	}
	for _, one := range sessions {
		s.t.Logf("  session %d: %+v", one.number, one.client.Figures())
	}
}

// times says how long operations took that were answered.
func times(ops []checker.Op, is func(*checker.Op) bool, from, to time.Duration) string {
	var took []time.Duration
	for i := range ops {
		if o := &ops[i]; is(o) && o.Begin >= from && o.Begin < to &&
			(o.Result == checker.OK || o.Result == checker.Refused) {
			took = append(took, o.End-o.Begin)
		}
	}
	if len(took) == 0 {
		return "none"
	}
	slices.Sort(took)
	at := func(p int) time.Duration { return took[(len(took)-1)*p/100].Round(10 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v, most %v", at(50), at(99), at(100))
}

// searches says which operations are answers to the probe's searches, in a track; -1: it is none.
func searches(o *checker.Op) int {
	if o.Session == 0 && o.Kind == checker.Search {
		return 0
	}
	return -1
}

// writesByShard says which operations are writes of the probe, in a track for each shard.
func writesByShard(o *checker.Op) int {
	if o.Session == 0 && o.Kind.Writes() {
		return shardOfKey(o.Key)
	}
	return -1
}

// gap returns the longest time between two answers of a track around a fault.
func gap(ops []checker.Op, f checker.Fault, track func(*checker.Op) int) (most time.Duration) {
	ends := make([][]time.Duration, siteShards)
	for i := range ops {
		o := &ops[i]
		if k := track(o); k >= 0 && o.Result == checker.OK && o.End > f.Begin-time.Minute &&
			o.End < f.End+time.Minute {
			ends[k] = append(ends[k], o.End)
		}
	}
	for _, e := range ends {
		slices.Sort(e)
		for i := 1; i < len(e); i++ {
			if e[i] > f.Begin && e[i-1] < f.End {
				most = max(most, e[i]-e[i-1])
			}
		}
	}
	return most.Round(time.Millisecond)
}

// numbers are what differs between two warnings of one kind.
var numbers = regexp.MustCompile(`[0-9]+`)

// warnings counts the errors that a node has logged, by their text without numbers.
func warnings(file string) map[string]int {
	b, err := os.ReadFile(file)
	if err != nil {
		return map[string]int{err.Error(): 1}
	}
	all := map[string]int{}
	for line := range strings.Lines(string(b)) {
		if !strings.Contains(line, "level=WARN") && !strings.Contains(line, "level=ERROR") &&
			strings.HasPrefix(line, "time=") {
			continue
		}
		if _, text, ok := strings.Cut(line, "error="); ok {
			line = text
		}
		line, _, _ = strings.Cut(line, " again_in=")
		line = numbers.ReplaceAllString(strings.TrimSpace(line), "N")
		all[line[:min(len(line), 150)]]++
	}
	return all
}
