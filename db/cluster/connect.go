package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnectNATS connects to the servers of a cluster, with the settings with which a node or a client goes on
// soonest when a server is lost: it notices within three seconds that its server is silent, and tries the
// others until one answers. One that has been let in goes on trying even if the servers refuse it for a while, as they
// do between two changes of their configuration. urls are those of all servers, as servers need not tell of each
// other. options, such as nats.UserCredentials and nats.RootCAs, come on top.
//
// Package nats encrypts where the servers ask for it. Whom they let in, and who may connect without credentials, is the
// configuration of the servers: see permissions.conf.
func ConnectNATS(urls string, options ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("fddhdb"), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { slog.Debug("nats", "error", err) }),
		nats.ReconnectBufSize(-1), // what cannot be sent fails at once, and is not sent later when nobody waits for it
	}, options...)
	nc, err := nats.Connect(urls, all...)
	var untrusted *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &untrusted):
		err = fmt.Errorf("%w: %w", ErrServerCertificate, untrusted.Err)
	case errors.Is(err, nats.ErrTLS), errors.As(err, &remote) && remote.Op == "remote error":
		// The server checks the certificate of a client after the handshake. Whether it has said why before it closes the
		// connection is a matter of microseconds.
		err = fmt.Errorf("%w: %w", ErrClientCertificate, err)
	}
	return nc, err
}

// ConnectEach connects to each of the servers by a connection of its own, for NodeOptions.Conns: where a node
// has one to the server that a client is at, a request and its answer pass that server alone. urls are those
// of ConnectNATS. A server that does not answer is no error, and is tried again until it does.
func ConnectEach(urls string, options ...nats.Option) ([]*nats.Conn, error) {
	var all []*nats.Conn
	for _, url := range strings.Split(urls, ",") {
		nc, err := ConnectNATS(strings.TrimSpace(url), append([]nats.Option{nats.IgnoreDiscoveredServers(), nats.RetryOnFailedConnect(true)}, options...)...)
		if err != nil {
			for _, nc := range all {
				nc.Close()
			}
			return nil, err
		}
		all = append(all, nc)
	}
	return all, nil
}
