package main

import (
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func backupCommand(e *env) *cobra.Command {
	var o cluster.BackupOptions
	cmd := &cobra.Command{
		Use:     "backup",
		Short:   "Back up every shard, and trim the logs",
		GroupID: groupCare,
		Long: usage.Prose(`
			Backup has a node of each shard store a backup of it where the nodes have their
			--backups, one shard after the other, and read it again. Writes and searches go
			on. Only what is new is copied.

			--trim then removes from each log what its backup holds, but for the latest
			messages: a node that was away for no longer than these goes on with the log,
			and any other begins with the backup. Without it logs grow until they are full. It
			also deletes large writes and models from the object store, when no log names them
			any more and they are three hours old.`),
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
				bar := e.NewProgress()
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
						form.Shards = append(form.Shards, shardJSON{b.Shard, b.Node, b.ID, b.Items, b.Position})
					}
					if perr := e.PrintJSON(form); err == nil {
						err = perr
					}
					return failed(err)
				}
				var rows [][]any
				items := 0
				for _, b := range all {
					rows = append(rows, []any{b.Shard, b.Node, b.ID, term.CountCell(b.Items), term.CountCell(b.Position)})
					items += b.Items
				}
				if len(rows) > 0 {
					e.PrintTable([]term.Column{term.Right("shard"), term.Left("node"), term.Left("backup"), term.Right("items"), term.Right("position")}, rows)
					e.Printf("\n%s in backups of %s of %d\n", term.Plural(items, "item", "items"), term.Plural(len(rows), "shard", "shards"), c.Shards())
				}
				return failed(err)
			})
		},
	}
	cmd.Flags().BoolVar(&o.Trim, "trim", false, "remove from the logs what the backups hold")
	cmd.Flags().Uint64Var(&o.Keep, "keep", 10_000, "with --trim: leave the latest `N` messages of each log")
	return cmd
}

// failed is an error for which the command line is not to blame.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return exit.Failedf("%w", err)
}

// answering refuses a node that does not answer: work for it would wait without an end.
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

// nodesOf returns the nodes that have a shard; nil: there is no such shard.
func nodesOf(c *cluster.Client, shard int) []string {
	for _, p := range c.Placement() {
		if p.Shard == shard {
			return append([]string{}, p.Nodes...)
		}
	}
	return nil
}

func moveCommand(e *env) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use:     "move SHARD --from NODE --to NODE",
		Short:   "Move a shard from one node to another",
		GroupID: groupCare,
		Long: usage.Prose(`
			Move has a node take over a shard from another one. The new one begins with a
			backup or with the log, and when it has caught up the old one leaves: searches
			and writes go on all the time. The old one may be lost. Its folder of the shard
			stays. Status has the numbers of the shards.

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
					return exit.Usagef("there is no shard %d: cluster %s has %d to %d", shard, e.link.cluster, first, first+len(placed)-1)
				case !slices.Contains(nodes, from):
					return exit.Failedf("node %s does not have shard %d: fddhdb-cluster status says which do", from, shard)
				}
				if err := answering(ctx, c, "--to", to); err != nil {
					return err
				}
				bar := e.NewProgress()
				defer bar.End()
				bar.Report("catching up", 0, 0)
				err := c.Move(ctx, shard, from, to)
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
				bar := e.NewProgress()
				defer bar.End()
				bar.Report("moving shards", 0, 0)
				err := c.Drain(ctx, args[0])
				bar.End()
				if err != nil {
					if left := has(); len(left) < len(before) {
						err = exit.Wrap(err, "%s moved, of %d", term.Plural(len(before)-len(left), "shard is", "shards are"), len(before))
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
