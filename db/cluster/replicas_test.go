package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/backup"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/db/shard"
)

// count is how many items a client counts.
func count(t *testing.T, c *cluster.Client) int {
	t.Helper()
	n, err := c.Collection("codes").Count(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// inStep waits until the replicas of each shard, so many, are at one position, and have everything.
func (h *house) inStep(replicas, items int) {
	h.t.Helper()
	var last string
	eventually(h.t, "the replicas are in step", func() bool {
		type at struct{ seq, chain uint64 }
		shards, n := map[int][]at{}, 0
		for _, node := range h.nodes {
			for _, s := range node.Status().Shards {
				shards[s.Shard] = append(shards[s.Shard], at{s.Applied, s.Chain})
				n += s.Items
			}
		}
		last = fmt.Sprint(shards, n)
		for _, all := range shards {
			if len(all) != replicas ||
				slices.Max(seqs(all, func(a at) uint64 { return a.seq })) != slices.Min(
					seqs(all, func(a at) uint64 { return a.seq })) {
				return false
			}
		}
		return n == replicas*items
	})
	h.t.Log(last)
}

func seqs[T any](all []T, f func(T) uint64) (some []uint64) {
	for _, a := range all {
		some = append(some, f(a))
	}
	return some
}

func putSome(t *testing.T, c *cluster.Client, from, to int) {
	t.Helper()
	var items []*db.Item
	for i := from; i < to; i++ {
		items = append(items, &db.Item{Key: fmt.Sprint("k", i), Code: []byte{byte(i), byte(i >> 8)},
			Labels: []string{fmt.Sprint("l", i%13)}})
	}
	importAll(t, c.Collection("codes"), items)
}

// Logs are trimmed behind backups. A node that was away meanwhile, and one that is new, begin with a backup
// and go on with the log; and shards move while searches go on.
func TestReplicasComeAndGo(t *testing.T) {
	h := build(t, 3, 3, 2, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 300)
	h.inStep(2, 300)
	h.leave("n1")                    // it has both shards
	for i := 300; i < 600; i += 50 { // some messages
		putSome(t, c, i, i+50)
	}
	backups, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1})
	if err != nil || len(backups) != 2 {
		t.Fatal(backups, err)
	}
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		s, err := js.Stream(t.Context(), fmt.Sprint("FDDHDB_test_", i))
		if err != nil || s.CachedInfo().State.Msgs > 2 {
			t.Errorf("the log of shard %d was not trimmed: %+v, %v", i, s, err)
		}
	}
	putSome(t, c, 600, 700)
	h.open("n1")
	h.inStep(2, 700)
	// Of what was there before, the backups have all.
	if all, err := filepath.Glob(filepath.Join(h.dir, "n1", "shard-*.*")); err != nil || len(all) > 0 {
		t.Errorf("%q, %v", all, err)
	}

	// A new node takes over, while searches go on.
	h.open("n3")
	beside(t, func(ctx context.Context) error {
		_, err := c.Collection("codes").Search(ctx, cluster.Query{Query: db.Query{Code: []byte{1, 1}}})
		return err
	}, func() {
		if err := c.Drain(t.Context(), "n1", nil); err != nil {
			t.Error(err)
		}
		putSome(t, c, 700, 800)
	})
	for _, p := range c.Placement() {
		if len(p.Nodes) != 2 || slices.Contains(p.Nodes, "n1") {
			t.Errorf("shard %d is on %q", p.Shard, p.Nodes)
		}
	}
	eventually(t, "n1 has nothing any more", func() bool { return len(h.nodes["n1"].Status().Shards) == 0 })
	h.inStep(2, 800)
	if err := c.Move(t.Context(), 0, "n1", "n2", nil); !errors.Is(err, db.ErrNotFound) {
		t.Error(err)
	}
	if n := count(t, c); n != 800 {
		t.Errorf("%d items", n)
	}
}

// A backup has all that was written before it, also if the replica that makes it does not hear of writes.
func TestBackupsHaveAllThatWasWritten(t *testing.T) {
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{Dir: filepath.Join(dir, "nats"), Servers: 1,
		ClientOptions: []nats.Option{nats.UserInfo("all", "all")},
		ExtraConfig: `authorization { users = [{user: all, password: all}, {user: deaf, password: deaf,
			permissions: {subscribe: {deny: "fddhdb.*.tick.>"}}}] }`})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, dir: dir, servers: servers, nodes: map[string]*cluster.Node{},
		conns: map[string]*nats.Conn{}}
	t.Cleanup(h.close)
	for name, user := range map[string]string{"deaf": "deaf", "n1": "all", "admin": "all", "client": "all"} {
		h.conns[name], err = cluster.ConnectNATS(strings.Join(servers.URLs(), ","), nats.UserInfo(user, user),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
	}
	h.open("deaf")
	h.open("n1")
	if err := cluster.Create(t.Context(), h.conn("admin"), "test", cluster.CreateOptions{Shards: 1,
		Servers: 1, Nodes: []string{"deaf", "n1"}, LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	c := h.connect()
	codesOf(t, c)
	eventually(t, "the deaf node has the shard", func() bool { // otherwise the other one makes the backup
		all := h.nodes["deaf"].Status().Shards
		return len(all) == 1 && all[0].Problem == "" && all[0].Applied > 0
	})
	for n := 0; n < 100; n += 20 {
		putSome(t, c, n, n+20)
		all, err := c.Backup(t.Context(), cluster.BackupOptions{})
		if err != nil || all[0].Items != n+20 || all[0].Node != "deaf" {
			t.Fatalf("a backup of %d items: %+v, %v", n+20, all, err)
		}
	}
}

// A node does not leave a shard that too few others have: one that is lost, or was given up while it joined,
// does not count.
func TestMovesLeaveEnoughReplicas(t *testing.T) {
	h := build(t, 1, 3, 1, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 100)
	h.inStep(2, 100)
	if err := c.Move(t.Context(), 0, "n0", "n1", nil); !errors.Is(err, db.ErrInvalid) {
		t.Error("to the other replica:", err)
	}
	h.leave("n1")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := c.Move(ctx, 0, "n0", "n2", func(why string) {
		if strings.Contains(why, "n0 stays") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "n1") {
		t.Error(err)
	}
	if nodes := c.Placement()[0].Nodes; !slices.Contains(nodes, "n0") {
		t.Errorf("the shard is on %q", nodes)
	}
	if err := c.Drain(t.Context(), "n1", nil); err != nil { // the lost one leaves; n2 has joined already
		t.Error(err)
	}
	h.open("n1")
	if err := c.Move(t.Context(), 0, "n0", "n1", nil); err != nil {
		t.Error(err)
	}
	if nodes := c.Placement()[0].Nodes; len(nodes) != 2 || slices.Contains(nodes, "n0") {
		t.Errorf("the shard is on %q", nodes)
	}
	eventually(t, "n0 has nothing any more", func() bool { return len(h.nodes["n0"].Status().Shards) == 0 })
	h.inStep(2, 100)
	h.leave("n1")
	h.leave("n2") // nothing is lost with a lost one
	if err := c.Move(t.Context(), 0, "n1", "n0", nil); err != nil {
		t.Error(err)
	}
}

// Three clients make backups and trim the log at the same time. Afterwards a new replica can join.
func TestBackupsAtATime(t *testing.T) {
	h := build(t, 1, 2, 1, 2)
	c := h.connect()
	codesOf(t, c)
	var all sync.WaitGroup
	for who := range 3 {
		one := h.connect()
		all.Go(func() {
			for i := range 8 {
				n := 100*who + 10*i
				putSome(t, one, n, n+10)
				_, err := one.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1})
				if err != nil && !errors.Is(err, db.ErrConflict) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	h.inStep(2, 240)
	h.leave("n1")
	if err := os.RemoveAll(filepath.Join(h.dir, "n1")); err != nil {
		t.Fatal(err)
	}
	h.open("n1")
	h.inStep(2, 240)
}

// A place for backups that is not the same for all nodes is told, before anything relies on it.
func TestPlaceThatIsNotShared(t *testing.T) {
	h := build(t, 1, 2, 1, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 100)
	h.leave("n1")
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "test", Node: "n1",
		Dir: filepath.Join(h.dir, "n1"), Conn: h.conn("n1"), Backups: t.TempDir(),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	h.nodes["n1"] = n
	h.inStep(2, 100)
	js, err := jetstream.New(h.conn("admin"))
	if err != nil {
		t.Fatal(err)
	}
	trimmed := func() bool {
		t.Helper()
		s, err := js.Stream(t.Context(), "FDDHDB_test_0")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.FirstSeq > 1
	}
	for range 2 {
		all, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1})
		if err == nil || !strings.Contains(err.Error(), "node n1 does not find the backup") ||
			len(all) != 0 || trimmed() {
			t.Errorf("%+v, %v", all, err)
		}
		if err := c.Rebuild(t.Context(), 0, "n1", nil); err == nil {
			t.Error("a rebuild from another place")
		}
		h.inStep(2, 100)
	}
	h.leave("n1") // it cannot say
	all, err := c.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1})
	if err != nil || len(all) != 1 || !trimmed() {
		t.Errorf("%+v, %v", all, err)
	}
}

// A cluster whose servers and nodes are lost comes back from its backups, under another name or the same,
// and goes on.
func TestClusterFromBackups(t *testing.T) {
	h := build(t, 1, 2, 3, 2)
	c := h.connect()
	codesOf(t, c)
	putSome(t, c, 0, 500)
	if _, err := c.Backup(t.Context(), cluster.BackupOptions{}); err != nil {
		t.Fatal(err)
	}
	putSome(t, c, 500, 600) // after the backup: lost
	h.leave("n0")
	h.leave("n1")
	for _, n := range []string{"n0", "n1"} {
		if err := os.RemoveAll(filepath.Join(h.dir, n)); err != nil {
			t.Fatal(err)
		}
	}
	place := filepath.Join(h.dir, "backups")
	nc := h.conn("admin")
	if err := cluster.Create(t.Context(), nc, "again", cluster.CreateOptions{Shards: 2, Servers: 1,
		Nodes: []string{"n0", "n1"}, From: place, LogBytes: 64 << 20}); !errors.Is(err, db.ErrInvalid) {
		t.Error("fewer shards than backups:", err)
	}
	if err := cluster.Create(t.Context(), nc, "again", cluster.CreateOptions{Shards: 3, Servers: 1,
		Nodes: []string{"n0", "n1"}, From: place, LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	openAs := func(node string) {
		n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "again", Node: node,
			Dir: filepath.Join(h.dir, node), Conn: h.conn(node), Backups: place,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		h.nodes[node] = n
	}
	openAs("n0")
	openAs("n1")
	again, err := cluster.Connect(t.Context(), nc, "again", cluster.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if n := count(t, again); n != 500 {
		t.Errorf("%d items", n)
	}
	putSome(t, again, 400, 700)
	h.inStep(2, 700)
	if _, err := again.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
		t.Fatal(err)
	}
	h.leave("n1")
	if err := os.RemoveAll(filepath.Join(h.dir, "n1")); err != nil {
		t.Fatal(err)
	}
	openAs("n1") // begins with the backup of this cluster, not with that of the first
	h.inStep(2, 700)
}

// Databases that were built by something else, shard by shard, begin a cluster.
func TestClusterFromABuild(t *testing.T) {
	h := build(t, 1, 1, 1, 1) // of another cluster, with the servers
	place := t.TempDir()
	const shards = 2
	items := dbkit.CodeItems(300, 16, 1, func(i int) string { return fmt.Sprint("b", i) })
	for i := range shards {
		d := dbkit.MustOpen(t, t.TempDir(), nil)
		one := mustCreate(t, d, "codes", db.Schema{Bits: 16})
		for _, it := range items {
			if shard.Of(it.Key, shards) == i {
				if _, err := one.Put(t.Context(), it); err != nil {
					t.Fatal(err)
				}
			}
		}
		name := fmt.Sprintf("shard-%04d", i)
		to, err := backup.Folder(filepath.Join(place, name))
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Backup(t.Context(), to, db.BackupOptions{})
		if err != nil {
			t.Fatal(err)
		}
		dbkit.MustClose(t, d)
		entry := fmt.Sprintf(`{"shard":%d,"repository":%q,"backup":%q,"items":150}`, i, name, m.ID)
		if err := os.WriteFile(filepath.Join(place, name+".json"), []byte(entry), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	nc := h.conn("admin")
	if err := cluster.Create(t.Context(), nc, "built", cluster.CreateOptions{Shards: shards, Servers: 1,
		Replicas: 1, Nodes: []string{"a"}, From: place, LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "built", Node: "a", Dir: t.TempDir(),
		Conn: h.conn("a"), Backups: place, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	c, err := cluster.Connect(t.Context(), nc, "built", cluster.ClientOptions{Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n := count(t, c); n != 300 {
		t.Errorf("%d items", n)
	}
	putSome(t, c, 0, 50)
	if n := count(t, c); n != 350 {
		t.Errorf("%d items", n)
	}
}
