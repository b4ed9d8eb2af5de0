package main

import (
	"context"

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

			--trim then removes from each log what its backup holds, but for the latest --keep
			messages: a node that was away for no longer than these goes on with the log,
			and any other begins with the backup. A log that has no more than these stays as
			it is, even a full one: give a smaller --keep then. Without --trim logs grow
			until they are full. It also deletes large writes and models from the object
			store that no log names any more, when they are three hours old and a backup two
			hours before has found them so, too.`),
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
