package parquet

import (
	"fmt"
	"unsafe"
)

// A file of some hundred bytes can claim a page of gigabytes, and one page of each column is in memory at a
// time. So all memory whose size depends on a claim of the file comes from one budget.
const (
	maxMemory = 1 << 30   // for all columns
	maxPage   = 256 << 20 // bytes of a page, decompressed
	maxValues = 32 << 20  // of a page
)

// budget is the memory of a file.
type budget struct{ free int } // bytes that are left

// take takes n bytes, or fails if fewer are left.
func (b *budget) take(n int) error {
	if n > b.free {
		return fmt.Errorf("its pages need more than %d MiB of memory at a time: write it with smaller pages (row groups), or read fewer columns", maxMemory>>20)
	}
	b.free -= n
	return nil
}

func (b *budget) give(n int) { b.free += n }

// grow gives *b a length of n elements, with any values. It takes the missing memory from the budget.
func grow[T any](m *budget, b *[]T, n int) error {
	if n > cap(*b) {
		var element T
		if err := m.take((n - cap(*b)) * int(unsafe.Sizeof(element))); err != nil {
			return err
		}
		*b = make([]T, n)
	}
	*b = (*b)[:n]
	return nil
}

// restore gives back all memory taken since free bytes were left. The streams that have taken it must not be
// read any more.
func (b *budget) restore(free int) { b.free = free }
