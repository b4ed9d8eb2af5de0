package netproxy

import (
	"bytes"
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// A pump reads chunks of at most chunkSize bytes and lets at most chunksAhead of them wait for their delay.
const (
	chunkSize   = 32 << 10
	chunksAhead = 64
)

// link is one accepted connection and its counterpart to the target.
type link struct {
	ctx      context.Context // done when the link has ended
	cancel   context.CancelFunc
	accepted *net.TCPConn

	mu     sync.Mutex
	dialed *net.TCPConn // nil until the target has answered; guarded by mu
}

func newLink(ctx context.Context, accepted *net.TCPConn) *link {
	l := &link{accepted: accepted}
	l.ctx, l.cancel = context.WithCancel(ctx)
	return l
}

// run dials the target and forwards both directions until both have ended or the link is aborted. While the
// gate is shut it does not dial: a target beyond a black hole cannot be reached either.
func (l *link) run(target string, g *gate) {
	defer l.cancel()
	dialed := l.dial(target, g)
	if dialed == nil {
		l.abort()
		return
	}
	var pumps sync.WaitGroup
	pumps.Go(func() { l.pump(dialed, l.accepted, g) })
	pumps.Go(func() { l.pump(l.accepted, dialed, g) })
	pumps.Wait()
	// Both streams have ended, or abort has closed both connections already. A plain close lets the kernel
	// deliver the bytes that it still holds.
	_ = dialed.Close()
	_ = l.accepted.Close()
}

// dial connects the link to its target. It returns nil if there is no answer or the link has been aborted.
func (l *link) dial(target string, g *gate) *net.TCPConn {
	if !g.pass(l.ctx, g.due()) {
		return nil
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(l.ctx, "tcp", target)
	if err != nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dialed = conn.(*net.TCPConn)
	if l.ctx.Err() != nil {
		return nil // abort came first and did not see this connection
	}
	return l.dialed
}

// abort resets both connections and ends the goroutines of the link.
func (l *link) abort() {
	l.cancel()
	l.mu.Lock()
	defer l.mu.Unlock()
	abort(l.accepted)
	if l.dialed != nil {
		abort(l.dialed)
	}
}

// chunk is bytes that were read together, and the error that ended the reading.
type chunk struct {
	data []byte
	err  error // io.EOF at the end of the stream
	due  time.Time
}

// pump forwards one direction: it reads from src, holds the bytes back as long as the gate says, and writes
// them to dst. The end of src passes the gate as well, because during a cut not even the end of a connection
// may be seen. If src or dst fails, pump aborts the whole link.
func (l *link) pump(dst, src *net.TCPConn, g *gate) {
	ahead := make(chan chunk, chunksAhead)
	var reader sync.WaitGroup
	reader.Go(func() { l.read(ahead, src, g) })
	defer reader.Wait()
	for {
		var c chunk
		select {
		case c = <-ahead:
		case <-l.ctx.Done():
			return
		}
		if !g.pass(l.ctx, c.due) {
			return
		}
		if _, err := dst.Write(c.data); err != nil {
			l.abort()
			return
		}
		if c.err == nil {
			continue
		}
		if c.err != io.EOF || dst.CloseWrite() != nil {
			l.abort()
		}
		return
	}
}

// read queues what src sends, and at last the error that ends it.
func (l *link) read(ahead chan<- chunk, src *net.TCPConn, g *gate) {
	buf := make([]byte, chunkSize)
	for {
		n, err := src.Read(buf)
		c := chunk{data: bytes.Clone(buf[:n]), err: err, due: g.due()}
		select {
		case ahead <- c:
		case <-l.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// abort closes conn with a TCP reset instead of a normal end, so that the peer sees an error and not the end
// of a complete stream.
func abort(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only on a closed connection
	_ = conn.Close()
}
