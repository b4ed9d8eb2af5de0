package promcluster_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/promcluster"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

// Metrics tell what a node and a client have done, and the page of SCALE.md names them all.
func TestMetrics(t *testing.T) {
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(dir, "nats"), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	nc, err := cluster.ConnectNATS(strings.Join(servers.URLs(), ","))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if err := cluster.Create(t.Context(), nc, "main", cluster.CreateOptions{Shards: 2, Replicas: 1,
		Servers: 1, Nodes: []string{"a"}, LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "main", Node: "a",
		Dir: filepath.Join(dir, "a"), Conn: nc, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	c, err := cluster.Connect(t.Context(), nc, "main", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	codes, err := c.CreateCollection(t.Context(), "codes", db.Schema{Bits: 16})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := codes.Put(t.Context(), &db.Item{Key: fmt.Sprint(i), Code: []byte{1, 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := codes.Count(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(promcluster.OfNode(n), promcluster.OfClient(c))
	value := func(name string) (sum float64) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				if f.GetName() == name {
					sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
				}
			}
		}
		return sum
	}
	for end := time.Now().Add(time.Minute); value("fddhdb_cluster_replica_items") != 10 &&
		time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
	}
	for name, want := range map[string]float64{
		"fddhdb_cluster_replica_items": 10, "fddhdb_cluster_replica_operations_total": 12,
		"fddhdb_cluster_replica_applied_sequence": 12,
		"fddhdb_cluster_replica_behind_messages":  0, "fddhdb_cluster_replica_problem": 0,
		"fddhdb_cluster_failed_total": 0,
	} {
		if got := value(name); got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	if value("fddhdb_cluster_requests_total") < 2 {
		t.Error("no request has been counted")
	}
	page, err := os.ReadFile("../../../docs/SCALE.md")
	if err != nil {
		t.Fatal(err)
	}
	families, _ := registry.Gather()
	for _, f := range families {
		if !strings.Contains(string(page), "`"+f.GetName()+"`") {
			t.Errorf("docs/SCALE.md does not have %s", f.GetName())
		}
	}
}
