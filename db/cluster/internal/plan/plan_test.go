package plan_test

import (
	"errors"
	"os"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/cluster/internal/plan"
)

func TestMain(m *testing.M) {
	natsproc.Main()
	os.Exit(m.Run())
}

// A second Make of the same name, as by a client that has not seen the first one, changes nothing.
func TestMakeOnce(t *testing.T) {
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: t.TempDir(), Servers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(servers.Close)
	nc, err := nats.Connect(servers.URL(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	makes := func(id, node string) error {
		return plan.Make(t.Context(), js, "test", plan.Settings{ID: id, Shards: 1, Replicas: 1, Servers: 1},
			[]plan.Placement{{Nodes: []string{node}}})
	}
	if err := makes("first", "n0"); err != nil {
		t.Fatal(err)
	}
	if err := makes("second", "n1"); !errors.Is(err, db.ErrExists) {
		t.Error(err)
	}
	p, err := plan.Open(t.Context(), js, "test")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if nodes := p.Nodes(0); len(nodes) != 1 || nodes[0] != "n0" || p.Settings.ID != "first" {
		t.Errorf("%q, %+v", nodes, p.Settings)
	}
}
