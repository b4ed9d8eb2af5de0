// Package netproxy is a TCP proxy that breaks on demand. Tests put it between two processes and then take the
// network away, slow it down or reset it, while the processes themselves go on running.
//
//	p, err := netproxy.Listen("127.0.0.1:4222")
//	...
//	defer p.Close()
//	connectTo(p.Addr())
//	p.Cut()  // silence: no bytes, no errors
//	p.Heal() // everything that was sent during the silence arrives
//
// # Faults
//
// Cut is a black hole, as when a switch drops every packet. Connections stay open, new connections are
// accepted, and nothing gets through in either direction, the end of a connection included. Peers notice it
// only by their own timeouts.
//
// Reset is a crash of the machine in the middle: every connection ends with a TCP reset, and so does each new
// one at once.
//
// Delay adds a fixed time to each direction. A request and its reply take twice as long.
//
// # Bytes are never lost or reordered within a connection
//
// A connection that lives through a Cut delivers, after Heal, every byte that was sent during the cut, in
// order and before the end of the stream. The sender feels back pressure once the buffers in between are
// full. The only way in which bytes do not arrive is that the connection itself ends with an error: by Reset,
// by Close, or because one of the two peers resets it.
//
// # Concurrency
//
// All methods may be called from any goroutine. Close waits for every goroutine that the proxy has started.
package netproxy
