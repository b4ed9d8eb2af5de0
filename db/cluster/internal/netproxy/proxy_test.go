package netproxy_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fddhdb/fddhdb/db/cluster/internal/netproxy"
)

// patience bounds what must happen; silence is how long nothing may happen.
const (
	patience = 5 * time.Second
	silence  = 100 * time.Millisecond
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What a fault does to a connection that is there, and to a new one.
func TestFaults(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	sendAndExpect(t, client, "before")
	p.Cut()
	write(t, client, "during")
	late := dial(t, p)
	write(t, late, "patient")
	expectSilence(t, client)
	expectSilence(t, late)
	p.Heal()
	expect(t, client, "during")
	expect(t, late, "patient")

	const delay = 60 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	for range 20 { // they travel together
		write(t, client, "m")
	}
	expect(t, client, "mmmmmmmmmmmmmmmmmmmm")
	if took := time.Since(start); took < 2*delay {
		t.Errorf("a round trip took %v, want at least %v", took, 2*delay)
	}
	p.Delay(0)

	p.Reset()
	expectEnd(t, client)
	expectNoService(t, p)
	p.Heal()
	sendAndExpect(t, dial(t, p), "after")
}

// Cuts come and go while a stream runs that is much longer than all buffers.
func TestNoByteIsLostOrReorderedByCuts(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	sent := make([]byte, 16<<20)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(sent)

	failed := make(chan error, 1)
	go func() {
		_, err := client.Write(sent)
		failed <- errors.Join(err, client.CloseWrite())
	}()
	got := make([]byte, 0, len(sent))
	cuts := 0
	for buf := make([]byte, 64<<10); ; {
		client.SetReadDeadline(time.Now().Add(patience))
		n, err := client.Read(buf)
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("after %d of %d bytes: %v", len(got), len(sent), err)
		}
		if len(got) > (cuts+1)*(1<<20) {
			cuts++
			p.Cut()
			time.AfterFunc(time.Millisecond, p.Heal)
		}
	}
	if err := <-failed; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Fatalf("got %d bytes that differ from the %d sent", len(got), len(sent))
	}
	if cuts < 10 {
		t.Fatalf("only %d cuts", cuts)
	}
}

// listen serves each connection with handle and returns the address.
func listen(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go handle(c.(*net.TCPConn))
		}
	}()
	return l.Addr().String()
}

// echo serves connections that send back what they receive.
func echo(t *testing.T) string {
	t.Helper()
	return listen(t, func(c *net.TCPConn) {
		defer c.Close()
		io.Copy(c, c)
	})
}

// throughProxy returns a proxy to target and a connection through it.
func throughProxy(t *testing.T, target string) (*netproxy.Proxy, *net.TCPConn) {
	t.Helper()
	p, err := netproxy.Listen(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, dial(t, p)
}

func dial(t *testing.T, p *netproxy.Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c.(*net.TCPConn)
}

func write(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := c.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	got := make([]byte, len(want))
	if n, err := io.ReadFull(c, got); err != nil || string(got) != want {
		t.Fatalf("got %q, %v, want %q", got[:n], err, want)
	}
}

func sendAndExpect(t *testing.T, c net.Conn, s string) {
	t.Helper()
	write(t, c, s)
	expect(t, c, s)
}

// expectSilence checks that c stays open and nothing arrives.
func expectSilence(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(silence))
	n, err := c.Read(make([]byte, 1))
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want silence", n, err)
	}
	c.SetReadDeadline(time.Time{})
}

// expectEnd checks that c is closed or reset.
func expectEnd(t *testing.T, c net.Conn) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(patience))
	if n, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("read %d bytes, %v, want the end of the connection", n, err)
	}
}

// expectNoService checks that a new connection is reset. The reset may arrive
// before the dial has returned.
func expectNoService(t *testing.T, p *netproxy.Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return
	}
	defer c.Close()
	expectEnd(t, c)
}
