package mih

import (
	"context"
	"errors"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// naive finds by definition, sharing no code with an index.
func naive(codes [][]byte, query []byte, keep func(i, d int) bool) []Match {
	var out []Match
	for i, c := range codes {
		d := 0
		for j := range c {
			d += bits.OnesCount8(c[j] ^ query[j])
		}
		if keep(i, d) {
			out = append(out, Match{uint32(i), uint16(d)})
		}
	}
	slices.SortStableFunc(out, func(a, b Match) int { return int(a.Distance) - int(b.Distance) })
	return out
}

func randomCodes(rng *rand.Rand, q, n int) (*Table, [][]byte) {
	w := NewWriter(q, n)
	var all [][]byte
	for range n {
		b := make([]byte, q/8)
		for j := range b {
			x := rng.Uint32() // zeros are more likely, so that codes are near each other
			b[j] = byte(x) & byte(x>>8)
		}
		c, _ := codec.CodeFromBytes(b)
		if _, isNew, _ := w.Number(c); isNew {
			all = append(all, b)
		}
	}
	return w.Publish(), all
}

func TestScanAgreesWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom([]int{8, 16, 64, 72, 128, 256}).Draw(t, "bits")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		table, codes := randomCodes(rng, q, rapid.IntRange(0, 300).Draw(t, "n"))
		query := make([]byte, q/8)
		for j := range query {
			query[j] = byte(rng.Uint32())
		}
		qc, _ := codec.CodeFromBytes(query)
		s := NewScan(table)

		r := rapid.IntRange(0, q).Draw(t, "radius")
		prefix := []Match{{7, 7}}
		got, err := s.Radius(context.Background(), qc, r, prefix)
		if err != nil {
			t.Fatal(err)
		}
		want := naive(codes, query, func(_, d int) bool { return d <= r })
		if !slices.Equal(got, append(prefix, want...)) {
			t.Fatalf("radius %d: got %v, want %v", r, got, want)
		}

		weights := make([]int, len(codes))
		for i := range weights {
			weights[i] = rng.IntN(4) * rng.IntN(2)
		}
		k := rapid.IntRange(0, 500).Draw(t, "k")
		all := naive(codes, query, func(i, _ int) bool { return weights[i] > 0 })
		total, last := 0, -1
		want = nil
		for _, m := range all {
			if total >= k && int(m.Distance) > last {
				break
			}
			want, total, last = append(want, m), total+weights[m.Code], int(m.Distance)
		}
		if k == 0 {
			want = nil
		}
		got, err = s.Nearest(context.Background(), qc, k, func(c uint32) int { return weights[c] }, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("k = %d: got %v, want %v", k, got, want)
		}
	})
}

func TestScanStopsWhenCancelled(t *testing.T) {
	table, _ := randomCodes(rand.New(rand.NewPCG(1, 1)), 64, 100)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s := NewScan(table)
	if _, err := s.Radius(ctx, codec.NewCode(64), 3, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Radius: %v", err)
	}
	if _, err := s.Nearest(ctx, codec.NewCode(64), 3, table.Cardinality, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Nearest: %v", err)
	}
}
