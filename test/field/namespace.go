//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// inside is the variable that marks a process in the namespace. Its value says which
// disks it may mount: of any kind (root), or tmpfs only (user).
const inside = "FDDHDB_FIELD_NAMESPACE"

// inNamespace runs this program again in a mount namespace of its own. Its mounts are
// visible to no other process, and go when it ends, however it ends. done is false if
// the program is in the namespace already, or if none is permitted.
func inNamespace(ctx context.Context) (code int, done bool, err error) {
	if os.Getenv(inside) != "" {
		return 0, false, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM}
	who := "root"
	if os.Geteuid() != 0 {
		who = "user"
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	cmd.Env = append(os.Environ(), inside+"="+who)
	// on this signal it removes its folders
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		return 0, false, nil // the scenes that mount tell that they are skipped
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(1, exit.ExitCode()), true, nil
	}
	return 0, true, err
}

// mountTmpfs makes a folder and mounts a tmpfs of so many bytes on it. With again it is
// mounted already, and gets this size.
func mountTmpfs(dir string, bytes int64, again bool) error {
	if os.Getenv(inside) == "" {
		return errNoMounts
	}
	var flags uintptr
	if again {
		flags = syscall.MS_REMOUNT
	} else if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	return os.NewSyscallError("mount", syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+number(bytes)))
}

var errNoMounts = errors.New(
	"mounting is not permitted: run it as root, or where user namespaces are allowed")
