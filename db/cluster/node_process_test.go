package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/fddhdb/fddhdb/db/cluster"
)

// nodeVariable makes the test executable a node. Its value is a nodeConfig.
const nodeVariable = "FDDHDB_CLUSTER_TEST_NODE"

// A nodeConfig is what a node process has to know.
type nodeConfig struct{ Node, Dir, URLs, Backups string }

// nodeMain returns at once in a normal process. In one that a site has made it runs a node until standard
// input ends, which also happens when the parent is killed.
func nodeMain() {
	text := os.Getenv(nodeVariable)
	if text == "" {
		return
	}
	if err := runNode(text); err != nil {
		fmt.Fprintln(os.Stderr, "node:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func runNode(text string) error {
	var c nodeConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	nc, err := connectSometime(ctx, c.URLs, nats.Name(c.Node))
	if err != nil {
		return err
	}
	defer nc.Close()
	n, err := cluster.Open(ctx, cluster.NodeOptions{Cluster: "test", Node: c.Node, Dir: c.Dir, Conn: nc,
		Backups: c.Backups, Log: log})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return n.Close()
}

// connectSometime connects as soon as any server answers, as a node may be started while none does.
func connectSometime(ctx context.Context, urls string, o ...nats.Option) (*nats.Conn, error) {
	for {
		nc, err := cluster.ConnectNATS(urls, o...)
		if err == nil {
			return nc, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(200 * time.Millisecond):
		}
	}
}
