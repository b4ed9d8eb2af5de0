package db_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/fddhdb/fddhdb/codec"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/internal/record"
	"github.com/fddhdb/fddhdb/db/internal/search"
	"github.com/fddhdb/fddhdb/db/internal/state"
)

// storedNear opens a database of manyCodes and returns its codes as they are found
// in the store, and where they are in memory.
func storedNear(t *testing.T, n int) (cold *search.StoredCodes, warm *state.CodeSetView) {
	d := dbkit.MustOpen(t, "db", &db.Options{FS: manyCodes(t, n)})
	c := dbkit.MustCollection(t, d, "main")
	must(t, db.Inside(c).Loaded(ctx))
	v, done := need2(db.State(d).Acquire())(t)
	cv := need(v.Collection(db.Inside(c).ID, db.Inside(c).Name))(t)
	warm = &cv.Codes
	without := *warm
	without.Table = nil
	cold = search.NewStoredCodes(v.Snap, &without, nil)
	t.Cleanup(func() {
		if err := cold.Close(); err != nil {
			t.Error(err)
		}
		done()
		dbkit.MustClose(t, d)
	})
	return cold, warm
}

// numbersOf returns the numbers of all codes in memory.
func numbersOf(set *state.CodeSetView) []uint32 {
	var out []uint32
	for n := range uint32(set.NextCode) {
		if set.Table.Code(n) != nil {
			out = append(out, n)
		}
	}
	return out
}

// Codes that several goroutines read from the store are those in memory, however
// many there are, and so are the rows that carry them.
func TestNearInParts(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s, warm := storedNear(t, 3000)
	all := numbersOf(warm)
	query := need(codec.CodeFromBytes(codeAt(77)))(t)
	for _, n := range []int{0, 1, search.MinPart, 2*search.MinPart - 1, 2 * search.MinPart, 5*search.MinPart + 3, len(all)} {
		for _, r := range []int{0, 20, 64} {
			numbers := all[len(all)-n:]
			want := []codec.Near{3}
			for _, x := range numbers {
				if d := codec.Distance(query, warm.Table.Code(x)); d <= r {
					want = append(want, codec.NearOf(d, x))
				}
			}
			got, err := s.Near(ctx, []codec.Near{3}, query, numbers, r)
			slices.Sort(want[1:])
			slices.Sort(got[1:])
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d of %d codes within %d, want %d: %v", len(got), n, r, len(want), err)
			}
			for _, x := range got[1:] {
				rows, err := s.Rows(x.Position())
				if a, b := rows.AppendTo(nil, nil), warm.Table.Rows(x.Position()).AppendTo(nil, nil); err != nil || !slices.Equal(a, b) {
					t.Fatalf("rows %d of code %d, want %d: %v", a, x.Position(), b, err)
				}
			}
		}
	}
}

// What ends one of the goroutines ends the search, with an error that says what it
// was, and a panic is one.
func TestNearFails(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s, warm := storedNear(t, 3000)
	all := numbersOf(warm)
	query := codec.NewCode(64)
	missing := append(slices.Clone(all), uint32(warm.NextCode)+1000)
	if got, err := s.Near(ctx, nil, query, missing, 64); len(got) != 0 || !errors.Is(err, db.ErrCorrupt) || !strings.Contains(err.Error(), "code number 4000: missing") {
		t.Errorf("a code that is missing: %d, %v", len(got), err)
	}
	if got, err := s.Near(ctx, nil, codec.NewCode(128), all, 64); len(got) != 0 || err == nil || !strings.Contains(err.Error(), "index out of range") {
		t.Errorf("a panic: %d, %v", len(got), err)
	}
	cctx, cancel := context.WithCancel(ctx)
	cancel()
	if got, err := s.Near(cctx, nil, query, all, 64); len(got) != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %d, %v", len(got), err)
	}
	if got, err := s.Near(ctx, nil, query, all, 64); len(got) != len(all) || err != nil {
		t.Errorf("after that: %d of %d, %v", len(got), len(all), err)
	}
}

// Codes that are far apart cost the blocks that they are in, and none between.
func TestCodesFarApartAreReadAlone(t *testing.T) {
	s, warm := storedNear(t, 9000)
	read := func(step uint32) uint64 {
		b := record.NewCodeBlocks(s.Snap, s.Set.CodeKeys)
		for n := uint32(0); n < uint32(warm.NextCode); n += step * codec.BlockRows {
			if _, _, err := b.Read(n); err != nil {
				t.Fatal(err)
			}
		}
		stats := b.It.Stats()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		return stats.InternalStats.BlockBytes
	}
	if all, some := read(1), read(9); some > all/3 {
		t.Errorf("%d bytes for one block of nine, %d for all", some, all)
	}
}
