package mih

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"

	"github.com/fddhdb/fddhdb/codec"
)

// oracle is a table by definition: rows and the bytes of their codes. It shares no code
// with the package.
type oracle struct {
	q    int
	rows map[uint32][]byte
}

func (o *oracle) distance(a, b []byte) int {
	d := 0
	for i := range a {
		d += bits.OnesCount8(a[i] ^ b[i])
	}
	return d
}

// runs returns the distinct codes that pass the filter: their rows and their distances
// from the query.
func (o *oracle) runs(query []byte,
	filter *roaring.Bitmap) (distances map[string]int, rows map[string][]uint32) {
	distances, rows = map[string]int{}, map[string][]uint32{}
	for row, c := range o.rows {
		if filter == nil || filter.Contains(row) {
			distances[string(c)] = o.distance(c, query)
			rows[string(c)] = append(rows[string(c)], row)
		}
	}
	for _, r := range rows {
		slices.Sort(r)
	}
	return distances, rows
}

func (o *oracle) radius(query []byte, r int, filter *roaring.Bitmap) map[string]int {
	d, _ := o.runs(query, filter)
	for c, x := range d {
		if x > r {
			delete(d, c)
		}
	}
	return d
}

func (o *oracle) nearest(query []byte, k int, filter *roaring.Bitmap) map[string]int {
	d, rows := o.runs(query, filter)
	for r := 0; r <= o.q; r++ {
		total := 0
		for c, x := range d {
			if x <= r {
				total += len(rows[c])
			}
		}
		if total >= k {
			return o.radius(query, r, filter)
		}
	}
	return d
}

// machine is a table under random changes beside its oracle.
type machine struct {
	w       *Writer
	o       *oracle
	pending *Build
	rng     *rand.Rand
	next    uint32 // row
}

func (m *machine) code() []byte {
	b := make([]byte, m.o.q/8)
	for j := range b {
		x := m.rng.Uint32()
		b[j] = byte(x & (x >> 8) & (x >> 16)) // near each other
	}
	return b
}

func toCode(b []byte) codec.Code {
	c, err := codec.CodeFromBytes(b)
	if err != nil {
		panic(err)
	}
	return c
}

func (m *machine) put(t *rapid.T, row uint32, b []byte) {
	m.remove(row)
	n, isNew, err := m.w.Number(toCode(b))
	if err != nil {
		t.Fatal(err)
	}
	had := false
	for _, c := range m.o.rows {
		had = had || slices.Equal(c, b)
	}
	if had == isNew {
		t.Fatalf("code %x: new is %v, and %v rows carry it", b, isNew, had)
	}
	m.w.Add(n, row)
	m.o.rows[row] = b
}

func (m *machine) remove(row uint32) {
	if _, ok := m.o.rows[row]; ok {
		n, _ := m.w.Table().CodeOf(row)
		m.w.Remove(n, row)
		delete(m.o.rows, row)
	}
}

func (m *machine) step(t *rapid.T) {
	switch op := rapid.IntRange(0, 9).Draw(t, "op"); op {
	case 0, 1, 2, 3:
		for range rapid.IntRange(1, 40).Draw(t, "puts") {
			m.put(t, m.next, m.code())
			m.next++
		}
	case 4: // an upsert
		if m.next > 0 {
			m.put(t, m.rng.Uint32N(m.next), m.code())
		}
	case 5:
		for range rapid.IntRange(1, 60).Draw(t, "removes") {
			m.remove(m.rng.Uint32N(m.next + 1))
		}
	case 6, 7: // begin a build, to be installed later
		if m.pending == nil {
			b := m.w.Publish().Rebuild()
			if keep := rapid.IntRange(0, len(b.t.segments)).Draw(t, "keep"); keep > 0 {
				b.keep = keep
			}
			m.pending = b
		}
	default:
		if m.pending != nil {
			if err := m.pending.Run(context.Background()); err != nil {
				t.Fatal(err)
			}
			m.w.Install(m.pending)
			m.pending = nil
		}
	}
}

// check compares every answer of a table with the oracle.
func (o *oracle) check(t *rapid.T, table *Table, rng *rand.Rand) {
	_, rows := o.runs(make([]byte, o.q/8), nil)
	if table.Items() != len(o.rows) || table.Distinct() != len(rows) {
		t.Fatalf("%d items, %d codes; want %d and %d", table.Items(), table.Distinct(), len(o.rows),
			len(rows))
	}
	seen := 0
	for n, c := range table.All() {
		seen++
		b := string(c.AppendBytes(nil, o.q))
		if got := slices.Collect(table.Rows(n).All()); !slices.Equal(got, rows[b]) {
			t.Fatalf("rows of %x: %v, want %v", b, got, rows[b])
		}
		if table.Cardinality(n) != len(rows[b]) || !slices.Equal(table.Code(n), c) {
			t.Fatalf("code %d: %d rows, code %x", n, table.Cardinality(n), table.Code(n))
		}
	}
	if seen != len(rows) {
		t.Fatalf("All yields %d codes of %d", seen, len(rows))
	}
	for row, b := range o.rows {
		if n, ok := table.CodeOf(row); !ok || !slices.Equal(table.Code(n).AppendBytes(nil, o.q), b) {
			t.Fatalf("code of row %d", row)
		}
	}
	var filter *roaring.Bitmap
	if rng.IntN(2) == 0 {
		filter = roaring.New()
		for row := range uint32(len(o.rows) * 2) {
			if rng.IntN(3) == 0 {
				filter.Add(row)
			}
		}
	}
	query := make([]byte, o.q/8)
	for j := range query {
		x := rng.Uint32()
		query[j] = byte(x & (x >> 8))
	}
	if len(o.rows) > 0 && rng.IntN(2) == 0 {
		for _, b := range o.rows {
			copy(query, b)
			query[rng.IntN(len(query))] ^= 1 << rng.IntN(8)
			break
		}
	}
	r := rng.IntN(o.q + 2)
	if rng.IntN(2) == 0 {
		r = rng.IntN(4)
	}
	k := 1 + rng.IntN(30)
	for _, plan := range []Plan{PlanAuto, PlanMemory, PlanScan, PlanFilter} {
		if plan == PlanFilter && filter == nil {
			continue
		}
		q := &Query{Code: toCode(query), Filter: filter, Plan: plan}
		got, _, err := table.Radius(context.Background(), q, r, []codec.Near{7}, nil)
		if err != nil {
			t.Fatal(err)
		}
		o.compare(t, table, plan, got[1:], o.radius(query, r, filter))
		if got, err = table.Nearest(context.Background(), q, k, []codec.Near{7}, nil); err != nil {
			t.Fatal(err)
		}
		o.compare(t, table, plan, got[1:], o.nearest(query, k, filter))
	}
}

func (o *oracle) compare(t *rapid.T, table *Table, plan Plan, got []codec.Near, want map[string]int) {
	if !slices.IsSortedFunc(got, func(a, b codec.Near) int { return a.Distance() - b.Distance() }) {
		t.Fatalf("plan %v: not in order: %v", plan, got)
	}
	seen := map[string]int{}
	for _, x := range got {
		seen[string(table.Code(x.Position()).AppendBytes(nil, o.q))] = x.Distance()
	}
	if len(seen) != len(got) {
		t.Fatalf("plan %v: a code twice in %v", plan, got)
	}
	if len(seen) != len(want) {
		t.Fatalf("plan %v: %d codes, want %d", plan, len(seen), len(want))
	}
	for c, d := range want {
		if g, ok := seen[c]; !ok || g != d {
			t.Fatalf("plan %v: code %x at %d: got %d, %v", plan, c, d, g, ok)
		}
	}
}

// Every plan agrees with the definition in every state of a table that changes, is
// built again and published. Published states stay as they were.
func TestTablesAgreeWithTheDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := rapid.SampledFrom([]int{8, 16, 24, 64, 72, 128, 192}).Draw(t, "bits")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		m := &machine{w: NewWriter(q), o: &oracle{q, map[uint32][]byte{}}, rng: rng}
		type published struct {
			table *Table
			o     *oracle
		}
		var history []published
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			m.step(t)
			if rng.IntN(4) == 0 {
				o := &oracle{q, map[uint32][]byte{}}
				for row, b := range m.o.rows {
					o.rows[row] = b
				}
				history = append(history, published{m.w.Publish(), o})
			}
		}
		m.o.check(t, m.w.Publish(), rng)
		for _, p := range history {
			p.o.check(t, p.table, rng)
		}
	})
}
