package dbtest

import (
	"math"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fddhdb/fddhdb/db"
)

// An item does not depend on the range that is asked for, and another seed gives other
// items.
func TestGeneratedItemsAreTheSame(t *testing.T) {
	modalities := []db.Modality{{Name: "image", Dim: 6}, {Name: "words", Dim: 9, Sparse: true},
		{Name: "sound", Dim: 2}}
	for name, of := range map[string]func(seed uint64, from, to int) []*db.Item{
		"pairs": func(seed uint64, from, to int) []*db.Item {
			p := Pairs{Modalities: modalities, Labels: 5, LabelsPerItem: 3, Missing: .3, Unlabelled: .4,
				Seed: seed}
			return slices.Collect(p.Items(from, to))
		},
		"codes": func(seed uint64, from, to int) []*db.Item {
			return slices.Collect(Codes{Bits: 24, Seed: seed}.Items(from, to))
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := of(7, 0, 50)
			if diff := gocmp.Diff(all[20:31], of(7, 20, 31)); len(all) != 50 || diff != "" {
				t.Error(diff)
			}
			if gocmp.Equal(all, of(8, 0, 50)) {
				t.Error("the seed does not matter")
			}
			if of(7, 3, 3) != nil || of(7, 3, 2) != nil {
				t.Error("items from nowhere")
			}
		})
	}
}

// Shares are the wanted ones, within four standard deviations, and labels and
// modalities are as described.
func TestGeneratedPairs(t *testing.T) {
	const n = 4000
	p := Pairs{Modalities: []db.Modality{{Name: "image", Dim: 6}, {Name: "words", Dim: 40, Sparse: true}},
		Labels: 5, LabelsPerItem: 2, Missing: .5, Unlabelled: .25}
	without, unlabelled, several, numbers := 0, 0, 0, 0
	for it := range p.Items(0, n) {
		switch {
		case it.Vectors["image"] == nil && it.Sparse["words"].Index == nil:
			t.Fatalf("%s has nothing", it.Key)
		case it.Vectors["image"] == nil:
			without++
		}
		numbers += len(it.Sparse["words"].Index)
		if len(it.Labels) == 0 {
			unlabelled++
		} else if len(it.Labels) > 1 {
			several++
		}
	}
	about := func(what string, got int, share float64) {
		t.Helper()
		if math.Abs(float64(got)-share*n) > 4*math.Sqrt(share*(1-share)*n) {
			t.Errorf("%s: %d of %d, want %g of them", what, got, n, share)
		}
	}
	about("without image", without, .25)
	about("unlabelled", unlabelled, .25)
	about("several labels", several, .5*.8*.75)
	if numbers < n*.75*10 || numbers > n*.75*30 {
		t.Errorf("%d numbers in sparse vectors of 40 dimensions", numbers)
	}
	if got := slices.Collect(Pairs{Unlabelled: 1}.Items(0, 6)); len(got[3].Labels) != 1 ||
		got[3].Labels[0] != "label 3" || got[4].Labels != nil {
		t.Errorf("the first items have labels %q and %q", got[3].Labels, got[4].Labels)
	}
}

func TestBatches(t *testing.T) {
	var sizes []int
	for some := range Batches(Codes{}.Items(0, 25), 10) {
		sizes = append(sizes, len(some))
	}
	if !slices.Equal(sizes, []int{10, 10, 5}) {
		t.Errorf("batches of %d", sizes)
	}
	for some := range Batches(Codes{}.Items(0, math.MaxInt), 3) { // a stream without end
		if some[2].Key != "item 2" {
			t.Errorf("%q", some[2].Key)
		}
		break
	}
	d := Open(t, "", nil)
	c := loaded(t, d, 10_001)
	if n, err := c.Count(t.Context(), ""); err != nil || n != 10_001 {
		t.Errorf("%d items, %v", n, err)
	}
	if err := Load(t.Context(), d, c, Codes{Bits: 8}.Items(0, 1)); err == nil {
		t.Error("a code that does not fit is loaded")
	}
}
