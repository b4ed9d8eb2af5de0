//go:build unix

package attach

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/fault"
)

// maxSocketPath is the longest path of a socket on all systems, in bytes.
const maxSocketPath = 103

// short calls f with a path of the socket that is short enough for a socket.
func short(path string, f func(path string) error) error {
	if len(path) <= maxSocketPath {
		return f(path)
	}
	if runtime.GOOS != "linux" {
		return fmt.Errorf("%s: the path is too long for a socket", path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + filepath.Base(path))
}

func listenUnix(path string) (l net.Listener, err error) {
	err = short(path, func(path string) error {
		u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			return err
		}
		u.SetUnlinkOnClose(false) // it moves
		l = u
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func connectUnix(ctx context.Context, path string) (conn net.Conn, err error) {
	err = short(path, func(path string) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path)
		return err
	})
	switch {
	case errors.Is(err, syscall.EAGAIN):
		return nil, fmt.Errorf("%w: too many processes attach at a time", db.ErrLocked) // it is tried again
	case err != nil:
		return nil, refused(err)
	}
	if err := greet(ctx, conn, ""); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, errSilent
		}
		return nil, errNobody // it has ended just now
	}
	return conn, nil
}

// errSilent says that the owner does not answer.
var errSilent = fault.Invalid(
	"the process that has the database open does not answer: is it stopped? Let it go on, or end it")

// refused returns errNobody if nobody listens.
func refused(err error) error {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return errNobody
	case errors.Is(err, fs.ErrPermission):
		return fault.Invalid("the database is open in a process of another user, who can serve it: fddhdb serve (%s)", err)
	}
	return dialError(err)
}

// checkOwner refuses a socket, or a file, of another user, because that user could read our requests and
// answer them.
func checkOwner(dir, path string, info fs.FileInfo) error {
	socket, is := info.Sys().(*syscall.Stat_t)
	if !is || int(socket.Uid) == os.Geteuid() {
		return nil
	}
	folder, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if of, is := folder.Sys().(*syscall.Stat_t); is && of.Uid == socket.Uid {
		return nil
	}
	return fault.Invalid("%s belongs to another user than the folder, and you: remove it", path)
}
