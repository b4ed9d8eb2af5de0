package mih

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// memoryStore is a Store by definition. It has the codes of an oracle, under numbers
// with gaps.
type memoryStore struct {
	split   Split
	posted  uint32 // codes from this number on are in no posting
	numbers []uint32
	codes   map[uint32][]byte
	weights map[uint32]int
	err     error // of every call from some call on
	left    int
}

func (m *memoryStore) fails() error {
	if m.left--; m.left < 0 {
		return m.err
	}
	return nil
}

func (m *memoryStore) Posting(dst []uint32, j int, value uint32) ([]uint32, error) {
	for _, n := range m.numbers {
		if n < m.posted && m.split.Of(toCode(m.codes[n]), j) == value {
			dst = append(dst, n)
		}
	}
	return dst, m.fails()
}

func (m *memoryStore) Near(_ context.Context, dst []codec.Near, query codec.Code, numbers []uint32,
	r int) ([]codec.Near, error) {
	for i, n := range numbers {
		if i > 0 && numbers[i-1] >= n {
			return dst, errors.New("numbers do not ascend")
		}
		if d := codec.Distance(query, toCode(m.codes[n])); d <= r {
			dst = append(dst, codec.NearOf(d, n))
		}
	}
	return dst, m.fails()
}

func (m *memoryStore) Blocks(first uint32, f func([]uint32, []uint64) error) error {
	at, _ := slices.BinarySearch(m.numbers, first)
	for block := range slices.Chunk(m.numbers[at:], 7) {
		codes := codec.NewCodes(m.split.bits, 0)
		for _, n := range block {
			codes.Append(toCode(m.codes[n]))
		}
		if err := m.fails(); err != nil {
			return err
		}
		if err := f(block, codes.Slice(0, codes.Len())); err != nil {
			return err
		}
	}
	return nil
}

func (m *memoryStore) Weight(n uint32, _ int) (int, error) { return m.weights[n], m.fails() }

// Postings and scans of a store give the answers of the definition. Errors of the store
// come back.
func TestStoredAgreesWithTheDefinition(t *testing.T) {
	broken := errors.New("broken")
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		q := rapid.SampledFrom([]int{8, 16, 24, 40, 72}).Draw(t, "bits")
		m := &memoryStore{
			split: NewSplit(q, rapid.IntRange((q+5)/6, q).Draw(t, "m")),
			codes: map[uint32][]byte{}, weights: map[uint32]int{}, err: broken, left: 1 << 40,
		}
		seen := map[string]bool{}
		for i, b := range sample(rng, q, rapid.IntRange(0, 60).Draw(t, "codes"), 4) {
			if n := uint32(3*i + 1); !seen[string(b)] {
				seen[string(b)] = true
				m.numbers, m.codes[n], m.weights[n] = append(m.numbers, n), b, max(0, rng.IntN(5)-1)
			}
		}
		o := &oracle{q: q}
		query := sample(rng, q, 1, 1)[0]
		if len(m.numbers) > 0 && rng.IntN(3) > 0 {
			query = slices.Clone(m.codes[m.numbers[rng.IntN(len(m.numbers))]])
			query[rng.IntN(len(query))] ^= byte(rng.IntN(8))
		}
		r, k := rapid.IntRange(0, q+1).Draw(t, "r"), rapid.IntRange(1, 150).Draw(t, "k")
		inside := func(r int) (want map[string]int, total int) {
			want = map[string]int{}
			for _, n := range m.numbers {
				if d := o.distance(m.codes[n], query); d <= r && m.weights[n] > 0 {
					want[string(m.codes[n])] = d
					total += m.weights[n]
				}
			}
			return want, total
		}
		wantNear, wantTotal := inside(r)
		reach := 0
		for ; reach < q; reach++ {
			if _, n := inside(reach); n >= k {
				break
			}
		}
		wantNearest, _ := inside(reach)
		const next = 3*60 + 1
		m.posted = rapid.Uint32Range(0, next).Draw(t, "posted")
		d := &Stored{Split: m.split, Codes: len(m.numbers), Bits: q, Store: m, Costs: new(StoredCosts),
			Posted: m.posted, Tail: int(next - m.posted)}
		// makes either plan look cheaper
		d.Costs.code.Store(math.Float64bits(float64(int(1) << rng.IntN(24))))
		code := func(n uint32) codec.Code { return toCode(m.codes[n]) }
		for _, plan := range []Plan{PlanDisk, PlanBlockScan, PlanAuto} {
			got, total, err := d.Radius(ctx, toCode(query), r, plan, []codec.Near{7}, nil)
			if err != nil || total != wantTotal {
				t.Fatalf("plan %v: %d results, want %d, %v", plan, total, wantTotal, err)
			}
			o.same(t, "radius by "+plan.String(), code, got[1:], wantNear)
			if got, err = d.Nearest(ctx, toCode(query), k, plan, []codec.Near{7}, nil); err != nil {
				t.Fatal(err)
			}
			o.same(t, "nearest by "+plan.String(), code, got[1:], wantNearest)

			cctx, cancel := context.WithCancel(ctx)
			cancel()
			_, _, rerr := d.Radius(cctx, toCode(query), r, plan, nil, nil)
			_, nerr := d.Nearest(cctx, toCode(query), k, plan, nil, nil)
			for _, err := range []error{rerr, nerr} {
				if !errors.Is(err, context.Canceled) && (err != nil || len(m.numbers) > 0) {
					t.Fatalf("cancelled: %v", err)
				}
			}
			for left := range 6 {
				m.left = left
				got, total, err := d.Radius(ctx, toCode(query), r, plan, []codec.Near{7}, nil)
				if err == nil && m.left < 0 ||
					err != nil && (!errors.Is(err, broken) || len(got) != 1 || total != 0) {
					t.Fatalf("radius by %v, broken after %d calls: %v, %d, %v", plan, left, got, total, err)
				}
				m.left = left
				got, err = d.Nearest(ctx, toCode(query), k, plan, []codec.Near{7}, nil)
				if err == nil && m.left < 0 || err != nil && (!errors.Is(err, broken) || len(got) != 1) {
					t.Fatalf("nearest by %v, broken after %d calls: %v, %v", plan, left, got, err)
				}
			}
			m.left = 1 << 40
		}
	})
}

// Scans of a few codes, which have no postings yet, do not change what a code is taken to cost: most of their
// time is that of their beginning.
func TestShortScansTeachNoCosts(t *testing.T) {
	m := &memoryStore{split: NewSplit(16, 2), codes: map[uint32][]byte{}, weights: map[uint32]int{},
		left: 1 << 40, posted: 99}
	for n := range uint32(100) {
		m.numbers, m.codes[n], m.weights[n] = append(m.numbers, n), []byte{byte(n), byte(n * 7)}, 1
	}
	d := &Stored{Split: m.split, Codes: 100, Bits: 16, Store: m, Costs: new(StoredCosts), Posted: 99, Tail: 1}
	for _, plan := range []Plan{PlanDisk, PlanBlockScan} {
		if _, _, err := d.Radius(ctx, toCode(m.codes[3]), 2, plan, nil, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Nearest(ctx, toCode(m.codes[3]), 5, plan, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := d.Costs.Code(); got != guessedCode {
		t.Errorf("a code of a scan takes %v ns, %v is the guess", got, guessedCode)
	}
}
