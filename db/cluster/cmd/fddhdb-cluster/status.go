package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

// nodesAnswer is how long to wait for the status of nodes.
const nodesAnswer = time.Second

// A clusterStatus is the output of status --json.
type clusterStatus struct {
	Cluster string        `json:"cluster"`
	Items   int           `json:"items"` // of all shards, each by its largest replica
	Shards  []shardStatus `json:"shards"`
	Nodes   []nodeStatus  `json:"nodes"` // nodes that answer, or have shards
}

type shardStatus struct {
	Shard    int             `json:"shard"`
	Items    int             `json:"items"`
	Log      logStatus       `json:"log"`
	Replicas []replicaStatus `json:"replicas"`
	// says that replicas had not the same when the latest day began
	Differ bool `json:"differ,omitempty"`
}

type logStatus struct {
	First   uint64 `json:"first"`
	Last    uint64 `json:"last"`
	Bytes   int64  `json:"bytes"`
	Leader  string `json:"leader"`
	Problem string `json:"problem,omitempty"`
}

type replicaStatus struct {
	Node    string `json:"node"`
	Answers bool   `json:"answers"` // whether the node answers
	Applied uint64 `json:"applied"` // sequence of the log
	Lag     uint64 `json:"lag"`     // messages of the log that it has not applied
	Items   int    `json:"items"`
	Problem string `json:"problem,omitempty"`
	Unread  uint64 `json:"unread,omitempty"` // messages of the log that were no operations

	checked, sum uint64 // see cluster.ReplicaStatus
}

// differ reports whether two replicas had not the same at one message.
func differ(replicas []replicaStatus) bool {
	for i, a := range replicas {
		for _, b := range replicas[:i] {
			if a.checked > 0 && a.checked == b.checked && a.sum != b.sum {
				return true
			}
		}
	}
	return false
}

type nodeStatus struct {
	Node    string     `json:"node"`
	Answers bool       `json:"answers"`
	Since   *time.Time `json:"since,omitempty"`
	Shards  []int      `json:"shards"` // assigned by the plan
}

// lookAt reads the state of the logs and the nodes of a cluster.
func (e *env) lookAt(ctx context.Context, c *cluster.Client) (*clusterStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, e.link.timeout)
	defer cancel()
	logs := c.Logs(ctx) // before the nodes, so that later writes are no lag
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	s := &clusterStatus{Cluster: e.link.cluster}
	byName := map[string]*nodeStatus{}
	of := map[string]*cluster.NodeStatus{}
	var names []string
	add := func(name string) *nodeStatus {
		if byName[name] == nil {
			byName[name] = &nodeStatus{Node: name, Shards: []int{}}
			names = append(names, name)
		}
		return byName[name]
	}
	for i := range nodes {
		n := &nodes[i]
		is := add(n.Node)
		is.Answers, is.Since = true, &n.Since
		of[n.Node] = n
	}
	for shard, placed := range c.Placement() {
		log := logs[shard]
		is := shardStatus{Shard: shard, Log: logStatus{First: log.First, Last: log.Last, Bytes: log.Bytes,
			Leader: log.Leader}, Replicas: []replicaStatus{}}
		switch {
		case log.Err != nil:
			is.Log.Problem = message(log.Err)
		case log.Leader == "":
			is.Log.Problem = "it has no leader: writes wait"
		}
		for _, name := range placed.Nodes {
			n := add(name)
			n.Shards = append(n.Shards, shard)
			r := replicaStatus{Node: name, Answers: of[name] != nil, Problem: "the node does not answer"}
			if r.Answers {
				r.Problem = "the node does not have it yet"
				for _, st := range of[name].Shards {
					if st.Shard == shard {
						r.Applied, r.Items, r.Problem = st.Applied, st.Items, message2(st.Problem)
						r.Unread, r.checked, r.sum = st.Unread, st.Checked, st.Sum
						r.Lag = log.Last - min(log.Last, st.Applied)
					}
				}
			}
			is.Items = max(is.Items, r.Items)
			is.Replicas = append(is.Replicas, r)
		}
		is.Differ = differ(is.Replicas)
		s.Items += is.Items
		s.Shards = append(s.Shards, is)
	}
	slices.Sort(names)
	for _, name := range names {
		s.Nodes = append(s.Nodes, *byName[name])
	}
	return s, nil
}

// message2 is message for the text of an error from a node.
func message2(text string) string { return strings.ReplaceAll(text, "fddhdb: ", "") }

func statusCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say how nodes, shards and logs are",
		GroupID: groupCluster,
		Long: usage.Prose(`
			Status prints a line for each shard on each node: the last message of its log that
			the node has applied, the lag, which is how many it has not applied yet, the
			items of all collections, and what is wrong. Nodes that do not answer within a
			second are named. The exit code is 0 as long as the cluster can be reached.`),
		Example: usage.Example(`
			fddhdb-cluster status
			fddhdb-cluster status --json | jq '[.shards[].replicas[].lag] | max'`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				s, err := e.lookAt(ctx, c)
				if err != nil {
					return err
				}
				if e.json {
					return e.PrintJSON(s)
				}
				e.printStatus(s)
				return nil
			})
		},
	}
	return cmd
}

func (e *env) printStatus(s *clusterStatus) {
	e.Printf("cluster %s: %s, %s, %s\n\n", s.Cluster, term.Plural(len(s.Shards), "shard", "shards"),
		term.Plural(len(s.Nodes), "node", "nodes"), term.Plural(s.Items, "item", "items"))
	columns := []term.Column{term.Right("shard"), term.Left("node"), term.Right("applied"), term.Right("lag"),
		term.Right("items"), term.Left("problem")}
	var rows [][]any
	for _, sh := range s.Shards {
		for _, r := range sh.Replicas {
			row := []any{sh.Shard, r.Node, term.CountCell(r.Applied), term.CountCell(r.Lag),
				term.CountCell(r.Items), r.Problem}
			if !r.Answers {
				row = []any{sh.Shard, r.Node, term.NoCell, term.NoCell, term.NoCell, r.Problem}
			}
			rows = append(rows, row)
		}
	}
	e.PrintTable(columns, rows)
	sound := true
	say := func(format string, args ...any) {
		if sound {
			e.Printf("\n")
		}
		sound = false
		e.Printf(format+"\n", args...)
	}
	for _, sh := range s.Shards {
		if sh.Log.Problem != "" {
			say("log of shard %d: %s", sh.Shard, sh.Log.Problem)
		}
		if sh.Differ {
			say("shard %d: its replicas differ: fddhdb-cluster compare %d says in what", sh.Shard, sh.Shard)
		}
		for _, r := range sh.Replicas {
			if r.Unread > 0 {
				say("log of shard %d: node %s has passed over %s, no operations or named by skip", sh.Shard, r.Node,
					term.Plural(int(r.Unread), "message", "messages"))
			}
		}
	}
	for _, n := range s.Nodes {
		switch {
		case !n.Answers:
			say("node %s does not answer: it has %s", n.Node, shards(n.Shards))
		case len(n.Shards) == 0:
			say("node %s has no shard: move gives it some", n.Node)
		}
	}
}

func shards(all []int) string {
	if len(all) == 1 {
		return "shard " + numbers(all)
	}
	return "shards " + numbers(all)
}

func numbers(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ", "), "[]")
}

func backupCommand(e *env) *cobra.Command {
	var o cluster.BackupOptions
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Back up every shard, and trim the logs",
		GroupID: groupCare,
		Long: usage.Prose(`
			Backup has a node of each shard store a backup of it where the nodes have their
			--backups, one shard after the other, and read it again. Its other nodes have to
			find it there. Writes and searches go on. Only what is new is copied.

			--trim then removes from each log what its backup holds, but for the latest --keep
			messages: a node that was away for no longer than these goes on with the log,
			and any other begins with the backup. A log that has no more than these stays as
			it is, even a full one: give a smaller --keep then. Without --trim logs grow
			until they are full.`),
		Example: usage.Example(`
			fddhdb-cluster backup --trim
			fddhdb-cluster backup --trim --keep 100000`),
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case cmd.Flags().Changed("keep") && !o.Trim:
				return exit.Usagef("--keep is how many messages --trim leaves in each log, and that is missing")
			case cmd.Flags().Changed("keep") && o.Keep == 0:
				return exit.Usagef("--keep 0: 1 or more messages are possible")
			}
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				bar := e.Progress()
				defer bar.End()
				done := 0
				o.Progress = func(cluster.Backup) {
					done++
					bar.Report("backing up", int64(done), int64(c.Shards()))
				}
				bar.Report("backing up", 0, int64(c.Shards()))
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				all, err := c.Backup(ctx, o)
				bar.End()
				if e.json {
					type shardJSON struct {
						Shard    int    `json:"shard"`
						Node     string `json:"node"`
						Backup   string `json:"backup"`
						Items    int    `json:"items"`
						Position uint64 `json:"position"`
					}
					form := struct {
						Shards  []shardJSON `json:"shards"`
						Trimmed bool        `json:"trimmed"`
					}{[]shardJSON{}, o.Trim}
					for _, b := range all {
						form.Shards = append(form.Shards,
							shardJSON{b.Shard, b.Node, b.ID, b.Items, b.Position})
					}
					if perr := e.PrintJSON(form); err == nil {
						err = perr
					}
					return failed(err)
				}
				var rows [][]any
				items := 0
				for _, b := range all {
					rows = append(rows, []any{b.Shard, b.Node, b.ID, term.CountCell(b.Items),
						term.CountCell(b.Position)})
					items += b.Items
				}
				if len(rows) > 0 {
					e.PrintTable([]term.Column{term.Right("shard"), term.Left("node"), term.Left("backup"),
						term.Right("items"), term.Right("position")}, rows)
					e.Printf("\n%s in backups of %s of %d\n", term.Plural(items, "item", "items"),
						term.Plural(len(rows), "shard", "shards"), c.Shards())
				}
				return failed(err)
			})
		},
	}
	cmd.Flags().BoolVar(&o.Trim, "trim", false, "remove from the logs what the backups hold")
	cmd.Flags().Uint64Var(&o.Keep, "keep", 10_000, "with --trim: leave the latest `N` messages of each log")
	return cmd
}
