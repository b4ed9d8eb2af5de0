package cluster_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	nodeMain()
	os.Exit(m.Run())
}

// A house is NATS servers, as processes, and nodes, in this process.
type house struct {
	t       *testing.T
	dir     string
	servers *natsproc.Group
	nodes   map[string]*cluster.Node
	conns   map[string]*nats.Conn
}

// build starts servers and nodes, and makes a cluster with so many shards.
func build(t *testing.T, servers, nodes, shards, replicas int) *house {
	t.Helper()
	return buildLogs(t, servers, nodes, shards, replicas, 256<<20)
}

// buildLogs is build with logs that hold so many bytes.
func buildLogs(t *testing.T, servers, nodes, shards, replicas int, logBytes int64) *house {
	t.Helper()
	h := &house{t: t, dir: t.TempDir(), nodes: map[string]*cluster.Node{}, conns: map[string]*nats.Conn{}}
	var err error
	h.servers, err = natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(h.dir, "nats"),
		Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	var all []string
	for i := range nodes {
		all = append(all, fmt.Sprint("n", i))
		h.open(all[i])
	}
	err = cluster.Create(t.Context(), h.conn("admin"), "test",
		cluster.CreateOptions{Shards: shards, Replicas: replicas, Nodes: all, Servers: servers,
			LogBytes: logBytes})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// conn returns a connection of somebody.
func (h *house) conn(of string) *nats.Conn {
	h.t.Helper()
	if nc := h.conns[of]; nc != nil {
		return nc
	}
	nc, err := cluster.ConnectNATS(strings.Join(h.servers.URLs(), ","), nats.Name(of))
	if err != nil {
		h.t.Fatal(err)
	}
	h.conns[of] = nc
	return nc
}

// open opens a node.
func (h *house) open(node string) *cluster.Node {
	h.t.Helper()
	n, err := cluster.Open(h.t.Context(), cluster.NodeOptions{
		Cluster: "test", Node: node, Dir: filepath.Join(h.dir, node), Conn: h.conn(node),
		Log:     slog.New(slog.DiscardHandler),
		Backups: filepath.Join(h.dir, "backups"),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	h.nodes[node] = n
	return n
}

// leave closes a node.
func (h *house) leave(node string) {
	h.t.Helper()
	if err := h.nodes[node].Close(); err != nil {
		h.t.Error(err)
	}
	delete(h.nodes, node)
}

// connect returns a client of its own.
func (h *house) connect() *cluster.Client {
	h.t.Helper()
	c, err := cluster.Connect(h.t.Context(), h.conn("client"), "test", cluster.ClientOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

func (h *house) close() {
	for node := range h.nodes {
		h.leave(node)
	}
	for _, nc := range h.conns {
		nc.Close()
	}
	h.servers.Close()
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in a minute not: %s", what)
		}
	}
}

func codesOf(t testing.TB, c *cluster.Client) *cluster.Collection {
	t.Helper()
	codes, err := c.CreateCollection(t.Context(), "codes",
		db.Schema{Bits: 16, Fields: []db.Field{{Name: "year", Type: db.Int, Indexed: true}}})
	if err != nil {
		t.Fatal(err)
	}
	return codes
}
