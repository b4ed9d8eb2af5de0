package freemem

import (
	"math"
	"unsafe"

	"golang.org/x/sys/windows"
)

var globalMemoryStatusEx = windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")

// memoryStatus has the layout of MEMORYSTATUSEX.
type memoryStatus struct {
	length, load                           uint32
	totalPhysical, availablePhysical       uint64
	totalPageFile, availablePageFile       uint64
	totalVirtual, availableVirtual, beyond uint64
}

func system() (bytes int64, known bool) {
	var s memoryStatus
	s.length = uint32(unsafe.Sizeof(s))
	if ok, _, _ := globalMemoryStatusEx.Call(uintptr(unsafe.Pointer(&s))); ok == 0 {
		return 0, false
	}
	return int64(min(s.availablePhysical, math.MaxInt64)), true
}
