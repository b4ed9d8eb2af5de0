package store

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Room that cannot be set aside may be there nevertheless, and many file systems cannot set
// any aside.
func TestNothingComesOfRoomThatCannotBeSetAside(t *testing.T) {
	log := NewLog(nil)
	f, err := (&failFS{FS: vfs.NewMem(), log: log}).Create("000001.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	f.(*failFile).File = &neverPreallocates{f.(*failFile).File}
	if err := errors.Join(f.Preallocate(0, 1<<20), log.Err()); err != nil {
		t.Error(err)
	}
}

type neverPreallocates struct{ vfs.File }

func (neverPreallocates) Preallocate(_, _ int64) error { return syscall.ENOSPC }
