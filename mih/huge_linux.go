package mih

import (
	"syscall"
	"unsafe"
)

// madvCollapse collapses small pages into huge ones at once, since Linux 6.1.
const madvCollapse = 25

// hugePage is the size of a huge page in bytes.
const hugePage = 2 << 20

// inHugePages asks the kernel to back a large array with huge pages, and returns it.
// The array must not have been written to. Lookups go to random places in tens of
// megabytes, and with small pages most of them would miss the TLB too. It is a hint:
// nothing depends on it.
func inHugePages[T any](s []T) []T {
	s = s[:cap(s)]
	if len(s) == 0 {
		return s
	}
	begin := uintptr(unsafe.Pointer(&s[0]))
	size := uintptr(len(s)) * unsafe.Sizeof(s[0])
	skip := -begin % hugePage
	if size < skip+hugePage {
		return s
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), size)
	b = b[skip : skip+(size-skip)/hugePage*hugePage]
	_ = syscall.Madvise(b, syscall.MADV_HUGEPAGE)
	_ = syscall.Madvise(b, madvCollapse)
	return s
}
