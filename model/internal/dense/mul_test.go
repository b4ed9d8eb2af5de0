package dense

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/fddhdb/fddhdb/internal/effort"
)

// mulOracle computes MulNT from its definition.
func mulOracle[T, S Float](c Matrix[T], a Matrix[S], b Matrix[T]) {
	for i := range c.Rows {
		for j := range c.row(i) {
			var sum T
			for p, v := range a.row(i) {
				sum = add(sum, T(v), b.row(j)[p])
			}
			c.row(i)[j] = sum
		}
	}
}

// mulShapes are m, d and n of products: all tails of tiles and panels, rows that are
// computed one by one, one panel, pairs and one more, several blocks of rows, and
// depths around the depth of the kernels.
func mulShapes() [][3]int {
	var shapes [][3]int
	for m := range 2*tileRows + 2 {
		for _, n := range []int{0, 1, 5, 23, 24, 25, 47, 48, 49, 96, 97, 145} {
			shapes = append(shapes, [3]int{m, 1 + (m*7+n)%13, n})
		}
	}
	for _, d := range []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 127, 128, 129, 255, 256, 257, 258, 511, 513, 700} {
		shapes = append(shapes, [3]int{1, d, 50}, [3]int{13, d, 50})
	}
	return append(shapes, [3]int{blockRows, 30, 48}, [3]int{blockRows + 1, 30, 48},
		[3]int{2*blockRows + 5, 300, 60})
}

func TestMulNT(t *testing.T) {
	eachSet(t, func(t *testing.T) {
		t.Run("32", testMulNT[float32, float32])
		t.Run("64", testMulNT[float64, float64])
		t.Run("64from32", testMulNT[float64, float32])
		t.Run("32from64", testMulNT[float32, float64])
	})
}

func testMulNT[T, S Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range some(mulShapes()) {
		for _, gap := range []int{0, 3} {
			a, b := random[S](rng, s[0], s[1], gap), random[T](rng, s[2], s[1], gap)
			got := random[T](rng, s[0], s[2], gap)
			want := clone(got)
			packed := Pack(b)
			MulNT(got, a, packed)
			mulOracle(want, a, b)
			if err := same(got, want, nil); err != nil {
				t.Fatalf("%v, gap %d: %v", s, gap, err)
			}
			if packed.Rows() != s[2] || packed.Cols() != s[1] {
				t.Fatalf("%v: packed %d x %d", s, packed.Rows(), packed.Cols())
			}
		}
	}
}

// TestMulNTBound compares float32 products with those of float64 and of gonum.
func TestMulNTBound(t *testing.T) {
	if effort.Race {
		t.Skip("one goroutine")
	}
	rng := rand.New(rand.NewPCG(3, 4))
	eachSet(t, func(t *testing.T) {
		for _, s := range [][3]int{{100, 500, 130}, {3, 1000, 50}, {20, 4096, 60}} {
			a, b := random[float32](rng, s[0], s[1], 0), random[float32](rng, s[2], s[1], 0)
			c, g := Of(s[0], s[2], make([]float32, s[0]*s[2])), Of(s[0], s[2], make([]float32, s[0]*s[2]))
			MulNT(c, a, Pack(b))
			blas32.Gemm(blas.NoTrans, blas.Trans, 1, blas32.General(a), blas32.General(b), 0,
				blas32.General(g))
			if err := near(c, g, 1e-5, nil); err != nil {
				t.Errorf("%v: against gonum: %v", s, err)
			}
			for i := range c.Rows {
				for j, v := range c.row(i) {
					var sum, size float64
					for p, x := range a.row(i) {
						xy := float64(x) * float64(b.row(j)[p])
						sum, size = sum+xy, size+math.Abs(xy)
					}
					// The errors of sums of random terms are far below the bound.
					if e := math.Abs(float64(v) - sum); e > 4*math.Sqrt(float64(s[1]))*0x1p-24*size {
						t.Fatalf("%v: (%d, %d) is off by %v of %v", s, i, j, e, size)
					}
				}
			}
		}
	})
}

// TestSetsAgree: the sets in assembly compute the same bits on all machines.
func TestSetsAgree(t *testing.T) {
	const want = 0x4bcf8fb59b694fe
	rng := rand.New(rand.NewPCG(5, 6))
	uniform := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = rng.Float32() - 0.5
		}
		return x
	}
	const m, d, n = 45, 333, 100
	x, y, norms := Of(m, d, uniform(m*d)), Pack(Of(n, d, uniform(n*d))), uniform(n)
	eachSet(t, func(t *testing.T) {
		phi, sum := Of(m, n, make([]float32, m*n)), Of(n, n, make([]float64, n*n))
		MulNT(phi, x, y)
		for i := range m {
			Gaussian(phi.row(i), phi.row(i), 20, norms, 0.1)
		}
		AddTN(sum, phi, phi, 2)
		h := fnv.New64a()
		for _, v := range sum.Data {
			_ = binary.Write(h, binary.LittleEndian, v)
		}
		if got := h.Sum64(); got != want {
			t.Errorf("hash %#x, want %#x", got, uint64(want))
		}
	})
}

func TestMulNTAllocatesNothing(t *testing.T) {
	if effort.Race {
		t.Skip("the race detector drops pooled memory")
	}
	rng := rand.New(rand.NewPCG(7, 8))
	b := Pack(random[float64](rng, 130, 70, 0))
	for _, m := range []int{1, 20} {
		a, c := random[float32](rng, m, 70, 0), random[float64](rng, m, 130, 0)
		if n := testing.AllocsPerRun(100, func() { MulNT(c, a, b) }); n >= 1 {
			t.Errorf("%d rows: %v allocations", m, n)
		}
	}
}

func TestShapesThatDoNotFit(t *testing.T) {
	x, short := Of(4, 5, make([]float32, 20)), Of(4, 5, make([]float32, 19))
	packed := Pack(Of(6, 5, make([]float32, 30)))
	sparse := Sparse{Rows: 1, Cols: 5, Start: []int{0, 1}, Index: []uint32{5}, Value: []float32{1}}
	sums := func(rows, cols int) Matrix[float64] { return Of(rows, cols, make([]float64, rows*cols)) }
	for name, f := range map[string]func(){
		"short": func() { Pack(short) },
		"short strided": func() {
			Pack(Matrix[float32]{Rows: 2, Cols: 5, Stride: 6, Data: make([]float32,
				10)})
		},
		"stride": func() {
			Pack(Matrix[float32]{Rows: 4, Cols: 5, Stride: 4, Data: make([]float32,
				99)})
		},
		"negative": func() { Pack(Matrix[float32]{Rows: -1, Cols: 5, Stride: 5}) },
		"overflow": func() {
			Pack(Matrix[float32]{Rows: 3, Cols: 5, Stride: math.MaxInt/2 + 1,
				Data: make([]float32, 99)})
		},
		"slice":          func() { x.Slice(2, 5) },
		"mul rows":       func() { MulNT(Of(3, 6, make([]float32, 18)), x, packed) },
		"mul columns":    func() { MulNT(Of(4, 5, make([]float32, 20)), x, packed) },
		"mul depth":      func() { MulNT(Of(4, 6, make([]float32, 24)), Of(4, 4, x.Data), packed) },
		"mul short":      func() { MulNT(Of(4, 6, make([]float32, 23)), x, packed) },
		"mul short left": func() { MulNT(Of(4, 6, make([]float32, 24)), short, packed) },
		"sparse column":  func() { SparseMulNT(Of(1, 6, make([]float32, 6)), sparse, packed) },
		"sparse starts": func() {
			s := sparse
			s.Start = []int{0,
				2}
			SparseMulNT(Of(1, 6, make([]float32, 6)), s, packed)
		},
		"sparse descends": func() {
			s := sparse
			s.Start = []int{1,
				0}
			SparseMulNT(Of(1, 6, make([]float32, 6)), s, packed)
		},
		"sparse negative": func() {
			s := sparse
			s.Start = []int{-1,
				0}
			SparseMulNT(Of(1, 6, make([]float32, 6)), s, packed)
		},
		"sparse values": func() {
			s := sparse
			s.Value = nil
			SparseMulNT(Of(1, 6, make([]float32, 6)), s,
				packed)
		},
		"gram":       func() { AddGram(sums(5, 6), x, 1) },
		"gram size":  func() { AddGram(sums(4, 4), x, 1) },
		"gram short": func() { AddGram(sums(5, 5), short, 1) },
		"tn rows":    func() { AddTN(sums(5, 5), x, x.Slice(0, 3), 1) },
		"tn size":    func() { AddTN(sums(5, 4), x, x, 1) },
		"gaussian dots": func() {
			Gaussian(make([]float32, 3), make([]float32, 2), 0, make([]float32, 3),
				1)
		},
		"gaussian norms": func() {
			Gaussian(make([]float32, 3), make([]float32, 3), 0, make([]float32, 2),
				1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, ok := recover().(string); !ok {
					t.Error("no panic that says what is wrong")
				}
			}()
			f()
		})
	}
}

// TestSparseMulNT: the result has the bits of the dense product.
func TestSparseMulNT(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	eachSet(t, func(t *testing.T) {
		for _, s := range [][3]int{{0, 3, 5}, {3, 0, 5}, {3, 4, 0}, {1, 1, 1}, {5, 7, 47}, {6, 9, 48},
			{7, 300, 49}, {9, 40, 96}, {30, 50, 143}, {4, 20, 200}} {
			for _, gap := range []int{0, 3} {
				a, b := random[float32](rng, s[0], s[1], gap), Pack(random[float32](rng, s[2], s[1], gap))
				sparse := Sparse{Rows: s[0], Cols: s[1], Start: []int{0}}
				for i := range a.Rows {
					keep := rng.Float64() // now and then none
					for p := range a.row(i) {
						if rng.Float64() > keep || i == 3 {
							a.row(i)[p] = 0
							continue
						}
						sparse.Index = append(sparse.Index, uint32(p))
						sparse.Value = append(sparse.Value, a.row(i)[p])
					}
					sparse.Start = append(sparse.Start, len(sparse.Index))
				}
				got := random[float32](rng, s[0], s[2], gap)
				want := clone(got)
				SparseMulNT(got, sparse, b)
				MulNT(want, a, b)
				if err := same(got, want, nil); err != nil {
					t.Fatalf("%v, gap %d: %v", s, gap, err)
				}
			}
		}
	})
}

// TestMulNTOfBlocks: rows have the same result however they are cut.
func TestMulNTOfBlocks(t *testing.T) {
	if effort.Race {
		t.Skip("one goroutine")
	}
	rng := rand.New(rand.NewPCG(11, 12))
	eachSet(t, func(t *testing.T) {
		const m, d, n = 300, 270, 101
		a, b := random[float32](rng, m, d, 1), Pack(random[float32](rng, n, d, 0))
		want := Of(m, n, make([]float32, m*n))
		MulNT(want, a, b)
		for _, rows := range []int{1, 2, 3, 4, 5, 64, 129, 299} {
			got := Of(m, n, make([]float32, m*n))
			for i := 0; i < m; i += rows {
				end := min(i+rows, m)
				MulNT(got.Slice(i, end), a.Slice(i, end), b)
			}
			if err := same(got, want, nil); err != nil {
				t.Errorf("%d rows at a time: %v", rows, err)
			}
		}
	})
}

func ExampleMulNT() {
	a := Of(1, 3, []float32{1, 2, 3})
	b := Pack(Of(2, 3, []float64{1, 1, 1, 0, 1, 0.5}))
	c := Of(1, 2, make([]float64, 2))
	MulNT(c, a, b)
	fmt.Println(c.Data)
	// Output: [6 3.5]
}

func TestPack(t *testing.T) {
	t.Run("32", testPack[float32])
	t.Run("64", testPack[float64])
}

func testPack[T Float](t *testing.T) {
	rng := rand.New(rand.NewPCG(45, 46))
	for range 100 {
		rows, cols, gap := rng.IntN(120), rng.IntN(120), rng.IntN(3)
		m := random[T](rng, rows, cols, gap)
		turned := Of(cols, rows, make([]T, rows*cols))
		for i := range rows {
			for j, v := range m.row(i) {
				turned.row(j)[i] = v
			}
		}
		p, q := Pack(m), PackTransposed(turned)
		if p.Rows() != rows || p.Cols() != cols || q.Rows() != rows || q.Cols() != cols {
			t.Fatalf("%d x %d is packed as %d x %d, and its transpose as %d x %d", rows, cols, p.Rows(),
				p.Cols(), q.Rows(), q.Cols())
		}
		if !slices.Equal(p.data, q.data) {
			t.Fatalf("%d x %d is packed in another way than its transpose", rows, cols)
		}
		u := p.Unpack()
		for i := range rows {
			if !slices.Equal(u.row(i), m.row(i)) {
				t.Fatalf("row %d of %d x %d is %v, want %v", i, rows, cols, u.row(i), m.row(i))
			}
		}
	}
}

// gramOf returns a + I for a random Gram matrix a of n vectors of k.
func gramOf(rng *rand.Rand, n, k int) (a Matrix[float64], x Matrix[float64]) {
	x = Of(n, k, make([]float64, n*k))
	for i := range x.Data {
		x.Data[i] = rng.NormFloat64()
	}
	a = Of(k, k, make([]float64, k*k))
	AddGram(a, x, 1)
	for i := range k {
		a.Data[i*k+i]++
	}
	return a, x
}

// The factor after updates is that of the sum, beginning with a multiple of I.
func TestCholeskyUpdate(t *testing.T) {
	for _, k := range []int{1, 2, 3, 4, 5, 7, 8, 63, 100, 130} {
		rng := rand.New(rand.NewPCG(1, uint64(k)))
		want, x := gramOf(rng, k+20, k)
		l := Of(k, k, make([]float64, k*k))
		for i := range k {
			l.Data[i*k+i] = 1
		}
		for i := range x.Rows {
			CholeskyUpdate(l, append([]float64(nil), x.row(i)...))
		}
		if !Cholesky(want, 1) {
			t.Fatal("not positive definite")
		}
		for i := range k {
			for j := range i + 1 {
				got, want := l.row(i)[j], want.row(i)[j]
				if !(math.Abs(got-want) <= 1e-12*float64(k)*(1+math.Abs(want))) {
					t.Fatalf("k = %d: L[%d,%d] is %g, want %g", k, i, j, got, want)
				}
			}
		}
	}
}

func TestCholeskyUpdateByNothing(t *testing.T) {
	a, _ := gramOf(rand.New(rand.NewPCG(2, 2)), 30, 9)
	Cholesky(a, 1)
	before := append([]float64(nil), a.Data...)
	CholeskyUpdate(a, make([]float64, 9))
	for i := range 9 {
		for j := range i + 1 {
			if a.Data[i*9+j] != before[i*9+j] {
				t.Fatalf("L[%d,%d] has changed", i, j)
			}
		}
	}
}

func TestCholeskySolveRow(t *testing.T) {
	for _, k := range []int{1, 3, 4, 5, 96, 97, 200} {
		rng := rand.New(rand.NewPCG(3, uint64(k)))
		l, x := gramOf(rng, k+20, k)
		if !Cholesky(l, 1) {
			t.Fatal("not positive definite")
		}
		want := Of(1, k, append([]float64(nil), x.row(0)...))
		CholeskySolve(want, l, 1)
		got := append([]float64(nil), x.row(0)...)
		CholeskySolveRow(got, l)
		for j := range got {
			if !(math.Abs(got[j]-want.Data[j]) <= 1e-10*(1+math.Abs(want.Data[j]))) {
				t.Fatalf("k = %d: element %d is %g, want %g", k, j, got[j], want.Data[j])
			}
		}
	}
}

func BenchmarkCholeskyUpdate(b *testing.B) {
	const k = 800
	l, x := gramOf(rand.New(rand.NewPCG(4, 4)), k, k)
	if !Cholesky(l, 1) {
		b.Fatal("not positive definite")
	}
	row := make([]float64, k)
	b.Run("update", func(b *testing.B) {
		for b.Loop() {
			copy(row, x.row(0))
			CholeskyUpdate(l, row)
		}
	})
	b.Run("solve", func(b *testing.B) {
		for b.Loop() {
			copy(row, x.row(0))
			CholeskySolveRow(row, l)
		}
	})
	b.Run("factor", func(b *testing.B) {
		for b.Loop() {
			a := Of(k, k, append([]float64(nil), l.Data...))
			for i := range k {
				for j := range i {
					a.Data[i*k+j] = 0
				}
			}
			Cholesky(a, 1)
		}
	})
}
