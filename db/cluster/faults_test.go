//go:build unix

package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/checker"
	"github.com/fddhdb/fddhdb/db/shard"
)

var (
	faultsFor  = flag.Duration("faults-for", 12*time.Second, "how long a run of TestFaults breaks things")
	faultsRuns = flag.Int("faults-runs", 1,
		"how many runs of TestFaults there are, each with the seed after the one before")
	faultsKeep = flag.Bool("faults-keep", false,
		"keep the folders of TestFaults, with the logs of all processes, also if nothing is wrong")
	faultsOnly = flag.String("faults-only", "",
		"faults of TestFaults whose names contain this, alone; all if empty")
	faultsSeed = flag.String("seed", "1",
		"`N`, where the schedules of TestFaults begin, or new, a seed of its own for this run")
)

// elections is for how long after a fault errors are no surprise: NATS has a new leader after 4 to 10
// seconds.
const elections = 15 * time.Second

// Nodes, servers and the connections between them break and mend while clients write and read. Whatever they
// are told agrees with the logs in the end, and the replicas are equal. Clocks jump where it is built with
// the tag skew, see internal/skew. What kill -9 leaves is not what a power failure leaves: the cache of the
// operating system survives.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	first, err := strconv.ParseUint(*faultsSeed, 10, 64)
	if *faultsSeed == "new" {
		first, err = uint64(rand.Uint32()), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range *faultsRuns {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			// its cleanups come before the look for goroutines
			t.Run("run", func(t *testing.T) { runFaults(t, seed, *faultsFor) })
		})
	}
}

func runFaults(t *testing.T, seed uint64, total time.Duration) {
	s := newSite(t)
	history := checker.NewHistory()
	late := &atomic.Int64{}
	var sessions []*session
	slow := 1 + int(total/time.Minute)
	for i, name := range append([]string{"p0"}, clientNames...) {
		one := &session{t: t, number: i, steady: i == 0, slow: slow, client: s.connect(name),
			history: history, late: late, held: map[string]*db.Item{}}
		one.codes = faultCodes(t, one.client)
		sessions = append(sessions, one)
	}
	plan := s.schedule(rand.New(rand.NewPCG(seed, 1)), total)

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var working sync.WaitGroup
	random := func(i uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 100+i)) }
	probe(ctx, &working, sessions[0], random)
	for i, one := range sessions[1:] {
		for k := range 2 {
			working.Go(func() { one.work(ctx, random(uint64(10*i+k)), faultKeys()) })
		}
	}
	hot := sessions[len(sessions)-1]
	for i := range 2 {
		working.Go(func() { // reads of the key that changes most often, one upon the other
			for r := random(uint64(3000 + i)); ctx.Err() == nil; {
				hot.get(ctx, r, keyOf("probe", 0))
				pause(ctx, time.Duration(5*(slow-1))*time.Millisecond)
			}
		})
	}
	working.Go(func() { // an operator makes room
		for ctx.Err() == nil {
			pause(ctx, 5*time.Second)
			call, cancel := context.WithTimeout(ctx, time.Minute)
			_, _ = sessions[0].client.Backup(call, cluster.BackupOptions{Trim: true, Keep: 50})
			cancel()
		}
	})
	faults := s.breakAll(history, plan, total)
	pause(ctx, 2*time.Second) // a last look at what is mended
	stop()
	working.Wait()
	s.finish(history, faults, sessions)
}

// probe measures: one writer for each shard, so that a shard that stands still does not stop the others, and
// one that searches. No fault hits the connections of this client alone.
func probe(ctx context.Context, working *sync.WaitGroup, one *session, random func(i uint64) *rand.Rand) {
	for i := range siteShards {
		working.Go(func() {
			r, key := random(uint64(1000+i)), keyOf("probe", i)
			for ctx.Err() == nil {
				one.write(ctx, r, checker.Put, key, nil)
				pause(ctx, time.Duration(10*one.slow)*time.Millisecond)
			}
		})
	}
	working.Go(func() {
		for r := random(2000); ctx.Err() == nil; pause(ctx, time.Duration(15*one.slow)*time.Millisecond) {
			one.search(ctx, r, checker.Search)
		}
	})
}

// breakAll carries out a schedule, and returns what was broken and when.
func (s *site) breakAll(history *checker.History, plan []planned, total time.Duration) []checker.Fault {
	start := time.Now()
	faults := make([]checker.Fault, len(plan))
	for _, a := range actions(plan) {
		time.Sleep(time.Until(start.Add(a.at)))
		p := plan[a.fault]
		do, verb := p.end, "ends"
		if a.begin {
			do, verb = p.begin, "begins"
			faults[a.fault] = checker.Fault{What: p.what, Begin: history.Now()}
		}
		s.t.Logf("%8.3f s: %s %s", history.Now().Seconds(), p.what, verb)
		if err := do(); err != nil {
			s.t.Errorf("%s %s: %v", p.what, verb, err)
		}
		if !a.begin {
			faults[a.fault].End = history.Now()
		}
		for _, n := range s.nodes {
			if err := n.died(); err != nil {
				s.t.Error(err)
			}
		}
	}
	time.Sleep(time.Until(start.Add(total)))
	return faults
}

// shardOfKey is where a key is.
func shardOfKey(key string) int { return shard.Of(key, siteShards) }
