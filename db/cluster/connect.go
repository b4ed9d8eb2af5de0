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

// ConnectNATS connects to the servers of a cluster, with settings for fast failover: the connection notices
// within three seconds that its server is silent, and tries the others until one answers. After the servers
// have accepted the connection once, it keeps trying even while they refuse it, as they may while their
// configuration changes. urls has the URLs of all servers, because a server may not tell of the others.
// options are added, such as nats.UserCredentials and nats.RootCAs.
//
// Package nats encrypts the connection if the servers ask for it. The servers' configuration decides which
// users may connect, and whether they need credentials: see permissions.conf.
func ConnectNATS(urls string, options ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("fddhdb"), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { slog.Debug("nats", "error", err) }),
		nats.ReconnectBufSize(-1), // an unsendable message fails at once; it is not sent later, when no caller waits for it
	}, options...)
	nc, err := nats.Connect(urls, all...)
	var untrusted *tls.CertificateVerificationError
	var remote *net.OpError
	switch {
	case errors.As(err, &untrusted):
		err = fmt.Errorf("%w: %w", ErrServerCertificate, untrusted.Err)
	case errors.Is(err, nats.ErrTLS), errors.As(err, &remote) && remote.Op == "remote error":
		// The server checks a client's certificate after the handshake. Whether its reason arrives before it
		// closes the connection is a race of microseconds.
		err = fmt.Errorf("%w: %w", ErrClientCertificate, err)
	}
	return nc, err
}

// ConnectEach opens a connection to each server, for NodeOptions.Conns. If a node has a connection to the
// client's server, a request and its answer pass that server alone. urls are as for ConnectNATS. A server
// that does not answer is no error; the connection keeps trying.
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
