package parquetfile

import "fmt"

// What a file says of its pages is no measure of what it is: some hundred bytes can be
// a page of gigabytes, and a file has a page of each column open. So all memory that
// depends on what the file says is taken from one budget.
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

// restore gives back what has been taken since free was left, by streams that nobody reads
// any more.
func (b *budget) restore(free int) { b.free = free }
