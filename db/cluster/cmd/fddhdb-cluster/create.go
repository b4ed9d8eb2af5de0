package main

import (
	"context"
	"errors"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// creation has the flags of create and restore.
type creation struct {
	cluster.CreateOptions
	nodes    string
	logBytes size
}

func (o *creation) register(cmd *cobra.Command) {
	f := cmd.Flags()
	o.logBytes = 1 << 30
	f.IntVar(&o.Shards, "shards", 0, "`N` shards: make several times as many as there will be nodes; grow doubles them")
	f.IntVar(&o.Replicas, "replicas", 2, "`N` nodes keep each shard")
	f.StringVar(&o.nodes, "nodes", "", "the nodes that keep the shards, `A,B,...` (default: those that run now)")
	f.Var(&o.logBytes, "log-bytes", "how much the log of each shard may hold, which each of its servers sets aside")
	f.IntVar(&o.Servers, "servers-per-log", 3, "`N` NATS servers keep each log; with 1, what is acknowledged is lost with that server")
}

// run makes the cluster.
func (o *creation) run(e *env, ctx context.Context, done string) error {
	switch {
	case o.From == "" && o.Shards < 1:
		return exit.Usagef("--shards N is missing: how many shards: several times as many as there will be nodes, such as 16")
	case o.Replicas < 1:
		return exit.Usagef("--replicas %d: 1 or more nodes are possible", o.Replicas)
	case o.Servers < 1 || o.Servers > 5:
		return exit.Usagef("--servers-per-log %d: 1, 3 and 5 are possible", o.Servers)
	}
	o.Nodes, o.LogBytes = flags.SplitList(o.nodes), int64(o.logBytes)
	return e.withServers(ctx, func(ctx context.Context, nc *nats.Conn) error {
		ctx, cancel := context.WithTimeout(ctx, forever)
		defer cancel()
		if o.Nodes == nil {
			all, err := cluster.Nodes(ctx, nc, e.link.cluster, nodesAnswer)
			if err != nil {
				return err
			}
			for _, n := range all {
				o.Nodes = append(o.Nodes, n.Node)
			}
			if len(o.Nodes) < o.Replicas {
				return exit.Failedf("%s of cluster %s %s, and each shard needs %d: start more (fddhdb-cluster node), or ask for fewer --replicas",
					term.Plural(len(o.Nodes), "node", "nodes"), e.link.cluster, runs(len(o.Nodes)), o.Replicas)
			}
		}
		err := cluster.Create(ctx, nc, e.link.cluster, o.CreateOptions)
		var api *jetstream.APIError
		switch {
		case errors.Is(err, db.ErrExists) && e.there(ctx, nc): // otherwise only its logs exist, and err says what to do
			return exit.Failedf("there is a cluster %s already: --cluster names another one", e.link.cluster)
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled), errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
			return exit.Failedf("the NATS servers run without JetStream: start them with -js, or with jetstream { sync_interval: always } in their configuration")
		case errors.As(err, &api) && api.ErrorCode == notClustered:
			return exit.Failedf("%w: there is one NATS server: --servers-per-log 1 makes logs that are lost with it", err)
		case err != nil:
			return err
		}
		c, err := cluster.Connect(ctx, nc, e.link.cluster, cluster.ClientOptions{})
		if err != nil {
			return err
		}
		defer c.Close()
		o.Shards = c.Shards() // a restored cluster has as many as there are backups
		if e.json {
			return e.PrintJSON(struct {
				Cluster  string   `json:"cluster"`
				Shards   int      `json:"shards"`
				Replicas int      `json:"replicas"`
				Nodes    []string `json:"nodes"`
			}{e.link.cluster, o.Shards, o.Replicas, o.Nodes})
		}
		e.Printf("%s cluster %s: %s, each on %s of %s\n", done, e.link.cluster, term.Plural(o.Shards, "shard", "shards"),
			term.Plural(o.Replicas, "node", "nodes"), strings.Join(o.Nodes, ", "))
		return nil
	})
}

// there reports whether the cluster exists.
func (e *env) there(ctx context.Context, nc *nats.Conn) bool {
	c, err := cluster.Connect(ctx, nc, e.link.cluster, cluster.ClientOptions{})
	return err == nil && c.Close() == nil
}

// notClustered is JetStream's error code for several replicas on a single server.
const notClustered jetstream.ErrorCode = 10074

func runs(n int) string {
	if n == 1 {
		return "runs"
	}
	return "run"
}

func createCommand(e *env) *cobra.Command {
	var o creation
	cmd := &cobra.Command{
		Use:     "create --shards N",
		Short:   "Make a cluster",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Create makes the logs of a cluster, and says which nodes keep which shards. The
			nodes run already, or --nodes names them and they are started later. More
			replicas can be lost at a time, and answer more searches.

			A log that is full takes no writes until backup --trim makes room. Each of its
			servers sets --log-bytes aside: their max_file_store has to hold all logs, as they
			may notice too late that it does not. If create is interrupted, call it again.`),
		Example: usage.Example(`
			fddhdb-cluster create --shards 16
			fddhdb-cluster create --shards 64 --replicas 3 --nodes a,b,c,d --log-bytes 256MiB
			fddhdb-cluster create --shards 4 --replicas 1 --servers-per-log 1`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(e, cmd.Context(), "created") },
	}
	o.register(cmd)
	return cmd
}

func restoreCommand(e *env) *cobra.Command {
	var o creation
	cmd := &cobra.Command{
		Use:     "restore --from PLACE",
		Short:   "Make a cluster from the backups of another, or from a build",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Restore makes a cluster whose shards begin with the newest backups in PLACE: of a
			cluster whose logs are lost, or of what fddhdb-beam build has made. It has as
			many shards as there are in PLACE. The nodes have the same PLACE as --backups. They
			fetch the backups in the background, and status tells how far they are; searches
			wait for them.

			What was written after a backup is not in it.`),
		Example: usage.Example(`
			fddhdb-cluster restore --from /mnt/backups --cluster main2
			fddhdb-cluster restore --from s3://company/shards --replicas 3`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.From == "" {
				return exit.Usagef("--from is missing: the place of the backups, a folder or s3://BUCKET[/PREFIX]")
			}
			return o.run(e, cmd.Context(), "restored")
		},
	}
	o.register(cmd)
	cmd.Flags().StringVar(&o.From, "from", "", "the `PLACE` of the backups: a folder, or s3://BUCKET[/PREFIX]")
	return cmd
}
