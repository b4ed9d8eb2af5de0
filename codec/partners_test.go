package codec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	_ "github.com/fddhdb/fddhdb/internal/seed"
)

// partnersByDefinition is the oracle.
func partnersByDefinition(query uint16, values []uint16, ids, from, to []uint32, least, most int) []uint32 {
	found := []uint32{}
	for i := range from {
		for p := from[i]; p < to[i]; p++ {
			d := 0
			for b := range 16 {
				d += int((values[p] ^ query) >> b & 1)
			}
			switch {
			case d < least || d > most:
			case ids == nil:
				found = append(found, p)
			default:
				found = append(found, ids[p])
			}
		}
	}
	return found
}

func TestPartnersAgree(t *testing.T) {
	for _, k := range sets {
		t.Run(k.String(), func(t *testing.T) {
			useSet(t, k)
			rapid.Check(t, func(t *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				values := make([]uint16, rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 400)).Draw(t,
					"values"))
				ids := make([]uint32, len(values))
				query := uint16(rng.Uint32())
				for i := range values {
					values[i] = query ^ uint16(rng.Uint32()&rng.Uint32()&-(rng.Uint32()&1))
					ids[i] = rng.Uint32()
				}
				from, to := make([]uint32, rapid.IntRange(0, 40).Draw(t, "ranges")), []uint32{}
				entries := 0
				for i := range from {
					from[i] = rng.Uint32N(uint32(len(values)) + 1)
					to = append(to, from[i]+rng.Uint32N(min(uint32(len(values))-from[i], 100)+1))
					entries += int(to[i] - from[i])
				}
				if rng.IntN(2) == 0 {
					ids = nil
				}
				least, most := rapid.IntRange(-2, 18).Draw(t, "least"), rapid.IntRange(-2, 18).Draw(t, "most")
				dst := make([]uint32, entries+PartnersRoom)
				found := Partners(dst, query, values, ids, from, to, least, most)
				if want := partnersByDefinition(query, values, ids, from, to, least, most); !slices.Equal(
					dst[:found], want) {
					t.Fatalf("%d to %d: found %v, want %v", least, most, dst[:found], want)
				}
			})
		})
	}
}

func TestPartnersPanicsOnWrongArguments(t *testing.T) {
	values := make([]uint16, 100)
	for _, k := range sets {
		useSet(t, k)
		for what, f := range map[string]func(){
			"reversed": func() {
				Partners(make([]uint32, 200), 0, values, nil, []uint32{5}, []uint32{4}, 0,
					16)
			},
			"beyond": func() {
				Partners(make([]uint32, 200), 0, values, nil, []uint32{99}, []uint32{101}, 0,
					16)
			},
			"none": func() {
				Partners(make([]uint32, 200), 0, nil, nil, []uint32{0}, []uint32{1}, 0,
					16)
			},
			"too few": func() {
				Partners(make([]uint32, 25), 0, values, nil, []uint32{10}, []uint32{20}, 0,
					16)
			},
			"no room": func() { Partners(nil, 0, values, nil, []uint32{10}, []uint32{20}, 0, 16) },
			"ids": func() {
				Partners(make([]uint32, 200), 0, values, make([]uint32, 99), []uint32{10}, []uint32{20}, 0,
					16)
			},
			"ends": func() { Partners(make([]uint32, 200), 0, values, nil, []uint32{10}, nil, 0, 16) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%v, %s: no panic", k, what)
					}
				}()
				f()
			}()
		}
	}
}

// BenchmarkPartners goes through ranges as long as the lists of random codes, in arrays
// that fit into the caches and in larger ones. There are more ranges than a branch
// predictor can learn.
func BenchmarkPartners(b *testing.B) {
	const length, ranges, step = 30, 50000, 500
	values, ids := make([]uint16, 1<<26), make([]uint32, 1<<26)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range values {
		values[i], ids[i] = uint16(rng.Uint32()), rng.Uint32()
	}
	dst := make([]uint32, step*length*4+PartnersRoom)
	for _, log := range []int{20, 26} {
		var from, to []uint32
		for range ranges {
			n := min(uint32(max(length+math.Sqrt(length)*rng.NormFloat64(), 0)), 4*length)
			at := rng.Uint32N(1<<log - n)
			from, to = append(from, at), append(to, at+n)
		}
		for _, k := range sets {
			for _, most := range []int{2, 4, 5} {
				b.Run(fmt.Sprintf("%v/log=%d/most=%d", k, log, most), func(b *testing.B) {
					useSet(b, k)
					first := 0
					for b.Loop() {
						Partners(dst, 7, values[:1<<log], ids[:1<<log], from[first:first+step],
							to[first:first+step], 0, most)
						first = (first + step) % ranges
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/step/length, "ns/value")
				})
			}
		}
	}
}
