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

func TestForwardsBothDirections(t *testing.T) {
	_, client := throughProxy(t, echo(t))
	sendAndExpect(t, client, "hello")
}

func TestHalfCloseReachesTheTarget(t *testing.T) {
	_, client := throughProxy(t, echo(t))
	// The echo ends its stream only after it has seen the end of ours.
	write(t, client, "last words")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(client)
	if err != nil || string(got) != "last words" {
		t.Fatalf("after half close: %q, %v", got, err)
	}
}

func TestCutIsSilentAndHealDelivers(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	sendAndExpect(t, client, "before")
	p.Cut()
	write(t, client, "during")
	expectSilence(t, client)
	p.Heal()
	expect(t, client, "during")
	sendAndExpect(t, client, "after")
}

func TestNewConnectionsHangDuringCut(t *testing.T) {
	p, _ := throughProxy(t, echo(t))
	p.Cut()
	client := dial(t, p)
	write(t, client, "patient")
	expectSilence(t, client)
	p.Heal()
	expect(t, client, "patient")
}

func TestEndOfConnectionIsHiddenDuringCut(t *testing.T) {
	accepted := make(chan *net.TCPConn, 1)
	p, client := throughProxy(t, listen(t, func(c *net.TCPConn) { accepted <- c }))
	write(t, client, "x")
	server := <-accepted
	t.Cleanup(func() { server.Close() })
	expect(t, server, "x")

	p.Cut()
	write(t, server, "bye")
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	expectSilence(t, client)
	p.Heal()
	got, err := io.ReadAll(client)
	if err != nil || string(got) != "bye" {
		t.Fatalf("after heal: %q, %v", got, err)
	}
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

func TestResetEndsAndRefusesConnections(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	sendAndExpect(t, client, "before")
	p.Reset()
	expectEnd(t, client)
	expectNoService(t, p)
	p.Heal()
	sendAndExpect(t, dial(t, p), "after")
}

func TestResetDropsWhatACutHeldBack(t *testing.T) {
	seen := make(chan []byte, 1)
	p, client := throughProxy(t, listen(t, func(c *net.TCPConn) {
		defer c.Close()
		var got bytes.Buffer
		io.Copy(io.MultiWriter(&got, c), c)
		seen <- got.Bytes()
	}))
	sendAndExpect(t, client, "a")
	p.Cut()
	write(t, client, "b")
	p.Reset()
	expectEnd(t, client)
	if got := string(<-seen); got != "a" {
		t.Fatalf("the target saw %q, want %q", got, "a")
	}
}

func TestDelayTakesItsTimeInEachDirection(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	sendAndExpect(t, client, "connected")
	const delay = 60 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	sendAndExpect(t, client, "slow")
	if took := time.Since(start); took < 2*delay {
		t.Errorf("a round trip took %v, want at least %v", took, 2*delay)
	}
	p.Delay(0)
	start = time.Now()
	sendAndExpect(t, client, "fast")
	if took := time.Since(start); took > delay {
		t.Errorf("a round trip without delay took %v", took)
	}
}

// A delay is latency, not a pause after each read: many small messages that are
// sent one after the other arrive one delay later, all of them.
func TestDelayedMessagesTravelTogether(t *testing.T) {
	p, client := throughProxy(t, echo(t))
	const delay = 100 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	for range 20 {
		write(t, client, "m")
	}
	expect(t, client, "mmmmmmmmmmmmmmmmmmmm")
	if took := time.Since(start); took > 10*delay {
		t.Errorf("20 messages took %v", took)
	}
}

func TestTargetThatDoesNotListen(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p, err := netproxy.Listen(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	expectNoService(t, p)
}

// Close must not wait for a heal that never comes.
func TestCloseDuringFaults(t *testing.T) {
	for name, fault := range map[string]func(*netproxy.Proxy){
		"cut":   (*netproxy.Proxy).Cut,
		"reset": (*netproxy.Proxy).Reset,
		"delay": func(p *netproxy.Proxy) { p.Delay(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			p, client := throughProxy(t, echo(t))
			fault(p)
			client.Write([]byte("stuck")) // fails after a reset, as it should
			if c, err := net.Dial("tcp", p.Addr()); err == nil {
				defer c.Close()
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
			if err := p.Close(); err != nil {
				t.Fatalf("second close: %v", err)
			}
			expectEnd(t, client)
		})
	}
}

func TestBadTarget(t *testing.T) {
	if p, err := netproxy.Listen("no port"); err == nil {
		p.Close()
		t.Fatal("a target without a port was accepted")
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
