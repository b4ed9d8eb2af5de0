package mih

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/fddhdb/fddhdb/internal/effort"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/internal/seed"
)

// sample makes codes of q bits whose bits are correlated: each is one of a few
// centres with some bits flipped, and bits j and j+1 agree most of the time.
func sample(rng *rand.Rand, q, n, centres int) [][]byte {
	base := make([][]byte, centres)
	for i := range base {
		base[i] = make([]byte, q/8)
		for j := range q {
			if j%2 == 1 && rng.IntN(20) > 0 {
				base[i][j/8] |= base[i][j/8] >> (j%8 - 1) & 1 << (j % 8)
			} else {
				base[i][j/8] |= byte(rng.IntN(2)) << (j % 8)
			}
		}
	}
	out := make([][]byte, n)
	for i := range out {
		b := slices.Clone(base[min(rng.IntN(centres), rng.IntN(centres))])
		for range rng.IntN(1 + q/10) {
			j := rng.IntN(q)
			b[j/8] ^= 1 << (j % 8)
		}
		out[i] = b
	}
	return out
}

// install builds one segment of m substrings from all codes but those of the first keep
// segments. Where substrings come in pairs, it rounds m to a possible number.
func install(t rapid.TB, w *Writer, m, keep int) {
	t.Helper()
	if q := w.t.bits; NewSplit(q, m).paired() {
		m = max((m+1)&^1, (q+31)/32*2)
	}
	b := w.Publish().Rebuild()
	b.keep = keep
	first := uint32(0)
	if keep > 0 {
		first = b.t.segments[keep-1].last
	}
	var numbers []uint32
	codes := codec.NewCodes(b.t.bits, 0)
	for n, c := range b.t.all(keep) {
		numbers = append(numbers, n)
		codes.Append(c)
	}
	var err error
	if b.made, err = newSegment(ctx, NewSplit(b.t.bits, m), first, b.last, numbers, codes,
		layout{cells: m%4 == 0}, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.made.calibrate(ctx); err != nil {
		t.Fatal(err)
	}
	w.Install(b)
}

var ctx = context.Background()

func (o *oracle) clone() *oracle { return &oracle{o.q, maps.Clone(o.rows)} }

func add(t rapid.TB, w *Writer, o *oracle, row uint32, b []byte) {
	t.Helper()
	n, _, err := w.Number(toCode(b))
	if err != nil {
		t.Fatal(err)
	}
	w.Add(n, row)
	o.rows[row] = b
}

func drop(w *Writer, o *oracle, row uint32) {
	if n, ok := w.Table().CodeOf(row); ok {
		w.Remove(n, row)
		delete(o.rows, row)
	}
}

// checkQuery compares all plans with the oracle for one query.
func (o *oracle) checkQuery(t rapid.TB, table *Table, query []byte, filter *roaring.Bitmap, r, k int) {
	t.Helper()
	within, nearest := o.radius(query, r, filter), o.nearest(query, k, filter)
	_, rows := o.runs(query, filter)
	total := 0
	for c := range within {
		total += len(rows[c])
	}
	for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan, PlanFilter} {
		if plan == PlanFilter && filter == nil {
			continue
		}
		q := &Query{Code: toCode(query), Filter: filter, Plan: plan}
		got, n, err := table.Radius(ctx, q, r, nil, nil)
		if err != nil || n != total {
			t.Fatalf("plan %v, r = %d: %d rows, want %d, %v", plan, r, n, total, err)
		}
		o.same(t, fmt.Sprintf("plan %v, r = %d", plan, r), table.Code, got, within)
		if got, err = table.Nearest(ctx, q, k, nil, nil); err != nil {
			t.Fatal(err)
		}
		o.same(t, fmt.Sprintf("plan %v, k = %d", plan, k), table.Code, got, nearest)
	}
}

func (o *oracle) same(t rapid.TB, what string, code func(uint32) codec.Code, got []codec.Near,
	want map[string]int) {
	t.Helper()
	if !slices.IsSortedFunc(got, func(a, b codec.Near) int { return a.Distance() - b.Distance() }) {
		t.Fatalf("%s: out of order", what)
	}
	seen := map[string]int{}
	for _, x := range got {
		seen[string(code(x.Position()).AppendBytes(nil, o.q))] = x.Distance()
	}
	if len(seen) != len(got) || !maps.Equal(seen, want) {
		t.Fatalf("%s: %d codes, %d of them distinct, want %d", what, len(got), len(seen), len(want))
	}
}

// Every number of substrings and every history of segments gives the answers of the
// definition.
func TestAllSplitsAgreeWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom([]int{8, 16, 24, 40, 64, 72, 128, 192, 256, 512}).Draw(t, "bits")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		codes := sample(rng, q, rapid.IntRange(1, 300).Draw(t, "codes"), 1+rng.IntN(12))
		row := uint32(0)
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			for range rng.IntN(200) {
				add(t, w, o, row, codes[rng.IntN(len(codes))])
				row++
			}
			for range rng.IntN(120) { // some codes die, and come back
				drop(w, o, rng.Uint32N(row+1))
			}
			if rapid.IntRange(0, 3).Draw(t, "build") > 0 {
				least := (q + 8) / 9 // tables of at most 512 buckets, as some searches look into all
				m := rapid.IntRange(least, max(least, min(q, 40))).Draw(t, "m")
				install(t, w, m, rapid.IntRange(0, len(w.t.segments)).Draw(t, "keep"))
			}
		}
		table := w.Publish() // tables of at most 512 buckets, as some searches look into all of them
		for range 4 {
			query := slices.Clone(codes[rng.IntN(len(codes))])
			for range rng.IntN(6) {
				j := rng.IntN(q)
				query[j/8] ^= 1 << (j % 8)
			}
			var filter *roaring.Bitmap
			switch density := rng.IntN(5); density {
			case 0: // none at all
			default:
				filter = roaring.New()
				for i := range row + 5 {
					if density == 4 || density > 1 && rng.IntN(1<<(4*density-7)) == 0 {
						filter.Add(i)
					}
				}
			}
			r, k := rng.IntN(min(q, 12)+1), 1+rng.IntN(20)
			switch rng.IntN(6) {
			case 0:
				r = q
			case 1:
				k = int(row) + 1
			}
			o.checkQuery(t, table, query, filter, r, k)
		}
	})
}

// Twenty thousand codes in clusters make full buckets, several chunks of lookups and
// blocks of codes, an order of bits, segments, a tail, and codes that are gone.
func TestManyClusteredCodes(t *testing.T) {
	effort.Slow(t)
	for _, q := range []int{64, 128} {
		rng := seed.Rand(t, uint64(q), 3)
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		codes := sample(rng, q, 20_000, 60)
		for row, b := range codes[:14_000] {
			add(t, w, o, uint32(row), b)
		}
		install(t, w, q/16, 0)
		if w.t.segments[0].order == nil {
			t.Errorf("%d bits: correlated bits are in their natural order", q)
		}
		for row := range 3000 {
			drop(w, o, uint32(4*row))
		}
		for row, b := range codes[14_000:19_000] {
			add(t, w, o, uint32(14_000+row), b)
		}
		install(t, w, q/12, 1)
		for row, b := range codes[19_000:] {
			add(t, w, o, uint32(19_000+row), b)
		}
		for row := range 1000 {
			add(t, w, o, uint32(30_000+row), codes[4*row]) // a code that died
		}
		table := w.Publish()
		some := roaring.New()
		for row := range uint32(31_000) {
			if row%7 == 0 {
				some.Add(row)
			}
		}
		for i := range 12 {
			query := slices.Clone(codes[i*1501])
			for range i {
				j := rng.IntN(q)
				query[j/8] ^= 1 << (j % 8)
			}
			var filter *roaring.Bitmap
			if i%3 == 0 {
				filter = some
			}
			o.checkQuery(t, table, query, filter, []int{0, 1, 3, 8, 12, 20}[i%6],
				[]int{1, 10, 300, 5000, 40_000}[i%5])
		}
	}
}

// Codes that go leave no memory behind once their segment is built again.
func TestCodesThatGoTakeNoMemory(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	const q, many, few = 64, 6000, 40
	w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
	for row := range uint32(many) {
		add(t, w, o, row, binary.BigEndian.AppendUint64(nil, rng.Uint64()))
	}
	install(t, w, 5, 0)
	full := w.Publish()
	for row := range uint32(many) {
		if row%(many/few) != 7 {
			drop(w, o, row)
		}
	}
	install(t, w, 5, 0)
	table := w.Publish()
	if m := table.Memory(); m.Codes > 16*few {
		t.Errorf("%d codes take %d bytes", few, m.Codes)
	}
	for n := range uint32(many) {
		if want := n%(many/few) == 7; (table.Code(n) != nil) != want || full.Code(n) == nil {
			t.Fatalf("code %d: %v", n, table.Code(n))
		}
	}
	for range 20 {
		row := rng.Uint32N(few)*(many/few) + 7
		query := slices.Clone(o.rows[row])
		query[0] ^= 1
		o.checkQuery(t, table, query, nil, 4, 3)
	}
}

// Weights replace the number of rows: the answer is as if each code had so many rows.
func TestWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 4))
		const q = 16
		w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
		for row := range uint32(200) {
			add(t, w, o, row, sample(rng, q, 1, 1)[0])
			if row == 150 {
				install(t, w, 3, 0)
			}
		}
		table := w.Publish()
		weights := map[uint32]int{}
		for n := range table.All() {
			weights[n] = max(0, rng.IntN(5)-1)
		}
		query := sample(rng, q, 1, 1)[0]
		k := rapid.IntRange(1, 300).Draw(t, "k")
		var want map[string]int
		for r := 0; r <= q; r++ {
			sum := 0
			want = map[string]int{}
			for n, c := range table.All() {
				if d := o.distance(c.AppendBytes(nil, q), query); d <= r && weights[n] > 0 {
					want[string(c.AppendBytes(nil, q))] = d
					sum += weights[n]
				}
			}
			if sum >= k {
				break
			}
		}
		for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan} {
			got, err := table.Nearest(ctx, &Query{Code: toCode(query), Plan: plan,
				Weight: func(n uint32, d int) int {
					if d != o.distance(table.Code(n).AppendBytes(nil, q), query) {
						t.Fatalf("code %d is not at %d", n, d)
					}
					return weights[n]
				}}, k, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			o.same(t, plan.String(), table.Code, got, want)
		}
	})
}

// Loaded codes are those that were saved: few or many, with gaps or without. Bare
// segments give the same answers. The same code twice is refused.
func TestLoad(t *testing.T) {
	for _, n := range []int{0, 1, 900, 1500} {
		for _, gap := range []uint32{1, 3, 50} {
			for _, bare := range []bool{false, true} {
				rng := seed.Rand(t, uint64(n), 5)
				const q = 72
				w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
				codes, numbers := codec.NewCodes(q, 0), []uint32(nil)
				seen := map[string]bool{}
				for _, b := range sample(rng, q, n, 100) {
					if !seen[string(b)] {
						seen[string(b)] = true
						numbers = append(numbers, gap*uint32(len(numbers))+gap/2)
						codes.Append(toCode(b))
					}
				}
				next := gap*uint32(n) + 1
				if err := w.Load(ctx, numbers, codes, next, bare); err != nil {
					t.Fatal(err)
				}
				for i, number := range numbers {
					w.Add(number, uint32(i))
					o.rows[uint32(i)] = codes.At(i).AppendBytes(nil, q)
				}
				if w.t.Next() != next || w.t.Distinct() != len(numbers) {
					t.Fatalf("%d codes, next is %d", w.t.Distinct(), w.t.Next())
				}
				blank := make([]byte, q/8) // the filling of gaps is not a code
				o.checkQuery(t, w.Publish(), blank, nil, 10, 5)
				for i := range len(numbers) / 3 {
					drop(w, o, uint32(3*i))
				}
				add(t, w, o, 5000, blank)
				for i := range len(numbers) / 3 { // new, and old ones again
					add(t, w, o, 6000+uint32(i), codes.At(2*i).AppendBytes(nil, q))
				}
				o.checkQuery(t, w.Publish(), blank, nil, 10, 5)
				b := w.Publish().Rebuild()
				b.Bare, b.Cells = bare, gap == 3
				if err := b.Run(ctx); err != nil {
					t.Fatal(err)
				}
				w.Install(b)
				if w.t.Indexed() == bare || w.t.Wasted() != 0 {
					t.Errorf("indexed: %v, wasted: %g", w.t.Indexed(), w.t.Wasted())
				}
				o.checkQuery(t, w.Publish(), blank, nil, 20, 50)
				if n == 0 {
					continue
				}
				codes.Append(codes.At(0))
				if err := NewWriter(q).Load(ctx, append(numbers, next), codes, next+1, bare); err == nil {
					t.Error("the same code twice is loaded")
				}
			}
		}
	}
}

// Published tables never change while one writer goes on and builds run in a goroutine
// of their own: readers check all of them.
func TestPublishedTablesNeverChange(t *testing.T) {
	const q = 64
	rng := seed.Rand(t, 7, 7)
	codes := sample(rng, q, 700, 9)
	w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
	var wg sync.WaitGroup
	defer wg.Wait()
	var build *Build
	var built chan error
	for i := range 40 {
		for range 120 {
			row := rng.Uint32N(4000)
			drop(w, o, row)
			if rng.IntN(3) > 0 {
				// now and then the first code has more rows than a list holds
				add(t, w, o, row, codes[rng.IntN(len(codes))*rng.IntN(3)%len(codes)])
			}
		}
		table, then := w.Publish(), o.clone()
		seed := rng.Uint64()
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range 3 {
				then.checkQuery(t, table, codes[rng.IntN(len(codes))], nil, rng.IntN(12), 1+rng.IntN(90))
				_, rows := then.runs(codes[0], nil)
				for n, c := range table.All() {
					if got := slices.Collect(table.Rows(n).All()); !slices.Equal(got,
						rows[string(c.AppendBytes(nil, q))]) {
						t.Errorf("rows of code %d have changed: %v", n, got)
					}
				}
			}
		})
		switch {
		case build == nil:
			if build = table.Rebuild(); i%3 == 0 && len(table.segments) > 0 {
				build.keep = 1
			}
			built = make(chan error, 1)
			go func() { built <- build.Run(ctx) }()
		case i%4 == 3:
			if err := <-built; err != nil {
				t.Fatal(err)
			}
			w.Install(build)
			build = nil
		}
	}
	if build != nil {
		if err := <-built; err != nil {
			t.Fatal(err)
		}
	}
}

// Builds that come due keep the segments few and drop dead codes.
func TestBuildsComeDue(t *testing.T) {
	const q = 64
	w, o := NewWriter(q), &oracle{q, map[uint32][]byte{}}
	settle := func() {
		for b := w.Publish().Build(); b != nil; b = w.Publish().Build() {
			if err := b.Run(ctx); err != nil {
				t.Fatal(err)
			}
			w.Install(b)
		}
	}
	for i := range 12_000 {
		b := make([]byte, 8)
		b[0], b[1], b[5] = byte(i), byte(i>>8), 77
		add(t, w, o, uint32(i), b)
		if i%500 == 0 {
			settle()
		}
	}
	settle()
	if n := len(w.t.segments); n > 5 || w.t.tail.Len() >= maxTail {
		t.Errorf("%d segments, %d codes in the tail", n, w.t.tail.Len())
	}
	before := w.Publish().Memory()
	for i := range 9000 {
		drop(w, o, uint32(i))
	}
	settle()
	after := w.Publish().Memory()
	if w.t.Wasted() > maxWaste || after.Tables >= before.Tables || after.Rows >= before.Rows {
		t.Errorf("%g wasted; %+v, it was %+v", w.t.Wasted(), after, before)
	}
	o.checkQuery(t, w.Publish(), o.rows[9500], nil, 4, 20)
	for i := range 3000 {
		drop(w, o, uint32(9000+i))
	}
	settle()
	o.checkQuery(t, w.Publish(), make([]byte, 8), roaring.BitmapOf(1, 2), q, 3)
}

func TestCancelled(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	w, o := NewWriter(64), &oracle{64, map[uint32][]byte{}}
	for row, b := range sample(rng, 64, 3000, 40) {
		add(t, w, o, uint32(row), b)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := w.Publish().Rebuild().Run(cctx); !errors.Is(err, context.Canceled) {
		t.Errorf("build: %v", err)
	}
	install(t, w, 4, 0)
	filter := roaring.BitmapOf(1, 2, 3)
	for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan, PlanFilter} {
		q := &Query{Code: toCode(o.rows[0]), Filter: filter, Plan: plan}
		_, _, radius := w.Table().Radius(cctx, q, 3, nil, nil)
		_, nearest := w.Table().Nearest(cctx, q, 3, nil, nil)
		for what, err := range map[string]error{"radius": radius, "nearest": nearest} {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, plan %v: %v", what, plan, err)
			}
		}
	}
}
