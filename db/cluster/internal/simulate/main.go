// Simulate tells how long searches of many shards take, and how many cores they need. It measures searches of
// one shard of that size on this machine, and simulates delays and failures. docs/SCALE.md has the
// assumptions.
//
//	go run ./internal/simulate -codes 15625000 -shards 64
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(2)
	}
}

// A site is the simulated system. Times are in seconds.
type site struct {
	shards   int
	queries  int
	trip     [2]float64 // round trips: their median, and the time that 99 of 100 take at most
	straggle float64    // share of slow answers
	factor   float64    // their slowdown
	pause    float64    // share of answers that wait because their node is busy otherwise
	paused   float64    // their longest wait
	rate     float64    // queries a second
	busy     float64    // share of its time that a core may be busy
}

// An outcome is how long queries took, and their cost.
type outcome struct {
	p50, p99, p999 float64
	asked          float64 // requests a query and shard
}

// run simulates queries. Each asks all shards, and waits for the last of them. hedge is the delay before a
// second replica is asked, whose answer counts if it comes first; 0: none is asked.
func (s *site) run(r *rand.Rand, service []float64, hedge float64) outcome {
	times := make([]float64, s.queries)
	asked := 0
	for i := range times {
		for range s.shards {
			asked++
			took := s.one(r, service)
			if hedge > 0 && took > hedge {
				asked++
				took = min(took, hedge+s.one(r, service))
			}
			times[i] = max(times[i], took)
		}
	}
	slices.Sort(times)
	at := func(q float64) float64 { return times[min(int(q*float64(len(times))), len(times)-1)] }
	return outcome{at(.5), at(.99), at(.999), float64(asked) / float64(s.queries*s.shards)}
}

// one draws the duration of one answer.
func (s *site) one(r *rand.Rand, service []float64) float64 {
	// A log-normal distribution of trips has these two quantiles; 2.326 is the normal quantile of .99.
	sigma := math.Log(s.trip[1]/s.trip[0]) / 2.326
	took := s.trip[0] * math.Exp(sigma*r.NormFloat64())
	serve := service[r.IntN(len(service))]
	if r.Float64() < s.straggle {
		serve *= s.factor
	}
	if r.Float64() < s.pause {
		took += s.paused * r.Float64()
	}
	return took + serve
}

// after returns the delay before a second replica is asked: nineteen of twenty answers have come by then.
func (s *site) after(r *rand.Rand, service []float64) float64 {
	times := make([]float64, 20_000)
	for i := range times {
		times[i] = s.one(r, service)
	}
	slices.Sort(times)
	return max(times[len(times)*19/20], .002) // as package route does
}

func command(args []string, out io.Writer) error {
	f := flag.NewFlagSet("simulate", flag.ContinueOnError)
	s := site{trip: [2]float64{.00021, .00065}}
	codes := f.Int("codes", 1_000_000, "`N` codes of a shard, that searches are measured with")
	k := f.Int("k", 10, "`N` hits of a search")
	f.IntVar(&s.shards, "shards", 64, "`N` shards that a query asks")
	f.IntVar(&s.queries, "queries", 20_000, "`N` queries to simulate")
	f.Float64Var(&s.straggle, "straggle", .01, "`PART` of the answers that take longer")
	f.Float64Var(&s.factor, "factor", 10, "by which `FACTOR`")
	f.Float64Var(&s.pause, "pause", .0005, "`PART` of the answers that wait for something else on their node")
	f.Float64Var(&s.paused, "paused", .2, "for how many `SECONDS` at most")
	f.Float64Var(&s.rate, "rate", 1000, "`N` queries a second")
	f.Float64Var(&s.busy, "busy", .5, "`PART` of its time that a core may be busy")
	seed := f.Uint64("seed", 1, "where randomness begins")
	if err := f.Parse(args); err != nil {
		return err
	}
	if s.shards < 1 || s.queries < 1 || *codes < 1 || *k < 1 || s.busy <= 0 || f.NArg() > 0 {
		return errors.New("shards, queries, codes and k are 1 or more, busy is more than 0, and there are no arguments")
	}
	begin := time.Now()
	service, err := measure(*codes, *k)
	if err != nil {
		return err
	}
	r := rand.New(rand.NewPCG(*seed, 1))
	mean := 0.0
	for _, x := range service {
		mean += x / float64(len(service))
	}
	slices.Sort(service)
	fmt.Fprintf(out, "one shard of %d codes: a search takes %.0f us, 99 of 100 less than %.0f us (%d searches; all took %.0f s)\n",
		*codes, 1e6*service[len(service)/2], 1e6*service[len(service)*99/100], len(service),
		time.Since(begin).Seconds())
	after := s.after(r, service)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d codes in %d shards\tp50 ms\tp99 ms\tp99.9 ms\trequests\tcores at %.0f a second\t\n",
		*codes*s.shards, s.shards, s.rate)
	for _, x := range []struct {
		what  string
		hedge float64
	}{{"one replica asked", 0}, {fmt.Sprintf("a second after %.1f ms", 1e3*after), after}} {
		o := s.run(r, service, x.hedge)
		cores := s.rate * float64(s.shards) * o.asked * mean * (1 + s.straggle*(s.factor-1)) / s.busy
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t%.3f\t%.1f\t\n", x.what, 1e3*o.p50, 1e3*o.p99, 1e3*o.p999,
			o.asked, cores)
	}
	return w.Flush()
}
