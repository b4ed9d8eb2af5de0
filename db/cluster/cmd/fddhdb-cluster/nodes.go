package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

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

// creation has the flags of create.
type creation struct {
	cluster.CreateOptions
	nodes    string
	logBytes size
}

// run makes the cluster.
func (o *creation) run(e *env, ctx context.Context) error {
	switch {
	case o.From == "" && o.Shards < 1:
		return exit.Usagef("--shards N is missing: how many shards: several times as many as there will be nodes, such as 16")
	case o.Backups != "" && o.From == "":
		return exit.Usagef("--backups is for the shards of --from")
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
					term.Plural(len(o.Nodes), "node", "nodes"), e.link.cluster, runs(len(o.Nodes)),
					o.Replicas)
			}
		}
		bar := e.Progress()
		defer bar.End()
		o.Progress = bar.Report
		err := cluster.Create(ctx, nc, e.link.cluster, o.CreateOptions)
		bar.End()
		var api *jetstream.APIError
		switch {
		// otherwise only its logs exist, and err says what to do
		case errors.Is(err, db.ErrExists) && e.there(ctx, nc):
			return exit.Failedf("there is a cluster %s already: --cluster names another one", e.link.cluster)
		case errors.Is(err, jetstream.ErrJetStreamNotEnabled),
			errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount):
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
		o.Shards = c.Shards() // with --from there may be as many as there are backups
		if e.json {
			return e.PrintJSON(struct {
				Cluster  string   `json:"cluster"`
				Shards   int      `json:"shards"`
				Replicas int      `json:"replicas"`
				Nodes    []string `json:"nodes"`
			}{e.link.cluster, o.Shards, o.Replicas, o.Nodes})
		}
		e.Printf("created cluster %s: %s, each on %s of %s\n", e.link.cluster,
			term.Plural(o.Shards, "shard", "shards"),
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
	o := creation{logBytes: 1 << 30}
	cmd := &cobra.Command{
		Use:     "create --shards N | --from PLACE",
		Short:   "Make a cluster, empty or from backups",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Create makes the logs of a cluster, and says which nodes keep which shards. The
			nodes run already, or --nodes names them and they are started later. More
			replicas can be lost at a time, and answer more searches.

			A log that is full takes no writes until backup --trim makes room. Each of its
			servers sets --log-bytes aside: their max_file_store has to hold all logs, as they
			may notice too late that it does not. If create is interrupted, call it again.

			With --from the cluster begins with the newest backups in PLACE: of another cluster,
			or of what fddhdb-beam build has made. The nodes have PLACE as their --backups, and
			fetch them in the background; status tells how far they are, and searches wait for
			them. What was written after a backup is not in it.

			With another number of --shards than PLACE has, each item goes to the shard that its
			key belongs to now. Create then stores backups of the new shards in the place that
			the nodes have as --backups, by way of the folder for temporary files (TMPDIR), which
			holds all items. Codes, models, labels and payloads stay as they are; there is no
			cluster before all of it is done.`),
		Example: usage.Example(`
			fddhdb-cluster create --shards 16
			fddhdb-cluster create --shards 64 --replicas 3 --nodes a,b,c,d --log-bytes 256MiB
			fddhdb-cluster create --shards 4 --replicas 1 --servers-per-log 1
			fddhdb-cluster create --from s3://company/shards --cluster main2
			fddhdb-cluster create --from /mnt/main --shards 64 --backups /mnt/wide --cluster wide`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(e, cmd.Context()) },
	}
	f := cmd.Flags()
	f.IntVar(&o.Shards, "shards", 0,
		"`N` shards: make several times as many as there will be nodes")
	f.IntVar(&o.Replicas, "replicas", 2, "`N` nodes keep each shard")
	f.StringVar(&o.nodes, "nodes", "",
		"the nodes that keep the shards, `A,B,...` (default: those that run now)")
	f.Var(&o.logBytes, "log-bytes",
		"how much the log of each shard may hold, which each of its servers sets aside")
	f.IntVar(&o.Servers, "servers-per-log", 3,
		"`N` NATS servers keep each log; with 1, what is acknowledged is lost with that server")
	f.StringVar(&o.From, "from", "",
		"begin with the backups in `PLACE`: a folder, or s3://BUCKET[/PREFIX]")
	f.StringVar(&o.Backups, "backups", "",
		"the `PLACE` for backups that the nodes have, for another number of shards than --from has")
	return cmd
}

func nodeCommand(e *env) *cobra.Command {
	var name, dir, backups string
	var verbose bool
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
			n, err := cluster.Open(ctx, cluster.NodeOptions{Cluster: e.link.cluster, Node: name, Dir: dir,
				Conn: nc, Backups: backups, Log: log})
			if err != nil {
				return err
			}
			log.Info("the node runs", "node", name, "cluster", e.link.cluster, "dir", dir, "server",
				nc.ConnectedUrlRedacted())
			<-ctx.Done()
			log.Info("the node ends", "node", name)
			return n.Close()
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "the `NAME` of the node")
	f.StringVar(&dir, "dir", "", "the folder `DIR` of its shards")
	f.StringVar(&backups, "backups", "",
		"the `PLACE` of backups: a folder that all nodes share, or s3://BUCKET[/PREFIX]")
	f.BoolVar(&verbose, "verbose", false, "log more")
	return cmd
}

// connectSometime connects as soon as a server answers: a node may be started before the servers. It returns
// nil without an error if the context ends first.
func (l *link) connectSometime(ctx context.Context, name string, log *slog.Logger) (*nats.Conn, error) {
	for said := false; ; said = true {
		nc, err := l.connect(name,
			func(err error) { log.Error("the NATS servers refuse something", "error", err) })
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

func drainCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drain NODE",
		Short:   "Move all shards of a node to others",
		GroupID: groupCare,
		Long: usage.Prose(`
			Drain moves all shards of a node to others, those with the fewest shards first, so
			that it can be shut down, or replaced where it is lost. Searches and writes go on.
			If it is interrupted, call it again.`),
		Example: usage.Example(`fddhdb-cluster drain b`),
		Args:    arguments(1, 1, "the name of a node"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				has := func() (shards []int) {
					for _, p := range c.Placement() {
						if slices.Contains(p.Nodes, args[0]) {
							shards = append(shards, p.Shard)
						}
					}
					return shards
				}
				before := has()
				if len(before) == 0 {
					if err := answering(ctx, c, "node", args[0]); err != nil {
						return err
					}
				}
				bar := e.Progress()
				defer bar.End()
				bar.Report("moving shards", 0, 0)
				err := c.Drain(ctx, args[0], e.waits)
				bar.End()
				if err != nil {
					if left := has(); len(left) < len(before) {
						err = exit.Wrap(err, "%s moved, of %d",
							term.Plural(len(before)-len(left), "shard is", "shards are"), len(before))
					}
					return failed(err)
				}
				if e.json {
					return e.PrintJSON(struct {
						Node  string `json:"node"`
						Moved int    `json:"moved"`
					}{args[0], len(before)})
				}
				e.Printf("moved %s from %s\n", term.Plural(len(before), "shard", "shards"), args[0])
				return nil
			})
		},
	}
}

func moveCommand(e *env) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "move SHARD --from NODE --to NODE",
		Short:   "Move a shard from one node to another",
		GroupID: groupCare,
		Long: usage.Prose(`
			Move has a node take over a shard from another one. The new one begins with a
			backup or with the log, and when it and enough others have caught up the old one
			leaves: searches and writes go on all the time. The old one may be lost. Its
			folder of the shard stays. Status has the numbers of the shards.

			If move is interrupted, both have the shard: call it again.`),
		Example: usage.Example(`fddhdb-cluster move 3 --from a --to d`),
		Args:    arguments(1, 1, "the number of a shard"),
		RunE: func(cmd *cobra.Command, args []string) error {
			shard, err := strconv.Atoi(args[0])
			switch {
			case err != nil || shard < 0:
				return exit.Usagef("%q is no number of a shard: fddhdb-cluster status has them", args[0])
			case from == "" || to == "":
				return exit.Usagef("--from NODE and --to NODE say where the shard is and where it goes: one is missing")
			case from == to:
				return exit.Usagef("--from %s --to %s: these are one node", from, to)
			}
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				placed := c.Placement()
				first, nodes := placed[0].Shard, nodesOf(c, shard)
				switch {
				case nodes == nil:
					return exit.Usagef("there is no shard %d: cluster %s has %d to %d", shard, e.link.cluster,
						first, first+len(placed)-1)
				case !slices.Contains(nodes, from):
					return exit.Failedf("node %s does not have shard %d: fddhdb-cluster status says which do",
						from, shard)
				}
				if err := answering(ctx, c, "--to", to); err != nil {
					return err
				}
				bar := e.Progress()
				defer bar.End()
				bar.Report("catching up", 0, 0)
				err := c.Move(ctx, shard, from, to, e.waits)
				bar.End()
				if err != nil {
					return failed(err)
				}
				if e.json {
					return e.PrintJSON(struct {
						Shard int      `json:"shard"`
						Nodes []string `json:"nodes"`
					}{shard, nodesOf(c, shard)})
				}
				e.Printf("moved shard %d from %s to %s\n", shard, from, to)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "the `NODE` that has it")
	cmd.Flags().StringVar(&to, "to", "", "the `NODE` that takes it over")
	return cmd
}

// nodesOf returns the nodes that have a shard; nil: there is no such shard.
func nodesOf(c *cluster.Client, shard int) []string {
	for _, p := range c.Placement() {
		if p.Shard == shard {
			return append([]string{}, p.Nodes...)
		}
	}
	return nil
}

// answering refuses a silent node: work for it would wait without end.
func answering(ctx context.Context, c *cluster.Client, flag, node string) error {
	all, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, n := range all {
		names = append(names, n.Node)
	}
	if slices.Contains(names, node) {
		return nil
	}
	if near := term.Nearest(node, names); near != "" {
		return exit.Failedf("%s %s: no such node answers: did you mean %s?", flag, node, near)
	}
	return exit.Failedf("%s %s: no such node answers: fddhdb-cluster status names those that do", flag, node)
}
