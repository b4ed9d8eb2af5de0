package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fddhdb/fddhdb/model/fit"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/cluster/internal/natsproc"
	"github.com/fddhdb/fddhdb/db/internal/dbkit"
	"github.com/fddhdb/fddhdb/internal/synth"
)

// Who has the permissions of permissions.conf can do what that says, and nothing else.
func TestPermissions(t *testing.T) {
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
	codesOf(t, admin)
	codes := writer.Collection("codes")
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
	if _, err := admin.Backup(t.Context(), cluster.BackupOptions{Trim: true, Keep: 1}); err != nil {
		t.Error("a backup:", err)
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
	there, err := admin.CreateCollection(t.Context(), "pairs", dbkit.PairsSchema)
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
	forbidden := func(what string, f func(ctx context.Context) error) error {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a refusal comes at once
		defer cancel()
		err := f(ctx)
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", what, err)
		}
		return err
	}
	err = forbidden("a reader writes", func(ctx context.Context) error {
		_, err := reader.Collection("codes").Put(ctx, &db.Item{Key: "x", Code: []byte{1, 2}})
		return err
	})
	if errors.Is(err, cluster.ErrUnknown) {
		t.Error(err)
	}
	var all sync.WaitGroup // a client gives up after some tries, which it makes one order at a time
	for _, name := range []string{"reader", "writer"} {
		for what, f := range map[string]func(ctx context.Context, c *cluster.Client) error{
			"makes a collection": func(ctx context.Context, c *cluster.Client) error {
				_, err := c.CreateCollection(ctx, "new", db.Schema{Bits: 8})
				return err
			},
			"drops a collection": func(ctx context.Context, c *cluster.Client) error {
				return c.DropCollection(ctx, "codes")
			},
			"activates a space": func(ctx context.Context, c *cluster.Client) error {
				return c.Collection("pairs").Activate(ctx, 1)
			},
			"indexes vectors": func(ctx context.Context, c *cluster.Client) error {
				_, err := c.Collection("pairs").IndexVectors(ctx, "image", 0, nil)
				return err
			},
			"drops a space": func(ctx context.Context, c *cluster.Client) error {
				return c.Collection("pairs").DropSpace(ctx, 1)
			},
			"makes a backup": func(ctx context.Context, c *cluster.Client) error {
				_, err := c.Backup(ctx, cluster.BackupOptions{})
				return err
			},
		} {
			c := connect(name)
			all.Go(func() {
				forbidden("a "+name+" "+what, func(ctx context.Context) error { return f(ctx, c) })
			})
		}
		for what, f := range map[string]func(ctx context.Context, c *cluster.Client) error{
			"trains": func(ctx context.Context, c *cluster.Client) error {
				_, err := c.Collection("pairs").Train(ctx, db.TrainOptions{})
				return err
			},
			"moves a shard": func(ctx context.Context, c *cluster.Client) error {
				return c.Move(ctx, 0, "a", "b", nil)
			},
		} {
			c := connect(name)
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if f(ctx, c) == nil {
					t.Errorf("a %s %s", name, what)
				}
			})
		}
	}
	all.Wait()
	// What the servers take from any connection is tried at the servers, not through a client.
	for _, user := range []string{"reader", "writer", "node"} {
		nc := as(user)
		denied := func(what string) {
			t.Helper()
			if err := nc.Flush(); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(nc.LastError(), nats.ErrPermissionViolation) ||
				!strings.Contains(nc.LastError().Error(), strconv.Quote(what)) {
				t.Errorf("%s: %s: %v", user, what, nc.LastError())
			}
		}
		for _, subject := range []string{"fddhdb.main.control.0", "$KV.FDDHDB_main.shard.0",
			"$KV.FDDHDB_main.space.x", "$JS.API.STREAM.DELETE.FDDHDB_main_0",
			"$JS.API.STREAM.UPDATE.FDDHDB_main_0", "$JS.API.STREAM.MSG.DELETE.FDDHDB_main_0",
			"$JS.API.STREAM.CREATE.x", "$JS.API.CONSUMER.CREATE.FDDHDB_main_0",
			"$JS.API.STREAM.LEADER.STEPDOWN.FDDHDB_main_0", "$JS.API.STREAM.SNAPSHOT.FDDHDB_main_0",
			"$JS.API.STREAM.PURGE.FDDHDB_main_0", "fddhdb.main.changed"} {
			if err := nc.Publish(subject, []byte("{}")); err != nil {
				t.Fatal(err)
			}
			denied(subject)
		}
		if user != "node" {
			for _, subject := range []string{"_INBOX.admin.x", "fddhdb.main.admin.a",
				"$JS.API.STREAM.MSG.GET.FDDHDB_main_0", "$JS.API.DIRECT.GET.FDDHDB_main_0"} {
				if err := nc.Publish(subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				denied(subject)
			}
		}
		for _, subject := range []string{"_INBOX.>", "_INBOX.admin.>", ">", "fddhdb.main.log.0",
			"fddhdb.main.control.0", "$KV.>"} {
			if _, err := nc.SubscribeSync(subject); err != nil {
				t.Fatal(err)
			}
			denied(subject)
		}
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
