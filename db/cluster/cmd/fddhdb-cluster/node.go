package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func nodeCommand(e *env) *cobra.Command {
	var name, dir, backups string
	var orphan, verbose bool
	cmd := &cobra.Command{
		Use:     "node --name NAME --dir DIR",
		Short:   "Run a node, which keeps shards and answers requests",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Node runs until an interrupt or SIGTERM, keeps its shards in the folder DIR, and
			logs to stderr. It can be started before the NATS servers and before the cluster
			is made. Its name is its own in the cluster and stays the same; the folder is
			for this node alone.

			A node that was killed, or was away, is started again in the same way: it goes
			on with what the logs have. One whose folder is lost begins with a backup or with
			the log. --backups is the same place for all nodes: a folder that they share, or
			s3://BUCKET/PREFIX. Without it there are no backups.`),
		Example: usage.Example(`
			fddhdb-cluster node --name a --dir /var/lib/fddhdb
			fddhdb-cluster node --name b --dir data --servers nats://10.0.0.1:4222 \
			    --creds node.creds --backups s3://company/fddhdb`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case name == "":
				return exit.Usagef("--name is missing: what the node is called, such as its machine")
			case dir == "":
				return exit.Usagef("--dir is missing: the folder that the node keeps its shards in")
			}
			ctx := cmd.Context()
			if orphan {
				var end context.CancelFunc
				ctx, end = context.WithCancel(ctx)
				defer end()
				go func() {
					_, _ = io.Copy(io.Discard, e.stdin) // any error means the same: no parent
					end()
				}()
			}
			level := slog.LevelInfo
			if verbose {
				level = slog.LevelDebug
			}
			log := slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: level}))
			nc, err := e.link.connectSometime(ctx, name, log)
			if nc == nil {
				return err
			}
			defer nc.Close()
			each, err := e.link.connectEach(name, func(err error) { log.Debug("a NATS server says", "error", err) })
			if err != nil {
				return err
			}
			defer func() {
				for _, nc := range each {
					nc.Close()
				}
			}()
			n, err := cluster.Open(ctx, cluster.NodeOptions{Cluster: e.link.cluster, Node: name, Dir: dir, Conn: nc, Conns: each, Backups: backups, Log: log})
			if err != nil {
				return err
			}
			log.Info("the node runs", "node", name, "cluster", e.link.cluster, "dir", dir, "server", nc.ConnectedUrlRedacted())
			<-ctx.Done()
			log.Info("the node ends", "node", name)
			return n.Close()
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "the `NAME` of the node")
	f.StringVar(&dir, "dir", "", "the folder `DIR` of its shards")
	f.StringVar(&backups, "backups", "", "the `PLACE` of backups: a folder that all nodes share, or s3://BUCKET[/PREFIX]")
	f.BoolVar(&verbose, "verbose", false, "log more")
	f.BoolVar(&orphan, "until-stdin-ends", false, "end with the program that has started it")
	_ = f.MarkHidden("until-stdin-ends")
	return cmd
}

// connectSometime connects as soon as a server answers: a node may be started before the servers. It returns
// nil without an error if the context ends first.
func (l *link) connectSometime(ctx context.Context, name string, log *slog.Logger) (*nats.Conn, error) {
	for said := false; ; said = true {
		nc, err := l.connect(name, func(err error) { log.Error("the NATS servers refuse something", "error", err) })
		if !errors.Is(err, errNoServer) {
			return nc, err
		}
		if !said {
			log.Warn("waiting for a NATS server", "error", message(err))
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(500 * time.Millisecond):
		}
	}
}
