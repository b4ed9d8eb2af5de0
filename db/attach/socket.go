package attach

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fddhdb/fddhdb/db/fault"
)

// socketName is the name of the socket, or of the file in its place, in the folder of a database.
const socketName = "OWNER"

// errNobody says that nobody serves the folder: there is no socket, or nobody listens to it.
var errNobody = errors.New("nobody serves the database")

// handshake bounds the time in which a connection by TCP has to show the secret.
const handshake = 5 * time.Second

// A port is what OWNER has where it is a file.
type port struct {
	Address string `json:"address"` // of the loopback
	Secret  string `json:"secret"`
}

// listen makes the socket of a folder, whose lock this process holds. One that was left by a crash is
// replaced.
func listen(dir string) (*socket, error) {
	// Processes that were killed here have left folders.
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), socketName+"-") {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	// The socket gets its mode before anybody can reach it: in a folder of ours, from which it moves to its
	// place.
	tmp, err := os.MkdirTemp(dir, socketName+"-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, socketName)
	l, err := listenUnix(made)
	if err == nil {
		l = newGate(l, "")
	} else if l, err = listenTCP(made); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, socketName)
	info, err := os.Lstat(made)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{l, path, info}, nil
}

// A socket is a listener with its file.
type socket struct {
	net.Listener
	path string
	info fs.FileInfo
}

// withdraw removes the file, unless another owner has replaced it. The caller holds the lock of the
// folder.
func (s *socket) withdraw() error {
	now, err := os.Lstat(s.path)
	if err == nil && os.SameFile(s.info, now) {
		err = os.Remove(s.path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// connect connects to the owner of a folder; errNobody says that there is none.
func connect(ctx context.Context, dir string) (net.Conn, error) {
	path := filepath.Join(dir, socketName)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNobody
	case err != nil:
		return nil, dialError(err)
	}
	if err := checkOwner(dir, path, info); err != nil {
		return nil, err
	}
	if info.Mode().IsRegular() {
		return connectTCP(ctx, path)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return nil, fault.Invalid("%s is neither the socket nor the file of an owner: remove it", path)
	}
	return connectUnix(ctx, path)
}

// listenTCP listens on a port of the loopback address, and writes it to a file with a secret.
func listenTCP(path string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := port{l.Addr().String(), rand.Text() + rand.Text()}
	b, err := json.Marshal(p)
	if err == nil {
		err = os.WriteFile(path, b, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return newGate(l, p.Secret), nil
}

func connectTCP(ctx context.Context, path string) (net.Conn, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNobody
	}
	if err != nil {
		return nil, err
	}
	var p port
	if err := json.Unmarshal(b, &p); err != nil || p.Secret == "" {
		return nil, fault.Invalid("%s is not the file of an owner: remove it", path)
	}
	host, _, err := net.SplitHostPort(p.Address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fault.Invalid("%s names %q, and not this machine: remove it", path, p.Address)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Address)
	if err != nil {
		return nil, refused(err)
	}
	if err := greet(ctx, conn, p.Secret); err != nil {
		return nil, errNobody // another program has the port by now
	}
	return conn, nil
}

// greet shows the secret, "" by a socket, and waits until the owner answers. The system connects to a socket
// also for a process that is stopped.
func greet(ctx context.Context, conn net.Conn, secret string) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	_ = conn.SetDeadline(time.Now().Add(handshake))
	_, err := io.WriteString(conn, secret+"\n")
	var answer [1]byte
	if err == nil {
		_, err = io.ReadFull(conn, answer[:])
	}
	if err == nil && answer[0] != '\n' {
		err = errNobody
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	return nil
}

// A gate is a listener whose connections have shown the secret.
type gate struct {
	net.Listener
	secret string
	open   chan net.Conn
	closed chan struct{}
}

func newGate(l net.Listener, secret string) *gate {
	g := &gate{l, secret, make(chan net.Conn), make(chan struct{})}
	go func() {
		defer close(g.closed)
		for {
			conn, err := l.Accept()
			if err != nil {
				if errors.Is(err, net.ErrClosed) {
					return
				}
				time.Sleep(10 * time.Millisecond) // such as too many open files
				continue
			}
			go g.check(conn)
		}
	}()
	return g
}

func (g *gate) check(conn net.Conn) {
	_ = conn.SetDeadline(time.Now().Add(handshake))
	shown := make([]byte, len(g.secret)+1)
	_, err := io.ReadFull(conn, shown)
	if err != nil || subtle.ConstantTimeCompare(shown, []byte(g.secret+"\n")) != 1 {
		_ = conn.Close()
		return
	}
	if _, err := conn.Write([]byte{'\n'}); err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetDeadline(time.Time{})
	select {
	case g.open <- conn:
	case <-g.closed:
		_ = conn.Close()
	}
}

// Accept implements net.Listener.
func (g *gate) Accept() (net.Conn, error) {
	select {
	case conn := <-g.open:
		return conn, nil
	case <-g.closed:
		return nil, net.ErrClosed
	}
}
