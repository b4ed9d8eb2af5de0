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

// When a marker file is made, the manifest that it names survives a crash: no folder has a marker without its
// manifest.
func TestManifestsAreThereBeforeTheirMarker(t *testing.T) {
	mem := vfs.NewCrashableMem()
	if err := mem.MkdirAll("store", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := SyncDir(mem, ""); err != nil {
		t.Fatal(err)
	}
	f := &failFS{FS: mem, log: &Log{}}
	for _, name := range []string{"store/MANIFEST-000007", "store/marker.manifest.000001.MANIFEST-000007"} {
		file, err := f.Create(name, vfs.WriteCategoryUnspecified)
		if err == nil {
			err = errors.Join(file.Sync(), file.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := mem.CrashClone(vfs.CrashCloneCfg{}).Stat("store/MANIFEST-000007"); err != nil {
		t.Error(err)
	}
}
