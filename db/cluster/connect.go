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
// others until one answers. A connection that the servers have accepted once is tried again even if they
// refuse it for a while, as they do while their configuration is changed. urls has the URLs of all servers,
// because a server may not tell of the others. options, such as nats.UserCredentials and nats.RootCAs, come
// on top.
//
// Package nats encrypts the connection if the servers ask for it. The configuration of the servers decides
// which users may connect, and whether credentials are needed: see permissions.conf.
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
		// The server checks the certificate of a client after the handshake. Whether it has said why before
		// it closes the connection is a matter of microseconds.
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
