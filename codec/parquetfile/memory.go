package parquetfile

import (
	"fmt"
	"unsafe"
)

// A file of some hundred bytes can claim a page of gigabytes, and a page of each column is
// in memory at a time. So all memory whose size depends on a claim of the file is taken
// from one budget.
const (
	maxMemory = 1 << 30   // of all columns
	maxPage   = 256 << 20 // of a page, decompressed
	maxValues = 32 << 20  // of a page
)

// budget is the memory that is left.
type budget struct{ free int }

func (b *budget) take(n int) error {
	if n > b.free {
		return fmt.Errorf("its pages need more than %d MiB of memory at a time: write it with smaller pages (row groups), or read fewer columns", maxMemory>>20)
	}
	b.free -= n
	return nil
}

func (b *budget) give(n int) { b.free += n }

// grow makes *b n elements long. It takes from the budget what *b has too little of. The
// elements have any value.
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

// restore gives back all that has been taken since free was left, by streams that are not
// read any more.
func (b *budget) restore(free int) { b.free = free }
