package codec

import (
	"math"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"pgregory.net/rapid"
)

func TestImagesKeepTheOrder(t *testing.T) {
	ints := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 53, -256, -1, 0, 1, 2, 255, 1 << 53, 1<<53 + 1,
		math.MaxInt64}
	for i := range ints[1:] {
		if IntImage(ints[i]) >= IntImage(ints[i+1]) {
			t.Errorf("%d is not below %d", ints[i], ints[i+1])
		}
	}
	floats := []float64{
		math.Inf(-1), -math.MaxFloat64, -1e300, -1.5, -1, -math.SmallestNonzeroFloat64,
		0, math.SmallestNonzeroFloat64, 2.2250738585072014e-308, .1, 1, 1.5, 1e300, math.MaxFloat64,
		math.Inf(1),
	}
	for i := range floats[1:] {
		if FloatImage(floats[i]) >= FloatImage(floats[i+1]) {
			t.Errorf("%g is not below %g", floats[i], floats[i+1])
		}
	}
	for _, x := range ints {
		if IntOf(IntImage(x)) != x {
			t.Errorf("%d does not come back", x)
		}
	}
	for _, x := range floats {
		if FloatOf(FloatImage(x)) != x {
			t.Errorf("%g does not come back", x)
		}
	}
	if !BoolOf(BoolImage(true)) || BoolOf(BoolImage(false)) {
		t.Error("bools do not come back")
	}
	if FloatImage(math.Copysign(0, -1)) != FloatImage(0) {
		t.Error("-0 is not 0")
	}
	if BoolImage(false) >= BoolImage(true) {
		t.Error("false is not below true")
	}
}

func TestContainer(t *testing.T) {
	c := &Container{5: 1}
	for _, b := range []*roaring.Bitmap{
		roaring.New(), roaring.BitmapOf(0, 63, 64, 65535), roaring.Flip(roaring.BitmapOf(7, 40000), 0, 1<<16),
	} {
		c.Set(b)
		if got := roaring.FromDense(c[:], true); !got.Equals(b) {
			t.Errorf("%v, want %v", got, b)
		}
	}
}

// Between finds the same rows as a check of every value.
func TestBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		image := rapid.OneOf(
			rapid.Uint64(), rapid.Uint64Range(0, 5), rapid.Uint64Range(math.MaxUint64-5, math.MaxUint64),
			rapid.Uint64Range(1<<63-3, 1<<63+3), rapid.Just(uint64(1)<<40),
		)
		values := rapid.SliceOfN(image, 0, 100).Draw(t, "values") // so many that they span several words
		among := new(Container)
		var sets [64]*Container
		has := func(c *Container, row int) bool { return c[row/64]>>(row%64)&1 == 1 }
		for row, v := range values {
			if rapid.IntRange(0, 9).Draw(t, "left out") > 0 {
				among[row/64] |= 1 << (row % 64)
			}
			for bit := range 64 {
				if v>>bit&1 == 1 {
					if sets[bit] == nil {
						sets[bit] = new(Container)
					}
					sets[bit][row/64] |= 1 << (row % 64)
				}
			}
		}
		before := *among
		last := 64
		slice := func(bit int) (*Container, error) {
			if bit < last-1 {
				t.Fatalf("bit %d is read before bit %d", bit, last-1)
			}
			last = min(last, bit)
			return sets[bit], nil
		}
		lo, hi := image.Draw(t, "lo"), image.Draw(t, "hi")
		got, err := Between(among, slice, lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		var want []uint32
		for row, v := range values {
			if has(among, row) && lo <= v && v <= hi {
				want = append(want, uint32(row))
			}
		}
		if !slices.Equal(got.ToArray(), want) {
			t.Fatalf("between %d and %d: rows %v, want %v", lo, hi, got, want)
		}
		if *among != before {
			t.Fatal("among was changed")
		}
		for bit, set := range sets {
			for row, v := range values {
				if set != nil && has(set, row) != (v>>bit&1 == 1) {
					t.Fatalf("slice of bit %d was changed", bit)
				}
			}
		}
	})
}
