package store

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/fddhdb/fddhdb/db/fault"
	"github.com/fddhdb/fddhdb/internal/testfs"
)

func TestReserveByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		total, want int64
		option      int64
	}{
		"a large disk":    {1 << 40, 256 << 20, 0},
		"a small disk":    {1 << 30, 1 << 30 / 20, 0},
		"one of 5 GiB":    {20 * 256 << 20, 256 << 20, 0},
		"as wanted":       {1 << 30, 1 << 29, 1 << 29},
		"one byte":        {1 << 30, 1, 1},
		"more than there": {1 << 30, math.MaxInt64, math.MaxInt64},
	} {
		disk := &testfs.SmallDisk{Usage: vfs.DiskUsage{TotalBytes: uint64(c.total)}, FS: vfs.NewMem()}
		r := NewReserve(&Config{FS: disk, ReserveBytes: c.option}, "db")
		disk.Usage.AvailBytes = uint64(c.want) - 1
		if err := r.Admit(0, false); !errors.Is(err, fault.ErrDiskFull) {
			t.Errorf("%s: one byte too little: %v", name, err)
		}
		disk.Usage.AvailBytes++
		if err := r.Admit(0, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		disk.Usage.AvailBytes, r.at = 0, time.Time{}
		if c.want > 1 {
			if err := r.Admit(0, true); !errors.Is(err, fault.ErrDiskFull) {
				t.Errorf("%s: nothing free: %v", name, err)
			}
		}
		r.Want = -1
		if err := r.Admit(math.MaxInt64, false); err != nil {
			t.Errorf("%s, without a reserve: %v", name, err)
		}
	}
}

// The folder that is measured may not be there yet.
func TestReserveOfWhatIsBeingMade(t *testing.T) {
	r := NewReserve(&Config{FS: vfs.Default}, t.TempDir())
	if free, _ := r.look(); free == math.MaxInt64 {
		t.Error("the disk has no end")
	}
}

// Looking at the disk takes time on some, so it is not done for each write.
func TestDiskIsRarelyAsked(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1,
		Usage: vfs.DiskUsage{AvailBytes: 1 << 40, TotalBytes: 1 << 40}}
	r := NewReserve(&Config{FS: disk}, "db")
	for range 100_000 {
		if err := r.Admit(1000, false); err != nil {
			t.Fatal(err)
		}
	}
	if disk.Asked > 100 {
		t.Errorf("asked %d times for 100,000 writes", disk.Asked)
	}
}

// Compactions leave 4 MiB free, so that the log and the manifest can be written. They may take more where
// the spare file has been given up for them, until it is made again.
func TestCompactionsLeaveRoomAgain(t *testing.T) {
	disk := &testfs.SmallDisk{FS: vfs.NewMem(), Room: -1, Usage: vfs.DiskUsage{TotalBytes: 1 << 40}}
	r := NewReserve(&Config{FS: disk}, "db")
	if err := disk.MkdirAll(r.Path, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Counts(func() int64 { return 0 })
	for _, free := range []uint64{1 << 40, FreeingFloor - 1, 1 << 40} {
		disk.Usage.AvailBytes = free
		r.LookAgain()
		if err := r.Admit(0, true); err != nil { // it gives up the spare file where it finds too little
			t.Errorf("%d bytes are free: a deletion: %v", free, err)
		}
		disk.Usage.AvailBytes = tableFloor
		if err := r.admitTable(1, false); (err == nil) != (free < tableFloor) {
			t.Errorf("%d bytes were free: a table of a compaction: %v", free, err)
		}
	}
}
