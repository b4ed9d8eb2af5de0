package natsproc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Ports come from below the ranges from which Linux, macOS and Windows take the local ports of outgoing
// connections. A port from such a range could be lost while its server is down: to any outgoing connection,
// even to a client that dials the dead server and by chance gets the same number as its own port.
const (
	firstPort = 12000
	endPort   = 32000
)

// freePorts returns the ports of n servers. Nothing listens on them when it returns, so another program can
// still take one; a server that cannot listen says so in its log and exits.
func freePorts(n int) ([]serverPorts, error) {
	var held []net.Listener // until all are found, so that none is found twice
	defer func() {
		for _, l := range held {
			_ = l.Close()
		}
	}()
	next := func() (int, error) {
		var errs error
		for range 100 {
			port := firstPort + rand.IntN(endPort-firstPort)
			l, err := net.Listen("tcp", loopback(port))
			if err == nil {
				held = append(held, l)
				return port, nil
			}
			errs = errors.Join(errs, err)
		}
		return 0, fmt.Errorf("natsproc: no free port: %w", errs)
	}
	ports := make([]serverPorts, n)
	for i := range ports {
		for _, port := range []*int{&ports[i].client, &ports[i].route, &ports[i].monitor} {
			var err error
			if *port, err = next(); err != nil {
				return nil, err
			}
		}
	}
	return ports, nil
}
