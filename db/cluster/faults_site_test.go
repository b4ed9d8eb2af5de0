//go:build unix

package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/netproxy"
)

// The size of a site. With two replicas on three nodes each pair of nodes has a shard.
const (
	siteServers  = 3
	siteNodes    = 3
	siteShards   = 3
	siteReplicas = 2
)

// A site is servers and nodes, all of them processes, with a proxy in every connection.
type site struct {
	t       *testing.T
	dir     string
	servers *natsproc.Group
	routes  map[[2]int]*netproxy.Proxy   // from a server to another
	doors   map[string][]*netproxy.Proxy // from a node or a client to each server
	nodes   []*nodeProcess
	mounted []string // folders that are small disks of their own: of the last node and the last server
	admin   *nats.Conn
}

func newSite(t *testing.T) *site {
	t.Helper()
	// The folder of a failed run is kept: it has the logs of all processes.
	dir, err := os.MkdirTemp("", "faults-site-")
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, routes: map[[2]int]*netproxy.Proxy{}, doors: map[string][]*netproxy.Proxy{}}
	t.Cleanup(s.close)
	s.mountSmall(s.serverDisk())
	s.mountSmall(s.nodeDisk())
	s.servers, err = natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(dir, "nats"),
		Servers: siteServers, RouteVia: s.route})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range siteNodes {
		names = append(names, fmt.Sprint("n", i))
	}
	for _, name := range names {
		n := &nodeProcess{config: nodeConfig{Node: name, Dir: filepath.Join(dir, name), URLs: s.urls(name),
			Backups: filepath.Join(dir, "backups")}, log: filepath.Join(dir, name+".log")}
		if err := n.start(); err != nil {
			t.Fatal(err)
		}
		s.nodes = append(s.nodes, n)
	}
	if s.admin, err = cluster.ConnectNATS(strings.Join(s.servers.URLs(), ","),
		nats.Name("admin")); err != nil {
		t.Fatal(err)
	}
	// Routes of a young group of servers come and go for a moment, and a request may be lost with one.
	for range 20 {
		err = cluster.Create(t.Context(), s.admin, "test", cluster.CreateOptions{
			Shards: siteShards, Replicas: siteReplicas, Nodes: names, Servers: siteServers,
			LogBytes: 192 << 20,
		})
		if err == nil || errors.Is(err, db.ErrExists) {
			return s
		}
		t.Log("create: ", err)
		pause(t.Context(), 500*time.Millisecond)
	}
	t.Fatal(err)
	return nil
}

func (s *site) route(from, to int, addr string) (string, error) {
	p, err := netproxy.Listen(addr)
	if err != nil {
		return "", err
	}
	s.routes[[2]int{from, to}] = p
	return p.Addr(), nil
}

// urls returns those of all servers, for a node or a client, by way of proxies of its own.
func (s *site) urls(of string) string {
	s.t.Helper()
	var urls []string
	for i := range siteServers {
		p, err := netproxy.Listen(strings.TrimPrefix(s.servers.URL(i), "nats://"))
		if err != nil {
			s.t.Fatal(err)
		}
		s.doors[of] = append(s.doors[of], p)
		urls = append(urls, "nats://"+p.Addr())
	}
	return strings.Join(urls, ",")
}

// around calls do for the proxies between a server and the others, or with other >= 0 that one.
func (s *site) around(server, other int, do func(*netproxy.Proxy)) {
	for pair, p := range s.routes {
		if pair[0] == server && (other < 0 || pair[1] == other) ||
			pair[1] == server && (other < 0 || pair[0] == other) {
			do(p)
		}
	}
}

// through calls do for the proxies of a node or a client, or with server >= 0 that to this server.
func (s *site) through(of string, server int, do func(*netproxy.Proxy)) {
	for i, p := range s.doors[of] {
		if server < 0 || server == i {
			do(p)
		}
	}
}

// smallBytes is the size of a small disk, enough for what is on it as long as nobody fills it.
const smallBytes = 1 << 30

// serverDisk is where the last server stores its logs, and nodeDisk where the last node has its shards.
func (s *site) serverDisk() string {
	return filepath.Join(s.dir, "nats", fmt.Sprint(siteServers-1), "store")
}

func (s *site) nodeDisk() string { return filepath.Join(s.dir, fmt.Sprint("n", siteNodes-1)) }

// mountSmall makes a folder a small disk of its own, where that can be done.
func (s *site) mountSmall(dir string) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		s.t.Log("no disk is full in this run: that takes root, and Linux")
		return
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", fmt.Sprint("size=", smallBytes), "faults",
		dir).CombinedOutput(); err != nil {
		s.t.Logf("no disk is full in this run: mount: %v: %s", err, out)
		return
	}
	s.mounted = append(s.mounted, dir)
}

// small reports whether a folder is a small disk.
func (s *site) small(dir string) bool { return slices.Contains(s.mounted, dir) }

func filler(dir string) string { return filepath.Join(dir, "filler") }

// fill fills a small disk to the last byte.
func fill(dir string) error {
	f, err := os.Create(filler(dir))
	if err != nil {
		return err
	}
	defer f.Close()
	for block := make([]byte, 64<<10); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return nil
}

// empty ends fill.
func empty(dir string) error { return os.Remove(filler(dir)) }

// close ends all processes. Nodes that do not end in good order fail the test.
func (s *site) close() {
	for _, n := range s.nodes {
		if err := n.close(); err != nil {
			s.t.Error(err)
		}
	}
	if s.admin != nil {
		s.admin.Close()
	}
	if s.servers != nil {
		s.servers.Close()
	}
	for _, p := range s.routes {
		_ = p.Close()
	}
	for _, all := range s.doors {
		for _, p := range all {
			_ = p.Close()
		}
	}
	for _, dir := range s.mounted {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			s.t.Errorf("umount: %v: %s", err, out)
		}
	}
	if s.t.Failed() || *faultsKeep {
		s.t.Log("logs of all processes are in ", s.dir)
		return
	}
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Error(err)
	}
}

// connect returns a client with a connection and proxies of its own.
func (s *site) connect(name string) *cluster.Client {
	s.t.Helper()
	nc, err := cluster.ConnectNATS(s.urls(name), nats.Name(name))
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := cluster.Connect(s.t.Context(), nc, "test", cluster.ClientOptions{})
	for tries := 0; err != nil && tries < 20; tries++ { // the servers may just be electing leaders
		s.t.Log("connect: ", err)
		pause(s.t.Context(), 500*time.Millisecond)
		c, err = cluster.Connect(s.t.Context(), nc, "test", cluster.ClientOptions{})
	}
	if err != nil {
		nc.Close()
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := c.Close(); err != nil && !errors.Is(err, context.Canceled) {
			s.t.Error(err)
		}
		nc.Close()
	})
	return c
}
