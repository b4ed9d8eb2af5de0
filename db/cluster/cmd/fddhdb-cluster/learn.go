package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fddhdb/fddhdb/cmd/fddhdb/exit"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/flags"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/term"
	"github.com/fddhdb/fddhdb/cmd/fddhdb/usage"
	"github.com/fddhdb/fddhdb/db"
	"github.com/fddhdb/fddhdb/db/cluster"
	"github.com/fddhdb/fddhdb/db/report"
	"github.com/fddhdb/fddhdb/model/fit"
)

func trainCommand(e *env) *cobra.Command {
	var o flags.Settings
	cmd := &cobra.Command{
		Use:     "train COLLECTION",
		Short:   "Learn a model from the items of all shards",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Train learns a model from the labelled items, or where none has labels from all,
			and gives it to every shard, whose items get their codes in a new space. The
			first space is active at once; --activate makes a later one so. Searches and writes
			go on. The flags are those of fddhdb train, and fddhdb help train explains them;
			the methods joint and paper are for one database.

			Items stay where they are: shards send sums over them. One training of a collection
			runs at a time. If a node is lost meanwhile, it begins again with the others.`),
		Example: usage.Example(`
			fddhdb-cluster train wiki
			fddhdb-cluster train wiki --bits 128 --anchors 800 --activate`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.Complete(cmd.Flags()); err != nil {
				return err
			}
			if err := o.LeaveOpen(cmd.Flags()); err != nil {
				return err
			}
			bar := e.Progress()
			defer bar.End()
			o.Progress = bar.Report
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					if _, err := coll.Schema(ctx); err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					ctx, cancel := context.WithTimeout(ctx, forever)
					defer cancel()
					t, err := coll.Train(ctx, o.TrainOptions)
					bar.End()
					switch {
					case errors.Is(err, db.ErrBusy):
						return exit.Failedf("%w: wait until the other training has ended", err)
					case errors.Is(err, fit.ErrNoItems): // the command line is right
						return failed(err)
					case err != nil:
						return err
					}
					for _, m := range t.LeftOut {
						e.warnf("modality %s is left out: no item to learn from has it", m)
					}
					return e.printSpace(ctx, coll, t.Space,
						"trained on "+term.Plural(t.Items, "item", "items")+": ")
				})
		},
	}
	o.Register(cmd.Flags())
	cmd.Flags().BoolVar(&o.Activate, "activate", false,
		"make the new space the active one, as the first always is")
	return cmd
}

// printSpace prints a new space.
func (e *env) printSpace(ctx context.Context, coll *cluster.Collection, made db.Space, what string) error {
	spaces, err := coll.Spaces(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(spaces, func(s cluster.Space) bool { return s.Space == made })
	if i < 0 {
		return exit.Failedf("collection %s has no space %d: somebody has dropped it meanwhile", coll.Name(),
			made)
	}
	s := spaces[i]
	if e.json {
		return e.PrintJSON(s)
	}
	e.Printf("%sspace %d of collection %s: codes of %d bits, of %s; it is %s\n", what, s.Space, coll.Name(),
		s.Bits, term.Plural(s.Items, "item", "items"),
		strings.Replace(string(s.State), "standby", "standing by", 1))
	if s.State != report.SpaceActive {
		e.Printf("fddhdb-cluster activate %s %d makes it the one that searches use\n", coll.Name(), s.Space)
	}
	return nil
}

func updateCommand(e *env) *cobra.Command {
	var o cluster.UpdateOptions
	var space uint32
	cmd := &cobra.Command{
		Use:     "update COLLECTION",
		Short:   "Let the projections learn from the items that are there now",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Update makes a new revision of a space, on every shard: its projections learn from
			all items with labels that the model knows, as they are now. Codes that items have
			stay comparable and as they are; queries, and items that come from then on, are encoded by
			the new projections. It costs one pass over the items, where train costs several and
			new codes for all. Searches and writes go on.

			--grow-labels gives labels that the model does not know a direction of their own
			first, as long as there are any left, and the items that carry them other codes.

			Items stay where they are: shards send sums over them. One training or update of a
			collection runs at a time. If a node is lost meanwhile, it begins again with the
			others.`),
		Example: usage.Example(`
			fddhdb-cluster update wiki
			fddhdb-cluster update wiki --grow-labels`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Space = db.Space(space)
			bar := e.Progress()
			defer bar.End()
			o.Progress = bar.Report
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					if _, err := coll.Schema(ctx); err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					ctx, cancel := context.WithTimeout(ctx, forever)
					defer cancel()
					u, err := coll.Update(ctx, o)
					bar.End()
					switch {
					case errors.Is(err, db.ErrBusy):
						return exit.Failedf("%w: wait until the other one has ended", err)
					case errors.Is(err, db.ErrNoModel):
						return exit.Failedf("collection %s has no model: fddhdb-cluster train %s learns one",
							args[0], args[0])
					case errors.Is(err, db.ErrNotFound):
						return exit.Failedf("there is no space %d of collection %s: fddhdb-cluster spaces %s lists them", space, args[0], args[0])
					case errors.Is(err, db.ErrInvalid): // the command line is right
						return failed(err)
					case err != nil:
						return err
					}
					return e.printUpdate(u, args[0])
				})
		},
	}
	cmd.Flags().Uint32Var(&space, "space", 0, "the number `N` of the space to update; 0: the active one")
	cmd.Flags().BoolVar(&o.GrowLabels, "grow-labels", false,
		"give labels that the model does not know directions of their own")
	return cmd
}

func (e *env) printUpdate(u *cluster.Update, collection string) error {
	if len(u.NoDirection) > 0 {
		e.warnf("no direction is left for %s: fddhdb-cluster train %s --bits N, with more bits, learns them",
			strings.Join(u.NoDirection, ", "), collection)
	}
	if e.json {
		return e.PrintJSON(u)
	}
	if !u.Revised {
		e.Printf("nothing to learn from: space %d of collection %s stays at revision %d\n", u.Space,
			collection, u.Revision)
		return nil
	}
	most := 0
	for _, n := range u.Items {
		most = max(most, n)
	}
	e.Printf("revision %d of space %d of collection %s: learned from %s", u.Revision, u.Space, collection,
		term.Plural(most, "item", "items"))
	if len(u.Grown) > 0 {
		e.Printf("; new labels: %s", strings.Join(u.Grown, ", "))
	}
	e.Printf("\n")
	return nil
}

func spacesCommand(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "spaces COLLECTION",
		Short:   "List the spaces of codes",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Spaces lists the spaces of codes of a collection. One is active: searches use it.
			Others stand by, or are being built, until every shard has all codes.`),
		Example: usage.Example(`fddhdb-cluster spaces wiki`),
		Args:    arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					spaces, err := coll.Spaces(ctx)
					if err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					var rows [][]any
					for _, s := range spaces {
						if e.json {
							if err := e.PrintJSON(s); err != nil {
								return err
							}
							continue
						}
						state := string(s.State)
						if s.Shards < c.Shards() {
							state += ", on " + term.Plural(s.Shards, "shard", "shards") + " so far"
						}
						rows = append(rows, []any{s.Space, state, s.Bits, s.Revision,
							term.CountCell(s.Items)})
					}
					switch {
					case e.json:
					case len(rows) == 0:
						e.Printf("collection %s has no codes yet: fddhdb-cluster train %s learns a model, and import %s --model FILE brings one in\n", args[0], args[0], args[0])
					default:
						e.PrintTable([]term.Column{term.Right("space"), term.Left("state"),
							term.Right("bits"),
							term.Right("revision"), term.Right("items")}, rows)
					}
					return nil
				})
		},
	}
	term.PrintsObjects(cmd)
	return cmd
}

func indexCommand(e *env) *cobra.Command {
	var modality string
	var recall float64
	var drop bool
	cmd := &cobra.Command{
		Use:     "index COLLECTION [--modality NAME]",
		Short:   "Make indexes of vectors, for searches by vectors among many",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Index has every replica make an index of the vectors of a modality, as fddhdb index
			does in one database. It needs no labels. Searches by vectors then find the share
			--recall of the nearest on average, in a fraction of the time. A search may ask for
			another --recall; 1 compares all vectors.

			Index waits until one replica of each shard has it. Others follow, and so do replicas
			that come later; until then their answers are exact. --drop deletes the indexes.
			Without --modality it lists what is there.`),
		Example: usage.Example(`
			fddhdb-cluster index photos --modality image
			fddhdb-cluster index photos --modality image --recall .95`),
		Args: arguments(1, 1, "the name of a collection"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case modality == "" && (drop || recall > 0):
				return exit.Usagef("--modality NAME is missing: the modality whose vectors are meant")
			case drop && recall > 0:
				return exit.Usagef("--drop deletes an index: leave out --recall")
			}
			bar := e.Progress()
			defer bar.End()
			return e.withCollection(cmd.Context(), args[0],
				func(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
					if _, err := coll.Schema(ctx); err != nil {
						return e.noCollection(ctx, c, args[0], err)
					}
					if modality == "" {
						return e.listIndexes(ctx, c, coll)
					}
					if drop {
						if err := coll.DropVectorIndex(ctx, modality); err != nil {
							return failed(err)
						}
						if e.json {
							return e.PrintJSON(map[string]string{"modality": modality})
						}
						e.Printf("dropped the index of the vectors of %s\n", modality)
						return nil
					}
					ctx, cancel := context.WithTimeout(ctx, forever)
					defer cancel()
					x, err := coll.IndexVectors(ctx, modality, recall, bar.Report)
					bar.End()
					if err != nil {
						return err
					}
					if e.json {
						return e.PrintJSON(x)
					}
					e.Printf("indexed %s of modality %s of collection %s on %s\n",
						term.Plural(x.Entries, "vector", "vectors"), modality, args[0],
						term.Plural(x.Shards, "shard", "shards"))
					e.printWaiting(x)
					return nil
				})
		},
	}
	cmd.Flags().StringVar(&modality, "modality", "", "the modality `NAME` of the vectors")
	flags.Recall(cmd.Flags(), &recall,
		"`X`, above 0 and up to 1, that searches get which do not say (default .99)")
	cmd.Flags().BoolVar(&drop, "drop", false, "delete the indexes of the modality")
	return cmd
}

// listIndexes prints the indexes of a collection.
func (e *env) listIndexes(ctx context.Context, c *cluster.Client, coll *cluster.Collection) error {
	all, err := coll.VectorIndexes(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 && !e.json {
		e.Printf("collection %s has no index of vectors: --modality NAME makes one\n", coll.Name())
	}
	for i := range all {
		x := &all[i]
		if e.json {
			if err := e.PrintJSON(x); err != nil {
				return err
			}
			continue
		}
		e.Printf("modality %s: %s, for a recall of %v, on %d of %d shards\n", x.Modality,
			term.Plural(x.Entries, "vector", "vectors"), x.Recall, x.Shards, c.Shards())
		e.printWaiting(x)
	}
	return nil
}

// printWaiting prints which shards have no index, and why.
func (e *env) printWaiting(x *cluster.Index) {
	for _, shard := range slices.Sorted(maps.Keys(x.Waiting)) {
		e.Printf("shard %d waits: %s\n", shard, term.Plain(x.Waiting[shard]))
	}
}

func activateCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "activate COLLECTION SPACE",
		Short:   "Make another space of codes the active one",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Activate makes a space, by its number, the one that searches use, shard after shard.
			No search fails meanwhile. The one before stands by.`),
		Example: usage.Example(`fddhdb-cluster activate wiki 2`),
		Args:    arguments(2, 2, "the name of a collection and the number of a space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.changeSpace(cmd.Context(), args, (*cluster.Collection).Activate,
				"space %d of collection %s is the active one now\n")
		},
	}
}

func dropSpaceCommand(e *env) *cobra.Command {
	return &cobra.Command{
		Use:     "drop-space COLLECTION SPACE",
		Short:   "Delete a space of codes",
		GroupID: groupSpaces,
		Long: usage.Prose(`
			Drop-space deletes a space, by its number: its codes and its model, and not the
			items. It cannot be the active one.`),
		Example: usage.Example(`fddhdb-cluster drop-space wiki 1`),
		Args:    arguments(2, 2, "the name of a collection and the number of a space"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.changeSpace(cmd.Context(), args, (*cluster.Collection).DropSpace,
				"dropped space %d of collection %s\n")
		},
	}
}

// changeSpace applies change to a space given by its number.
func (e *env) changeSpace(ctx context.Context, args []string,
	change func(*cluster.Collection, context.Context, db.Space) error, done string) error {
	n, err := strconv.ParseUint(args[1], 10, 32)
	if err != nil || n == 0 {
		return exit.Usagef("%q is no number of a space: they count from 1, and fddhdb-cluster spaces %s lists them", args[1], args[0])
	}
	return e.withCollection(ctx, args[0], func(ctx context.Context, c *cluster.Client,
		coll *cluster.Collection) error {
		switch err := change(coll, ctx, db.Space(n)); {
		case errors.Is(err, db.ErrNotFound):
			if err := e.noCollection(ctx, c, args[0], err); !errors.Is(err, db.ErrNotFound) {
				return err
			}
			return exit.Failedf("there is no space %d of collection %s: fddhdb-cluster spaces %s lists them",
				n, args[0], args[0])
		case errors.Is(err, db.ErrInvalid): // the command line is right; the space is the active one
			return exit.Failedf("%w", err)
		case err != nil:
			return err
		}
		if e.json {
			return e.PrintJSON(struct {
				Collection string `json:"collection"`
				Space      uint64 `json:"space"`
			}{args[0], n})
		}
		e.Printf(done, n, args[0])
		return nil
	})
}
