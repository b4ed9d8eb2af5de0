package natsproc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// configVariable names the environment variable that turns an executable into a NATS server. Its value is the
// path of the configuration file.
const configVariable = "FDDHDB_NATSPROC_CONFIG"

// Main returns at once in a normal process. In a process that Start has made, it runs a NATS server and never
// returns. Call it before anything else, because what comes before it also happens in every server.
func Main() {
	path := os.Getenv(configVariable)
	if path == "" {
		return
	}
	if err := serve(path); err != nil {
		fmt.Fprintln(os.Stderr, "natsproc:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs a server until SIGTERM, an interrupt or the end of standard input. The parent holds the other
// end of standard input and never writes.
func serve(path string) error {
	opts, err := server.ProcessConfigFile(path)
	if err != nil {
		return err
	}
	opts.NoSigs = true
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()

	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	orphaned := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any error means the same: no parent
		close(orphaned)
	}()
	go func() {
		select {
		case <-signals:
			s.Shutdown()
		case <-orphaned:
			// The data will not be read again: hand over nothing.
			os.Exit(1)
		}
	}()

	s.Start()
	s.WaitForShutdown()
	return nil
}

// Config describes a group of servers. Dir and Servers are required.
type Config struct {
	// Dir holds a folder for each server, named by its number, with its configuration, log and store. It is
	// created if need be. It is not removed.
	Dir string

	// Servers is how many servers run. One server is not clustered. A group that is to survive the loss of
	// one server needs three.
	Servers int

	// ClusterName is the NATS name of the cluster; "natsproc" if empty.
	ClusterName string

	// MaxFileStore bounds the bytes that each server stores; 4 GB if zero.
	MaxFileStore int64

	// RouteVia, if not nil, returns the address by which server from is to reach the route port of server to,
	// which is addr. Start calls it once for each ordered pair, from one goroutine and before any server
	// runs. A test starts a proxy to addr here and returns the proxy's address.
	RouteVia func(from, to int, addr string) (string, error)

	// ExtraConfig is appended to the configuration of each server, for example accounts, TLS for clients or
	// ping intervals. It must not have a block that is there already (cluster, jetstream), because NATS lets
	// the last block replace the first.
	ExtraConfig string

	// ExtraCluster is appended inside the cluster block, for example TLS or a ping interval for routes.
	ExtraCluster string

	// ClientOptions are how this package itself connects to find out whether the group is ready. Groups with
	// authorization or TLS need them. The user must be allowed to create a stream.
	ClientOptions []nats.Option
}

// withDefaults checks c and fills in empty fields.
func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("natsproc: config without Dir")
	}
	if c.Servers < 1 {
		return c, fmt.Errorf("natsproc: config with %d servers", c.Servers)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("natsproc: %w", err)
	}
	c.Dir = dir
	if c.ClusterName == "" {
		c.ClusterName = "natsproc"
	}
	if c.MaxFileStore == 0 {
		c.MaxFileStore = 4 << 30
	}
	return c, nil
}

// serverPorts are the loopback ports of one server.
type serverPorts struct{ client, route, monitor int }

// loopback returns the address of a local port.
func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// nowhere is an address on which nothing listens. Servers announce it to each other as their route address:
// see the package comment.
const nowhere = "127.0.0.1:1"

// writeConfig writes the configuration file of server i into its folder.
func (c Config) writeConfig(i int, ports []serverPorts) error {
	text, err := c.render(i, ports)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.folder(i), 0o755); err != nil {
		return fmt.Errorf("natsproc: %w", err)
	}
	// ExtraConfig may hold passwords.
	if err := os.WriteFile(c.configFile(i), []byte(text), 0o600); err != nil {
		return fmt.Errorf("natsproc: %w", err)
	}
	return nil
}

// render returns the configuration of server i.
func (c Config) render(i int, ports []serverPorts) (string, error) {
	var b strings.Builder
	p := ports[i]
	fmt.Fprintf(&b, "server_name: %q\n", serverName(i))
	fmt.Fprintf(&b, "listen: %q\n", loopback(p.client))
	fmt.Fprintf(&b, "http: %q\n", loopback(p.monitor))
	fmt.Fprintf(&b, "jetstream {\n  store_dir: %q\n  sync_interval: always\n  max_file_store: %d\n}\n",
		filepath.ToSlash(filepath.Join(c.folder(i), "store")), c.MaxFileStore)
	if c.Servers > 1 {
		fmt.Fprintf(&b, "cluster {\n  name: %q\n  listen: %q\n  no_advertise: true\n  advertise: %q\n  routes: [\n",
			c.ClusterName, loopback(p.route), nowhere)
		for to := range ports {
			if to == i {
				continue
			}
			addr := loopback(ports[to].route)
			if c.RouteVia != nil {
				var err error
				if addr, err = c.RouteVia(i, to, addr); err != nil {
					return "", fmt.Errorf("natsproc: route from server %d to %d: %w", i, to, err)
				}
			}
			fmt.Fprintf(&b, "    %q\n", "nats-route://"+addr)
		}
		fmt.Fprintf(&b, "  ]\n%s\n}\n", c.ExtraCluster)
	}
	fmt.Fprintln(&b, c.ExtraConfig)
	return b.String(), nil
}

func (c Config) folder(i int) string     { return filepath.Join(c.Dir, fmt.Sprint(i)) }
func (c Config) configFile(i int) string { return filepath.Join(c.folder(i), "server.conf") }
func (c Config) logFile(i int) string    { return filepath.Join(c.folder(i), "server.log") }

// serverName is the NATS name of server i. Stream.Info names leaders and replicas by it.
func serverName(i int) string { return fmt.Sprintf("server-%d", i) }
