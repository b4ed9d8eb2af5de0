//go:build linux

package codec

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// TestKernelsReadNothingElse puts the codes next to pages that must not be touched,
// before and after them: a kernel that reads one word too many ends the program.
func TestKernelsReadNothingElse(t *testing.T) {
	page := os.Getpagesize()
	memory, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip("no pages of our own:", err)
	}
	defer func() { _ = syscall.Munmap(memory) }()
	for _, wall := range [][]byte{memory[:page], memory[2*page:]} {
		if err := syscall.Mprotect(wall, syscall.PROT_NONE); err != nil {
			t.Skip("no protected pages:", err)
		}
	}
	room := unsafe.Slice((*uint64)(unsafe.Pointer(&memory[page])), page/8)
	rng := rand.New(rand.NewPCG(19, 20))
	for i := range room {
		room[i] = rng.Uint64()
	}
	for _, k := range sets {
		t.Run(k.String(), func(t *testing.T) {
			useSet(t, k)
			for w := 1; w <= 64; w++ {
				query := Code(randomCodes(rng, 64*w, 1))
				for n := 1; n <= min(40, len(room)/w); n++ {
					for _, codes := range [][]uint64{room[:n*w], room[len(room)-n*w:]} {
						if err := readAll(query, codes, n); err != nil {
							t.Fatalf("%d words, %d codes: %v", w, n, err)
						}
					}
				}
			}
		})
	}
}

// readAll runs all kernels on codes that are all found.
func readAll(query Code, codes []uint64, n int) error {
	dst, distances, r := make([]Near, 2*n+8), make([]uint16, n), 64*len(query)
	at := make([]uint32, n)
	for i := range at {
		at[i] = uint32(n - 1 - i)
	}
	Distances(distances, query, codes)
	from, to := []uint32{0, uint32(n), 0}, []uint32{uint32(n), uint32(n), uint32(n)}
	if found := Within(dst, query, codes, r, 0); found != n {
		return fmt.Errorf("Within found %d", found)
	}
	if found := WithinAt(dst, query, codes, at, r); found != n {
		return fmt.Errorf("WithinAt found %d", found)
	}
	if found := WithinRanges(dst, query, codes, from, to, r); found != 2*n {
		return fmt.Errorf("WithinRanges found %d", found)
	}
	// The same memory as 16-bit values, and its end as the ids of these values.
	values := unsafe.Slice((*uint16)(unsafe.Pointer(&codes[0])), 4*len(codes))
	ids := unsafe.Slice((*uint32)(unsafe.Pointer(&codes[0])), 2*len(codes))
	last := uint32(len(values))
	if found := Partners(make([]uint32, last+22), 0, values, nil, []uint32{0, last - 3, 0},
		[]uint32{last, last, 3}, 0, 16); found != int(last)+6 {
		return fmt.Errorf("Partners found %d", found)
	}
	last = uint32(len(ids))
	if found := Partners(make([]uint32, last+17), 0, values[last:], ids, []uint32{last - 1, 0},
		[]uint32{last, last}, 0, 16); found != int(last)+1 {
		return fmt.Errorf("Partners with ids found %d", found)
	}
	return nil
}
