package cluster

import (
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnectNATS connects to the servers of a cluster, with the settings with which a node or a client goes on
// soonest when a server is lost: it notices within three seconds that its server is silent, and tries the
// others until one answers. urls are those of all servers, as servers need not tell of each other. options,
// such as nats.UserCredentials and nats.RootCAs, come on top.
func ConnectNATS(urls string, options ...nats.Option) (*nats.Conn, error) {
	all := append([]nats.Option{
		nats.Name("fddhdb"), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { slog.Debug("nats", "error", err) }),
		nats.ReconnectBufSize(-1), // what cannot be sent fails at once, and is not sent later when nobody waits for it
	}, options...)
	return nats.Connect(urls, all...)
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
