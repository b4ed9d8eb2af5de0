package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
)

func compareCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "compare [SHARD]",
		Short:   "Compare the replicas of each shard",
		GroupID: groupCare,
		Long: usage.Prose(`
			Compare has all replicas of a shard read what they have at one message of the
			log: schemas, labels, items, and the codes of each space. They must be equal.
			Searches and writes go on. Where replicas differ, it names the parts and the
			nodes, and exits with 3: rebuild makes a replica again. It exits with 1 if not all
			replicas could be compared. Without SHARD it compares all shards, one after the
			other.`),
		Example: usage.Example(`
			fddhdb-cluster compare
			fddhdb-cluster compare 3 --json`),
		Args: arguments(0, 1, "the number of a shard"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				first, last := 0, c.Shards()-1
				if len(args) > 0 {
					shard, err := shardOf(c, args[0])
					if err != nil {
						return err
					}
					first, last = shard, shard
				}
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				bar := e.Progress()
				defer bar.End()
				differ, left := 0, 0
				for shard := first; shard <= last; shard++ {
					bar.Report("comparing shards", int64(shard-first), int64(last-first+1))
					found, err := c.Compare(ctx, shard)
					bar.End()
					if err != nil {
						return failed(err)
					}
					if len(found.Differences) > 0 {
						differ++
					}
					if left += len(found.Left); len(found.Nodes) < 2 {
						left++
					}
					if e.json {
						err = e.PrintJSON(found)
					} else {
						e.printComparison(found)
					}
					if err != nil {
						return err
					}
				}
				if differ > 0 {
					return differError{fmt.Errorf("replicas of %s differ: fddhdb-cluster rebuild makes one again",
						term.Plural(differ, "shard", "shards"))}
				}
				if left > 0 {
					return exit.Failedf("not all replicas were compared")
				}
				return nil
			})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}

// A differError says that replicas differ. The program exits with 3 for it, as for corrupt data.
type differError struct{ error }

func (differError) Unwrap() error { return db.ErrCorrupt }
func (differError) Advised()      {}

func (e *env) printComparison(found *cluster.Comparison) {
	if len(found.Differences) == 0 && len(found.Nodes) > 1 {
		e.Printf("shard %d: equal on %s\n", found.Shard, strings.Join(found.Nodes, ", "))
	}
	for _, d := range found.Differences {
		var groups []string
		for _, nodes := range d.Nodes {
			groups = append(groups, strings.Join(nodes, " and "))
		}
		e.Printf("shard %d: %s differ: %s\n", found.Shard, d.Part, strings.Join(groups, " against "))
	}
	for node, why := range found.Left {
		e.Printf("shard %d: not compared on %s: %s\n", found.Shard, node, term.Plain(why))
	}
}

func rebuildCommand(e *env) *cobra.Command {
	var node string
	cmd := &cobra.Command{
		Use:     "rebuild SHARD --node NODE",
		Short:   "Make a replica again, of another one",
		GroupID: groupCare,
		Long: usage.Prose(`
			Rebuild has another node of the shard make a backup, moves the database of the
			replica aside, and makes it again of the backup and the log. Searches and writes
			go on. It takes nodes with --backups. The old folder stays beside it, as
			shard-NNNN.left-*.`),
		Example: usage.Example(`fddhdb-cluster rebuild 3 --node b`),
		Args:    arguments(1, 1, "the number of a shard"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if node == "" {
				return exit.Usagef("--node NODE says which replica to make again: it is missing")
			}
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				shard, err := shardOf(c, args[0])
				if err != nil {
					return err
				}
				ctx, cancel := context.WithTimeout(ctx, forever)
				defer cancel()
				if err := c.Rebuild(ctx, shard, node, e.waits); err != nil {
					return failed(err)
				}
				e.Printf("made shard %d on node %s again\n", shard, node)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&node, "node", "", "the `NODE` whose replica is made again")
	return cmd
}

func skipCommand(e *env) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "skip SHARD [--yes]",
		Short:   "Pass over a message that stops a shard",
		GroupID: groupCare,
		Long: usage.Prose(`
			Where all replicas of a shard have a problem with the same message of its log,
			skip makes them pass over it. What the message would have changed is lost: skip
			says what it is, as far as it can read it, and does nothing without --yes. A
			message that a newer program has written needs newer nodes, and no skip.`),
		Example: usage.Example(`fddhdb-cluster skip 3`),
		Args:    arguments(1, 1, "the number of a shard"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withClient(cmd.Context(), func(ctx context.Context, c *cluster.Client) error {
				shard, err := shardOf(c, args[0])
				if err != nil {
					return err
				}
				stop, err := c.Stopped(ctx, shard)
				if err == nil && yes {
					err = c.Skip(ctx, stop)
				}
				if err != nil {
					return failed(err)
				}
				if e.json {
					return e.PrintJSON(struct {
						*cluster.Stop
						Skipped bool `json:"skipped"`
					}{stop, yes})
				}
				verb := "would lose"
				if yes {
					verb = "lost"
				}
				e.Printf("%s message %d of shard %d: %s\nthe problem with it: %s\n", verb, stop.Seq, shard,
					term.Plain(stop.Message), term.Plain(stop.Problem))
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do it")
	return cmd
}

// shardOf reads the number of a shard of a cluster.
func shardOf(c *cluster.Client, arg string) (int, error) {
	shard, err := strconv.Atoi(arg)
	if err != nil || shard < 0 || shard >= c.Shards() {
		return 0, exit.Usagef("%q is no number of a shard: there are 0 to %d", arg, c.Shards()-1)
	}
	return shard, nil
}

// waits tells on stderr why a verb waits.
func (e *env) waits(why string) { e.Warnf("waiting: %s", why) }
