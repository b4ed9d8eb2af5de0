package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Who has the permissions of permissions.conf can do what that says, and nothing else.
func TestPermissions(t *testing.T) {
	cluster.SettleAtOnce(t)
	conf, err := os.ReadFile("permissions.conf")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	servers, err := natsproc.Start(t.Context(), natsproc.Config{
		Dir: filepath.Join(dir, "nats"), Servers: 1, ExtraConfig: string(conf),
		ClientOptions: []nats.Option{nats.UserInfo("admin", "admin")},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	as := func(user string) *nats.Conn {
		t.Helper()
		nc, err := cluster.ConnectNATS(strings.Join(servers.URLs(), ","), nats.UserInfo(user, user),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		return nc
	}
	if err := cluster.Create(t.Context(), as("admin"), "main",
		cluster.CreateOptions{Shards: 2, Replicas: 1, Servers: 1, Nodes: []string{"a"},
			LogBytes: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	n, err := cluster.Open(t.Context(), cluster.NodeOptions{Cluster: "main", Node: "a",
		Dir: filepath.Join(dir, "a"), Conn: as("node"), Backups: filepath.Join(dir, "backups"),
		Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	connect := func(user string) *cluster.Client {
		t.Helper()
		c, err := cluster.Connect(t.Context(), as(user), "main",
			cluster.ClientOptions{Timeout: 10 * time.Second})
		if err != nil {
			t.Fatal(user, err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	writer, reader, admin := connect("writer"), connect("reader"), connect("admin")
	codes := codesOf(t, writer)
	large := &db.Item{Key: "large", Code: []byte{1, 2}, Payload: make([]byte, 1<<20)}
	for i := range 20 {
		if _, err := codes.Put(t.Context(),
			&db.Item{Key: fmt.Sprint(i), Code: []byte{byte(i), 2}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := codes.Put(t.Context(), large); err != nil {
		t.Error("a large item:", err)
	}
	large.Payload = nil
	if _, err := codes.Put(t.Context(), large); err != nil { // behind which the log is trimmed
		t.Error(err)
	}
	for range 2 {
		if _, err := admin.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
			t.Error("a backup:", err)
		}
	}
	js, err := jetstream.New(as("admin"))
	if err != nil {
		t.Fatal(err)
	}
	if s, err := js.Stream(t.Context(), "OBJ_FDDHDB_main"); err != nil || s.CachedInfo().State.Msgs > 0 {
		t.Errorf("the node removes objects: %+v, %v", s, err)
	}
	one := dbkit.MustOpen(t, t.TempDir(), nil)
	defer dbkit.MustClose(t, one)
	pairs := mustCreate(t, one, "pairs", dbkit.PairsSchema)
	dbkit.PutAll(t, one, pairs, dbkit.Pairs(40, synth.Config{Seed: 1}))
	dbkit.MustTrain(t, pairs, db.TrainOptions{Options: fit.Options{Bits: 8, Anchors: 5}})
	var file bytes.Buffer
	if err := pairs.ExportModel(t.Context(), &file); err != nil {
		t.Fatal(err)
	}
	there, err := writer.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
	if err == nil {
		_, err = there.ImportModel(t.Context(), &file, true)
	}
	if err != nil {
		t.Error("a model:", err)
	}
	if res, err := reader.Collection("codes").Search(t.Context(),
		cluster.Query{Query: db.Query{Code: []byte{1, 2}}}); err != nil || len(res.Hits) != 10 {
		t.Error("a reader searches:", res, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	begin := time.Now()
	if _, err := reader.Collection("codes").Put(ctx, &db.Item{Key: "x", Code: []byte{1, 2}}); !errors.Is(err,
		nats.ErrPermissionViolation) || errors.Is(err, cluster.ErrUnknown) {
		t.Error("a reader writes:", err, time.Since(begin))
	}
	if _, err := reader.Backup(ctx, cluster.BackupOptions{}); err == nil {
		t.Error("a reader makes a backup")
	}
	if err := reader.Move(ctx, 0, "a", "b"); err == nil {
		t.Error("a reader moves a shard")
	}
	if n := count(t, reader); n != 21 {
		t.Errorf("%d items", n)
	}
	if _, err := cluster.ConnectNATS(servers.URL(0), nats.UserInfo("stranger", "x")); !errors.Is(err,
		nats.ErrAuthorization) {
		t.Error("a stranger:", err)
	}
	if _, err := cluster.ConnectNATS(servers.URL(0)); !errors.Is(err, nats.ErrAuthorization) {
		t.Error("nobody:", err)
	}
}
