package mih

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// BenchmarkNearest compares the plans of k-NN searches with each other and with a plain
// scan of all items' codes, the tier fullscan of fddhdb bench. Half of the queries are
// perturbed members of the set, half are fresh. The plans take turns, so that all of
// them meet the same machine. It reports microseconds of finding the codes, without
// rows and keys:
//
//	go test ./mih -run '^$' -bench Nearest -benchtime 5x
func BenchmarkNearest(b *testing.B) {
	for _, n := range []int{200_000, 1_000_000} {
		for _, q := range []int{64, 128} {
			for _, set := range synth.CodeSets() {
				b.Run(fmt.Sprintf("codes=%d/bits=%d/%v", n, q, set),
					func(b *testing.B) { benchNearest(b, set, q, n) })
			}
		}
	}
}

func benchNearest(b *testing.B, set synth.CodeSet, q, n int) {
	const queries, turn = 400, 50
	codes, err := synth.Codes(set, q, n, 1)
	if err != nil {
		b.Fatal(err)
	}
	members, fresh, err := synth.CodeQueries(set, q, n, queries, 1)
	if err != nil {
		b.Fatal(err)
	}
	table, full := loadedItems(b, codes), newPlainScan(codes)
	query := func(i int) codec.Code {
		if i%2 == 0 {
			return members.At(i)
		}
		return fresh.At(i)
	}
	ways := []string{"full", "auto", "scan", "memory"}
	plans := []Plan{0, PlanAuto, PlanScan, PlanMemory}
	for _, k := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("k=%d", k), func(b *testing.B) {
			times := make([][queries][]float64, len(ways))
			var found []codec.Near
			ask := func(way, i int) {
				if way == 0 {
					full.nearest(query(i), k)
				} else if found, err = table.Nearest(ctx, &Query{Code: query(i), Plan: plans[way]}, k,
					found[:0], nil); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				for from := 0; from < queries; from += turn {
					for way := range ways {
						for i := range turn / 2 { // bring the data of this way into the caches
							ask(way, (from+queries-turn/2+i)%queries)
						}
						for i := from; i < from+turn; i++ {
							start := time.Now()
							ask(way, i)
							times[way][i] = append(times[way][i], float64(time.Since(start))/1000)
						}
					}
				}
			}
			b.ReportMetric(0, "ns/op") // of no interest
			for way, name := range ways {
				// The median of each query leaves out interruptions.
				var medians []float64
				for _, t := range times[way] {
					slices.Sort(t)
					medians = append(medians, t[len(t)/2])
				}
				slices.Sort(medians)
				b.ReportMetric(medians[queries/2], name+"-p50")
				b.ReportMetric(medians[queries*99/100], name+"-p99")
			}
		})
	}
}

// loadedItems returns a table of all codes: item i is row i.
func loadedItems(b testing.TB, codes codec.Codes) *Table { return writerOf(b, codes).Publish() }

// writerOf returns a writer with all codes.
func writerOf(b testing.TB, codes codec.Codes) *Writer {
	w, seen := NewWriter(codes.Bits()), map[string]uint32{}
	unique := codec.NewCodes(codes.Bits(), codes.Len())
	var numbers, of []uint32
	for i := range codes.Len() {
		key := string(codes.At(i).AppendBytes(nil, codes.Bits()))
		n, ok := seen[key]
		if !ok {
			n = uint32(len(numbers))
			seen[key], numbers = n, append(numbers, n)
			unique.Append(codes.At(i))
		}
		of = append(of, n)
	}
	if err := w.Load(ctx, numbers, unique, uint32(len(numbers)), false); err != nil {
		b.Fatal(err)
	}
	for row, n := range of {
		w.Add(n, uint32(row))
	}
	return w
}

// A plainScan reads the codes of all items, one after the other, as the tier fullscan
// of fddhdb bench does.
type plainScan struct {
	codes  codec.Codes
	block  []codec.Near
	found  []codec.Near
	counts []int
	sorted []codec.Near
}

func newPlainScan(codes codec.Codes) *plainScan {
	return &plainScan{codes: codes, block: make([]codec.Near, scanBlock), counts: make([]int, codes.Bits()+2)}
}

// plainHit has the size of a hit of package db.
type plainHit struct {
	_        string // key
	row      uint32
	distance int
	score    float64
}

func (f *plainScan) nearest(query codec.Code, k int) []plainHit {
	f.found = f.found[:0]
	clear(f.counts)
	n, bound, count := f.codes.Len(), f.codes.Bits(), 0
	for from := 0; from < n; {
		to := min(from+min(max(from, 64), scanBlock), n)
		r := bound
		if count >= k {
			r--
		}
		for _, x := range f.block[:codec.Within(f.block, query, f.codes.Slice(from, to), max(r, 0),
			uint32(from))] {
			if d := x.Distance(); d <= r {
				f.counts[d]++
				count++
				f.found = append(f.found, x)
			}
		}
		for count-f.counts[bound] >= k {
			count -= f.counts[bound]
			bound--
		}
		if len(f.found) > 4*k+scanBlock {
			count = f.prune(bound, count, k)
		}
		from = to
	}
	f.prune(bound, count, k)
	f.sorted = appendByDistance(f.sorted[:0], f.found, f.codes.Bits())
	hits := make([]plainHit, len(f.sorted))
	for i, x := range f.sorted {
		hits[i] = plainHit{row: x.Position(), distance: x.Distance(), score: math.NaN()}
	}
	return hits
}

func (f *plainScan) prune(bound, count, k int) int {
	spare := max(count-k, 0)
	atBound := f.counts[bound] - spare
	f.counts[bound] = atBound
	f.found = slices.DeleteFunc(f.found, func(x codec.Near) bool {
		d := x.Distance()
		if d == bound {
			atBound--
		}
		return d > bound || d == bound && atBound < 0
	})
	return count - spare
}
