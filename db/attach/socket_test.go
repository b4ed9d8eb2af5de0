package attach

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// On a system without Unix sockets, OWNER is a file with a port and a secret. A client that does not send the
// secret first gets no answer. If another program listens on the port by now, the folder has no owner.
func TestPort(t *testing.T) {
	path := filepath.Join(t.TempDir(), socketName)
	l, err := listenTCP(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info, err)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "hello")
			_ = conn.Close()
		}
	}()
	conn, err := connectTCP(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(conn); err != nil || string(b) != "hello" {
		t.Errorf("%q, %v", b, err)
	}
	for what, first := range map[string]string{
		"a wrong secret": strings.Repeat("x", 53), "half a secret": "x",
		"HTTP": "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", 60) + "\r\n\r\n"} {
		stranger, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(stranger, first)
		_ = stranger.(*net.TCPConn).CloseWrite()
		_ = stranger.SetReadDeadline(time.Now().Add(time.Minute))
		if b, _ := io.ReadAll(stranger); len(b) > 0 {
			t.Errorf("%s: a stranger gets %q", what, b)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := connectTCP(t.Context(), path); !errors.Is(err, errNobody) {
		t.Errorf("after the end: %v", err)
	}

	// Another program has got the port, and answers in its own way.
	other, err := net.Listen("tcp", l.Addr().String())
	if err != nil {
		return // a third program was faster
	}
	defer other.Close()
	go func() {
		conn, err := other.Accept()
		if err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			_ = conn.Close()
		}
	}()
	if _, err := connectTCP(t.Context(), path); !errors.Is(err, errNobody) {
		t.Errorf("another program: %v", err)
	}
}
