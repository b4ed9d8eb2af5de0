package netproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Proxy forwards the connections that it accepts at Addr to its target, unless a fault is switched on.
type Proxy struct {
	target   string
	listener net.Listener
	running  sync.WaitGroup // accept and every link
	gate     *gate
	closing  context.Context // done when Close has been called
	close    context.CancelFunc

	mu    sync.Mutex
	links map[*link]struct{} // guarded by mu
	reset bool               // new connections are reset; guarded by mu
}

// Listen starts a proxy on a free port of the loopback interface. It does not dial target before a first
// connection arrives, so target need not exist yet.
func Listen(target string) (*Proxy, error) {
	if _, _, err := net.SplitHostPort(target); err != nil {
		return nil, fmt.Errorf("netproxy: target %q: %w", target, err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("netproxy: listen: %w", err)
	}
	p := &Proxy{
		target:   target,
		listener: listener,
		gate:     newGate(),
		links:    make(map[*link]struct{}),
	}
	p.closing, p.close = context.WithCancel(context.Background())
	p.running.Add(1)
	go p.accept()
	return p, nil
}

// Addr returns the address to connect to, as host:port. It stays the same until Close, also during faults.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Cut makes the proxy a black hole until Heal. Of the bytes that are on their way while Cut is called, up to
// 32 KB in each direction of a connection may still arrive; nothing that is sent after Cut has returned does.
// Cut also ends the effect of Reset: new connections hang instead.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset = false
	p.gate.shut()
}

// Reset ends every connection with a TCP reset. Until Heal or Cut, each new connection is accepted and reset
// at once. The port itself stays bound, so that no other program can take it and Heal cannot fail.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset = true
	p.abortLinks() // before the gate opens, so that nothing slips through
	p.gate.open()
}

// Heal ends Cut and Reset. It does not end Delay.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reset = false
	p.gate.open()
}

// Delay makes each byte that the proxy reads from now on arrive d later, in each direction. Zero or less ends
// the delay. At most 2 MB are on their way in one direction of a connection, so a delay also bounds the
// throughput.
func (p *Proxy) Delay(d time.Duration) { p.gate.delay.Store(int64(max(d, 0))) }

// Close resets every connection, frees the port and waits until all goroutines of the proxy have ended. A
// second Close does nothing.
func (p *Proxy) Close() error {
	p.close()
	err := p.listener.Close()
	p.mu.Lock()
	p.abortLinks()
	p.mu.Unlock()
	p.running.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("netproxy: close: %w", err)
	}
	return nil
}

// accept starts a link for each connection until the listener is closed.
func (p *Proxy) accept() {
	defer p.running.Done()
	for {
		conn, err := p.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// A peer that goes away between its dial and our accept is no reason to stop. Lack of file
			// descriptors is, but not for ever.
			select {
			case <-time.After(10 * time.Millisecond):
				continue
			case <-p.closing.Done():
				return
			}
		}
		p.admit(conn.(*net.TCPConn))
	}
}

// admit starts a link for conn, or resets conn if a Reset or Close is in force.
func (p *Proxy) admit(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reset || p.closing.Err() != nil {
		abort(conn)
		return
	}
	l := newLink(p.closing, conn)
	p.links[l] = struct{}{}
	p.running.Go(func() {
		l.run(p.target, p.gate)
		p.mu.Lock()
		delete(p.links, l)
		p.mu.Unlock()
	})
}

// abortLinks resets every connection. The caller holds mu. The links leave the set by themselves when their
// goroutines end.
func (p *Proxy) abortLinks() {
	for l := range p.links {
		l.abort()
	}
}
