package testfs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// mounting is the variable that marks a process in a mount namespace of its own.
const mounting = "FDDHDB_TEST_MOUNTS"

// Mounts reports whether a test may mount disks. It runs the test again, by its name, in a
// process whose mounts no other process sees and which end with it, and returns
// false: the caller returns. In that process it returns true. Where nobody lets this user
// mount, the test is skipped.
func Mounts(t testing.TB) bool {
	t.Helper()
	if os.Getenv(mounting) != "" {
		if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		return true
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v",
		"-test.count=1")
	cmd.Env = append(os.Environ(), mounting+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("no mount namespace: %v: run it as root, or where user namespaces are allowed", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("with mounts: %v\n%s", err, &out)
	} else if strings.Contains(out.String(), "--- SKIP") {
		t.Skip(out.String())
	}
	return false
}

// MountDisk mounts a disk in memory, of so many bytes, in a new folder, until the test ends.
func MountDisk(t testing.TB, bytes int64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "disk")
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes))
	}
	if err != nil {
		t.Skipf("mount a tmpfs: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

// ReadOnlyDisk lets nobody write any more to what MountDisk has mounted.
func ReadOnlyDisk(t testing.TB, dir string) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

// FillDisk fills what MountDisk has mounted until so many bytes are free.
func FillDisk(t testing.TB, dir string, free int64) {
	t.Helper()
	var is syscall.Statfs_t
	if err := syscall.Statfs(dir, &is); err != nil {
		t.Fatal(err)
	}
	filler := make([]byte, int64(is.Bavail)*is.Bsize-free)
	if err := os.WriteFile(filepath.Join(dir, "filler"), filler, 0o666); err != nil {
		t.Fatal(err)
	}
}
