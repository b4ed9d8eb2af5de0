package codec

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"
)

var testBits = []int{8, 16, 24, 56, 64, 72, 120, 128, 136, 192, 256, 1000, 4096}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// bitOf is the definition of the stored form: bit j is bit j mod 8 of byte j/8.
func bitOf(b []byte, j int) bool { return b[j/8]>>(j%8)&1 == 1 }

func TestCheckBits(t *testing.T) {
	for _, q := range []int{8, 64, 72, 4096} {
		if err := CheckBits(q); err != nil {
			t.Errorf("CheckBits(%d) = %v", q, err)
		}
	}
	for _, q := range []int{-8, 0, 1, 7, 12, 65, 4097, 4104} {
		if CheckBits(q) == nil {
			t.Errorf("CheckBits(%d) accepts", q)
		}
	}
}

func TestCodeBytesRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, q := range testBits {
		b := randomBytes(rng, Bytes(q))
		c, err := CodeFromBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		if got := c.AppendBytes(nil, q); !bytes.Equal(got, b) {
			t.Fatalf("%d bits: bytes %x became %x", q, b, got)
		}
		for j := range q {
			if c.Bit(j) != bitOf(b, j) {
				t.Fatalf("%d bits: bit %d differs from the bytes", q, j)
			}
		}
		if tail := 64*len(c) - q; tail > 0 && c[len(c)-1]>>(64-tail) != 0 {
			t.Fatalf("%d bits: unused bits are set", q)
		}
	}
	for _, n := range []int{0, 513} {
		if _, err := CodeFromBytes(make([]byte, n)); err == nil {
			t.Errorf("%d bytes accepted as a code", n)
		}
	}
}

func TestPackSigns(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, q := range testBits {
		z := make([]float64, q)
		for j := range z {
			z[j] = float64(rng.IntN(3) - 1)
		}
		c := PackSigns(NewCode(q), z)
		for j := range z {
			if c.Bit(j) != (z[j] >= 0) {
				t.Fatalf("%d bits: bit %d is %v for %g", q, j, c.Bit(j), z[j])
			}
		}
	}
}

// The oracle treats a code as one big integer.
func TestSubstringAgainstBigInt(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, q := range testBits {
		b := randomBytes(rng, Bytes(q))
		c, _ := CodeFromBytes(b)
		whole := new(big.Int)
		for j := range q {
			if bitOf(b, j) {
				whole.SetBit(whole, j, 1)
			}
		}
		for range 200 {
			width := 1 + rng.IntN(min(64, q))
			from := rng.IntN(q - width + 1)
			want := new(big.Int).Rsh(whole, uint(from))
			want.And(want, new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(1)))
			if got := Substring(c, from, width); got != want.Uint64() {
				t.Fatalf("%d bits: Substring(%d, %d) = %x, want %x", q, from, width, got, want)
			}
		}
	}
}

func TestCodesViewsDoNotMove(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	all := NewCodes(72, 0)
	var want [][]byte
	var views []Codes
	for range 300 {
		b := randomBytes(rng, 9)
		c, _ := CodeFromBytes(b)
		all.Append(c)
		want = append(want, b)
		views = append(views, all)
	}
	for n, v := range views {
		if v.Len() != n+1 {
			t.Fatalf("view %d has %d codes", n, v.Len())
		}
		for i := range v.Len() {
			if !bytes.Equal(v.At(i).AppendBytes(nil, 72), want[i]) {
				t.Fatalf("view %d shows another code %d", n, i)
			}
		}
	}
}
