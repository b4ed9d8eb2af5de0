package codec

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func randomCodes(rng *rand.Rand, q, n int) []uint64 {
	codes := make([]uint64, n*Words(q))
	for i := range codes {
		codes[i] = rng.Uint64()
	}
	return codes
}

// benchEachSet reports the nanoseconds of f for each of its codes.
func benchEachSet(b *testing.B, name string, codes int, f func()) {
	for _, k := range sets {
		b.Run(fmt.Sprintf("%s/%s", name, k), func(b *testing.B) {
			useSet(b, k)
			for b.Loop() {
				f()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(codes), "ns/code")
		})
	}
}

// radius is so small that random codes are hardly ever found.
func radius(q int) int {
	if q == 64 {
		return 8
	}
	return q / 16
}

const million = 1 << 20

func BenchmarkDistances(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, q := range []int{64, 128, 256, 1024} {
		const n = 4096
		codes, dst := randomCodes(rng, q, n), make([]uint16, n)
		query := Code(randomCodes(rng, q, 1))
		benchEachSet(b, fmt.Sprint(q), n, func() { Distances(dst, query, codes) })
	}
}

func BenchmarkWithin(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	for _, q := range []int{64, 128, 192, 256, 1024} {
		codes, dst := randomCodes(rng, q, million), make([]Near, million)
		query := Code(randomCodes(rng, q, 1))
		for _, n := range []int{million, 4096, 15} {
			name := fmt.Sprintf("%d/%d", q, n)
			switch n {
			case million:
				name = fmt.Sprintf("%d/1M", q)
			case 4096:
				name = fmt.Sprintf("%d/4k", q)
			}
			part := codes[:n*Words(q)]
			benchEachSet(b, name, n, func() { Within(dst, query, part, radius(q), 0) })
		}
	}
}

// BenchmarkWithinMany finds about 4% of the codes.
func BenchmarkWithinMany(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	const n = 4096
	for _, c := range []struct{ q, r int }{{64, 25}, {128, 54}, {192, 84}, {256, 114}, {1024, 484}} {
		codes, dst := randomCodes(rng, c.q, n), make([]Near, n)
		query := Code(randomCodes(rng, c.q, 1))
		benchEachSet(b, fmt.Sprintf("%d/4k", c.q), n, func() { Within(dst, query, codes, c.r, 0) })
	}
}

func BenchmarkWithinAt(b *testing.B) {
	rng := rand.New(rand.NewPCG(13, 14))
	for _, q := range []int{64, 128, 256, 1024} {
		codes, dst := randomCodes(rng, q, million), make([]Near, million)
		query := Code(randomCodes(rng, q, 1))
		// Many lists, so that their codes are not in the caches.
		const size = 366
		lists := make([][]uint32, 4096)
		for i := range lists {
			lists[i] = make([]uint32, size)
			for j := range lists[i] {
				lists[i][j] = rng.Uint32N(million)
			}
		}
		i := 0
		benchEachSet(b, fmt.Sprint(q), size, func() {
			WithinAt(dst, query, codes, lists[i%len(lists)], radius(q))
			i++
		})
	}
}

func BenchmarkWithinRanges(b *testing.B) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, q := range []int{64, 128, 256} {
		codes, dst := randomCodes(rng, q, million), make([]Near, million)
		query := Code(randomCodes(rng, q, 1))
		for _, n := range []int{188, 2228} {
			type list struct{ from, to []uint32 }
			lists := make([]list, 1<<20/n)
			sum := 0
			for i := range lists {
				for range n {
					from := rng.Uint32N(million - 40)
					// The sum of three, so that most lengths are close to 15.
					size := rng.Uint32N(11) + rng.Uint32N(11) + rng.Uint32N(11)
					lists[i].from = append(lists[i].from, from)
					lists[i].to = append(lists[i].to, from+size)
					sum += int(size)
				}
			}
			i := 0
			benchEachSet(b, fmt.Sprintf("%d/%d", q, n), sum/len(lists), func() {
				l := lists[i%len(lists)]
				WithinRanges(dst, query, codes, l.from, l.to, radius(q))
				i++
			})
		}
	}
}

// BenchmarkWithinEach reports the time for one code and all 8 queries.
func BenchmarkWithinEach(b *testing.B) {
	rng := rand.New(rand.NewPCG(17, 18))
	for _, q := range []int{64, 128, 256} {
		codes := randomCodes(rng, q, million)
		dst, n, r := make([][]Near, 8), make([]int, 8), make([]int, 8)
		queries := make([]Code, 8)
		for j := range queries {
			dst[j], queries[j], r[j] = make([]Near, million), randomCodes(rng, q, 1), radius(q)
		}
		for _, size := range []int{million, 4096} {
			name := map[int]string{million: "1M", 4096: "4k"}[size]
			part := codes[:size*Words(q)]
			benchEachSet(b, fmt.Sprintf("%d/%s", q, name), size,
				func() { WithinEach(dst, n, queries, part, r, 0) })
		}
	}
}
