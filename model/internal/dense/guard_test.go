//go:build linux

package dense

import (
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// A fence is memory between pages that must not be touched: a kernel that reads or
// writes one number too many ends the program.
type fence struct {
	memory []byte
	end    bool // put slices next to the page behind, not the one before
}

const fencePages = 64

func newFence(t *testing.T, end bool) *fence {
	page := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, (fencePages+2)*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip("no pages of our own:", err)
	}
	t.Cleanup(func() { _ = syscall.Munmap(memory) })
	for _, wall := range [][]byte{memory[:page], memory[(fencePages+1)*page:]} {
		if err := syscall.Mprotect(wall, syscall.PROT_NONE); err != nil {
			t.Skip("no protected pages:", err)
		}
	}
	return &fence{memory: memory[page : (fencePages+1)*page], end: end}
}

// fenced returns n zeros in the memory of the fence. They replace those of the last
// call.
func fenced[T Float | uint32](f *fence, n int) []T {
	var v T
	bytes := n * int(unsafe.Sizeof(v))
	if n == 0 {
		return nil
	}
	at := f.memory[:bytes]
	if f.end {
		at = f.memory[len(f.memory)-bytes:]
	}
	clear(at)
	return unsafe.Slice((*T)(unsafe.Pointer(&at[0])), n)
}

func eachFence(t *testing.T, f func(t *testing.T, new func() *fence)) {
	for _, end := range []bool{false, true} {
		eachSet(t, func(t *testing.T) {
			f(t, func() *fence { return newFence(t, end) })
		})
	}
}

// TestTilesStayInside gives the kernels of products operands that end, or begin, at the
// edge of what they may touch.
func TestTilesStayInside(t *testing.T) {
	eachFence(t, func(t *testing.T, new func() *fence) {
		t.Run("32", func(t *testing.T) { testTileInside[float32](t, new) })
		t.Run("64", func(t *testing.T) { testTileInside[float64](t, new) })
	})
}

func testTileInside[T Float](t *testing.T, new func() *fence) {
	w, bytes := panelWidth[T](), size[T]()
	fa, fb, fc := new(), new(), new()
	for n := 1; n <= 20; n++ {
		for gap := range 3 {
			a, b := fenced[T](fa, tileRows*(n+gap)-gap), fenced[T](fb, w*n)
			c := fenced[T](fc, tileRows*(w+gap)-gap)
			for _, first := range []bool{false, true} {
				tileBy(active, bytes, &tile{n: n, a: unsafe.Pointer(&a[0]), row: (n + gap) * bytes,
					col: bytes,
					b:   unsafe.Pointer(&b[0]), c: unsafe.Pointer(&c[0]), stride: (w + gap) * bytes,
					first: first})
			}
			// The operand of AddTN: rows are next to each other, columns are not.
			a = fenced[T](fa, n*(tileRows+gap)-gap)
			tileBy(active, bytes, &tile{n: n, a: unsafe.Pointer(&a[0]), row: bytes,
				col: (tileRows + gap) * bytes,
				b:   unsafe.Pointer(&b[0]), c: unsafe.Pointer(&c[0]), stride: (w + gap) * bytes})
		}
		for panels := 1; panels <= 5; panels++ {
			a, b, c := fenced[T](fa, n), fenced[T](fb, panels*w*n), fenced[T](fc, panels*w)
			rowBy(active, bytes, n, unsafe.Pointer(&a[0]), unsafe.Pointer(&b[0]), panels,
				unsafe.Pointer(&c[0]))
		}
	}
}

func TestSparseStaysInside(t *testing.T) {
	const w = panelBytes / 4
	eachFence(t, func(t *testing.T, new func() *fence) {
		fi, fv, fb, fc := new(), new(), new(), new()
		for n := 1; n <= 20; n++ {
			for panels := 1; panels <= 2; panels++ {
				index, value := fenced[uint32](fi, n), fenced[float32](fv, n)
				b, c := fenced[float32](fb, panels*n*w), fenced[float32](fc, panels*w)
				for i := range index {
					index[i] = uint32(n - 1 - i)
				}
				sparseBy(active, index, value, unsafe.Pointer(&b[0]), n*panelBytes, panels,
					unsafe.Pointer(&c[0]))
			}
		}
	})
}

func TestWidenStaysInside(t *testing.T) {
	const w = panelBytes / 8
	eachFence(t, func(t *testing.T, new func() *fence) {
		fd, fs := new(), new()
		for n := 1; n <= 20; n++ {
			for stride := w; stride < w+5; stride++ {
				dst, src := fenced[float64](fd, n*w), fenced[float32](fs, (n-1)*stride+w)
				widenBy(active, n, &dst[0], &src[0], stride)
			}
		}
	})
}

func TestGaussianStaysInside(t *testing.T) {
	eachFence(t, func(t *testing.T, new func() *fence) {
		fd, fx, fn := new(), new(), new()
		for n := range 70 {
			Gaussian(fenced[float32](fd, n), fenced[float32](fx, n), 1, fenced[float32](fn, n), 1)
		}
	})
}

// TestFunctionsStayInside gives the functions operands of odd shapes, whose tails the
// kernels in assembly must not get.
func TestFunctionsStayInside(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 24))
	eachFence(t, func(t *testing.T, new func() *fence) {
		fa, fb, fc, fd := new(), new(), new(), new()
		for range 200 {
			m, d, n, gap := rng.IntN(30), rng.IntN(40), rng.IntN(150), rng.IntN(3)
			a := fencedMatrix[float32](fa, m, d, gap)
			b := Pack(fencedMatrix[float32](fb, n, d, gap))
			MulNT(fencedMatrix[float32](fc, m, n, gap), a, b)
			x := fencedMatrix[float32](fb, m, n, gap)
			AddTN(fencedMatrix[float64](fc, d, n, gap), a, x, 2)
			AddGram(fencedMatrix[float64](fd, n, n, gap), x, 2)
		}
	})
}

func fencedMatrix[T Float](f *fence, rows, cols, gap int) Matrix[T] {
	m := Matrix[T]{Rows: rows, Cols: cols, Stride: cols + gap}
	if rows > 0 {
		m.Data = fenced[T](f, rows*m.Stride-gap)
	}
	return m
}
